// Package wire encodes and decodes everything that a lock sends and receives:
// RESP3 frames ([Reader], [AppendValue]), messages (pings, records, wakes),
// connection names and commands. [Socket] is the connection that they use.
//
// Two rules hold for all input. Sizes are limited before memory is allocated,
// because anybody may publish on a lock's channel. And an answer that cannot be
// parsed counts as an exclusive holder's: if it were ignored, two participants
// could hold the lock.
package wire

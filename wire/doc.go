// Package wire is bytes: RESP3 frames, the messages and connection names that
// participants of a lock know each other by, the commands of a lock, and the
// [Socket] that they travel on.
//
// What comes from outside is bounded before memory is taken for it, and what
// cannot be read is taken for the worst that it could mean.
package wire

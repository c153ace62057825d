// Package tether provides distributed locks on Redis whose ownership is a live
// connection.
//
// A holder is subscribed to a pub/sub channel that bears the lock's name, on a
// connection of its own. While the subscription lives, the lock is held. When
// the process or its connection ends, Redis drops the subscription and the
// lock is free. There is no TTL to choose or to wait for, no key that stays
// behind, and no heartbeat to miss.
//
// # Usage
//
//	rdb := redis.NewClient(&redis.Options{Addr: addr})
//	locks := tether.New(rdb)
//	err := locks.Do(ctx, "nightly-report", func(ctx context.Context, h *tether.Hold) error {
//		return writeReport(ctx) // ctx ends when the lock is lost
//	})
//
// A program makes one [Client] per Redis server and keeps it. A lock is then
// taken in one of two ways:
//
//   - [Client.Acquire], [Client.TryAcquire] and [Client.Do] take a name and
//     leave nothing behind. They are for names that vary, such as one per
//     tenant or document.
//   - [Client.Lock] makes a [Lock] that is kept and used again. It has more to
//     offer: [Lock.AcquireAsync], [Lock.TryDo], [Lock.Events] and [Lock.State].
//
// Acquire waits until its context ends, TryAcquire does not wait for a holder,
// Do releases at the end. Whoever gets the lock gets a [Hold], and gives it
// back with [Hold.Release].
//
// The context of an acquire bounds the waiting, not the hold: a hold lasts
// until it is released or lost. The context of Do bounds both. [WithMaxWait]
// bounds the waiting alone.
//
// Locks are exclusive unless they are made with [Shared]: readers hold together,
// and no writer beside them. Everybody who takes a lock may choose for itself.
//
// # Losing a lock
//
// A hold whose connection has ended is lost. It never comes back by itself:
// nothing reconnects or subscribes again under a hold, because somebody else
// may hold the lock by then. The loss shows everywhere at once:
//
//   - [Hold.Lost] is closed,
//   - [Hold.Err] returns a [*LostError], which wraps the connection's error,
//   - [Hold.Context], and contexts made with [Hold.WithContext] or by Do, end
//     with the [*LostError] as their cause,
//   - a [LostEvent] goes out,
//   - the function given with [OnLost] is called. [Interrupt] is one that ends
//     the program as Ctrl-C would.
//
// After a loss the work must stop, since another holder may have begun. The
// [Lock] can be acquired again, which starts afresh.
//
// A release is no loss. It does not close [Hold.Lost]; [Hold.Context] ends at
// either.
//
// # Waiting
//
// A waiter that has met a holder leaves the lock's channel and sleeps, on one
// connection. The holder knows who waits, in the order in which they came, and
// its release wakes the next one, which takes the lock within about two round
// trips. The queue travels with the wake. A program that releases and acquires
// again in a loop goes to the end of it.
//
// The queue is a hint, and nothing is stored: when a holder crashes, its queue
// is gone. So every waiter also looks at the lock now and then, about every 100
// milliseconds if it is alone (see [WithPollInterval]) and less often the more
// there are, and after a crash the first to look gets the lock. Waiters of
// portalocker only look.
//
// A writer that waits for readers keeps new readers out. Readers that wait
// behind each other are woken together.
//
// A subscriber that does not answer keeps waiters waiting for the
// unavailable time-out, 1 second by default (see [WithUnavailableTimeout]). Then
// its connection is ended, if it is a participant of this lock and the Redis
// user may run CLIENT LIST and CLIENT KILL.
//
// # Fencing
//
// A process that is stopped, or cut off, may believe in its lock when somebody
// else has it already. With [Fenced] each hold has a token, higher than those of
// all holds before: a resource that refuses lower tokens than it has seen is
// safe from the late one. See the example of [Fenced].
//
// # Watching
//
// [Lock.Events] tells what happens to one lock, [WithObserver] what happens to
// all locks of a client, and [WithLogger] logs the same. [Client.Probe] asks who
// takes part in a lock. [WithLabel] gives participants a name for that.
//
// # Concurrency
//
// Everything is safe for concurrent use. Locks are not reentrant: a second
// acquire on a [Lock] that holds waits for the first hold's end, and two Locks
// of one name exclude each other like two machines.
//
// Each [Lock] is one goroutine, and each connection has one that reads it.
// Neither waits for a caller: an event that is not read is dropped and
// counted, and the lock goes on answering its peers.
//
// # Guarantees
//
// A lock is granted only if, at one instant, its holder was the only subscriber
// of the channel, or everybody else subscribed at that instant has answered and
// nobody claimed the lock. The same stream of replies proves that the server is
// a master. A participant that does not answer is never taken for absent.
//
//   - When the holder's process ends, however it ends, the lock is free as
//     soon as the server learns that its connection has, which on a machine
//     that still runs is at once.
//   - A loss is told within 50 milliseconds of the connection's end.
//   - A link that is half open, and a master that is demoted or replaced, are
//     found by the health check; see [WithHealthCheck]. A replica never grants.
//   - Whatever ends an acquire, nothing stays subscribed. A grant that races
//     the end of its context is given back before the error returns.
//   - Release returns by its context's end, and after 5 seconds at the latest.
//     What the server did not confirm it forgets with the connection, which is
//     closed then.
//
// # Limits
//
// An old and a new holder may overlap in time as they see it: between the end of
// a connection and the moment its owner learns of it, and across a failover,
// until the health check finds the new master. Work that must not overlap even
// then needs a check where its result is written, with the token of [Fenced].
// That helps against the first; across a failover two masters may draw tokens
// at the same time.
//
// A machine that vanishes without closing its connections keeps its locks until
// somebody wants them, and for the unavailable time-out then.
//
// They need a standalone Redis 6 or newer with RESP3, alone or behind Sentinel;
// Redis Cluster is refused with an [*UnsupportedError]. Each holder and each
// waiter has one connection, which counts towards the server's maxclients.
// Pub/sub knows no databases: the same name is the same lock in all of them.
//
// # Leases
//
// [Client.Lease] makes a lock of another kind, for places where a presence lock
// cannot be: a key with an expiry, renewed while it is held. It has the same
// handle. What is said above about connections, queues and reaping is not about
// it.
//
// # Testing
//
// Package tethertest has an in-process server for tests of programs that use
// tether, so that they need no Redis.
package tether

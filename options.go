package tether

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"
	"unicode/utf8"
	"unique"
)

// Option configures a [Client].
type Option func(*clientOptions)

type clientOptions struct {
	logger   *slog.Logger
	observer func(Event)
	dialer   func(ctx context.Context) (net.Conn, error)
	shared   bool
}

// WithLogger logs the events of all locks of the client, see [Event]. The
// default logs nothing, and so does a logger that takes no errors when the
// client is made.
//
// At level debug there are attempt, attempt failed, waiting, elected, demoted,
// granted, released and health; at level warn reaped, reap denied, health with
// an error, lock lost, events dropped, and a [Hold] that was dropped without a
// release; at level error a panic in a callback. The keys are always the same,
// and those that have nothing to tell are left out:
//
//   - lock: the name of the lock
//   - label: what [WithLabel] calls it here
//   - holder: the holder id, of a hold or of who was reaped
//   - token: the fencing token of a grant
//   - waited, round_trips: how long a grant took, and its last attempt
//   - holders, silent, place: who is waited for, how many more do not answer,
//     and the place in the queue
//   - error: what went wrong, or the cause of a loss
//   - retry: the time until the next attempt
//   - round_trip: of a health check
//   - addr: of who was reaped
//   - dropped: how many events of the lock are missing
//   - panic, stack: what a callback has panicked with, and where
//
// Records are made on the goroutine that [WithObserver] describes, with the
// times of the events.
func WithLogger(l *slog.Logger) Option {
	return func(o *clientOptions) {
		if l != nil {
			o.logger = l
		}
	}
}

// WithObserver calls fn for every event of every lock of the client: those of
// one lock in their order, one at a time, on one goroutine of the client. The
// locks do not wait for it. Up to 1024 events wait for fn to return; what does
// not fit is dropped, and a [DroppedEvent] of the lock tells how many when there
// is room again. fn may call any method; a panic in it is recovered and logged.
//
// It is the place for metrics. [Lock.Events] is for one lock and select loops.
// A client that fn refers to does not end with the garbage collection, but only
// with Close.
func WithObserver(fn func(Event)) Option {
	return func(o *clientOptions) { o.observer = fn }
}

// WithDialer dials the presence connections, instead of what the options of
// the Redis client say. The connection must reach one standalone Redis 6 or
// newer, TLS included; credentials still come from the client. It is needed
// for cluster clients and rings, whose options name no single server.
func WithDialer(dial func(ctx context.Context) (net.Conn, error)) Option {
	return func(o *clientOptions) { o.dialer = dial }
}

// WithSharedConnection puts all presence locks of the client on one connection.
func WithSharedConnection() Option {
	return func(o *clientOptions) { o.shared = true }
}

// LockOption configures a [Lock].
type LockOption func(*lockOptions)

type lockOptions struct {
	shared, fenced bool
	label          string
	health         time.Duration
	selfCheck      time.Duration
	unavailable    time.Duration
	poll           time.Duration
	maxWait        time.Duration
	onLost         func(*Hold)
	ttl            time.Duration
	renew          time.Duration
	set            []setting // durations that were given
}

// setting is a duration that was given, with the least that makes sense.
type setting struct {
	name         string
	given, least time.Duration
}

const (
	defaultHealthCheck = 10 * time.Second
	defaultUnavailable = time.Second
	defaultPoll        = 100 * time.Millisecond
	defaultTTL         = 60 * time.Second

	minHealthCheck = 10 * time.Millisecond
	minSelfCheck   = 10 * time.Millisecond
	minUnavailable = 50 * time.Millisecond
	minPoll        = time.Millisecond
	minTTL         = 200 * time.Millisecond
	minRenew       = 100 * time.Millisecond
	maxLabel       = 256
)

// Shared takes the lock as a reader: any number of them hold it together, and
// none beside an exclusive holder. A writer that waits keeps new readers out
// until it has had its turn, so that neither side starves.
//
// A shared [Lock] that holds gives further acquires their own [Hold] at once,
// without asking Redis, unless a writer is waiting.
func Shared() LockOption {
	return func(o *lockOptions) { o.shared = true }
}

// Fenced gives every hold a fencing token, see [Hold.Token]: a number that is
// higher than that of every hold before. A resource that remembers the highest
// token it has seen, and refuses lower ones, is safe from a holder that was
// frozen or cut off and does not know yet that it has lost the lock.
//
// The tokens come from the key <name>-fence, in the database of the Redis
// client. It never expires and must not be deleted lightly; if it is lost all
// the same, tokens still grow, as far as the servers' clocks agree. Everybody
// who takes the lock with Fenced must use the same database; another one is a
// [*ConfigError]. The Redis user needs GET, SET, INCR and TIME, and access to the
// key. A hold with Fenced is never reported without its token.
func Fenced() LockOption {
	return func(o *lockOptions) { o.fenced = true }
}

// WithLabel says who the holder is, in words: a host name, a job's id. Others
// see it in [Client.Probe], in events, and in the errors that say who holds the
// lock. It may have 256 bytes; the default is none.
func WithLabel(label string) LockOption {
	return func(o *lockOptions) { o.label = label }
}

// WithMaxWait bounds how long an acquire waits, as its context does, but not
// the work under the lock: after d it returns a [*HeldError] if a holder was
// seen, and else an error with the last failure to reach the server, if there
// was one. It does not match [context.DeadlineExceeded], since no context has
// ended. The default is no bound.
func WithMaxWait(d time.Duration) LockOption {
	return func(o *lockOptions) { o.maxWait = o.given("WithMaxWait", d, time.Nanosecond) }
}

// WithHealthCheck sets the time between two health checks of a hold: the
// server must answer on the hold's own connection, within the same time or 5
// seconds if that is shorter, and still be a master. It bounds how long a loss
// can go unnoticed that no socket error tells. A server that pauses its clients
// for that long ends their holds. The default is 10 seconds, the least is 10
// milliseconds.
func WithHealthCheck(d time.Duration) LockOption {
	return func(o *lockOptions) { o.health = o.given(nameHealth, d, minHealthCheck) }
}

// WithSelfCheck lets a hold ping itself through the lock's channel, every d: a
// ping that does not come back as an answer within d, or within the
// unavailable time-out if that is shorter, is a loss. It finds what the health
// check cannot: a server that answers but does not deliver messages any more.
// All participants answer such a ping. The default is no self-check, the least
// is 10 milliseconds.
func WithSelfCheck(d time.Duration) LockOption {
	return func(o *lockOptions) { o.selfCheck = o.given(nameSelfCheck, d, minSelfCheck) }
}

// WithUnavailableTimeout sets how long participants may take to answer a ping
// of this lock. Who stays silent for longer is taken for crashed or frozen, and
// its connection is ended. Set it above the longest pause of a healthy
// process; too short a time ends the holds of healthy ones. The default is 1
// second, the least is 50 milliseconds.
func WithUnavailableTimeout(d time.Duration) LockOption {
	return func(o *lockOptions) { o.unavailable = o.given(nameUnavailable, d, minUnavailable) }
}

// WithPollInterval sets the time between two looks of a waiter at the lock. A
// release wakes the next waiter without them; they find the locks of crashed
// holders. Many waiters of one lock look less often each, so that the lock
// costs Redis about the same. The default is 100 milliseconds, the least is 1
// millisecond.
func WithPollInterval(d time.Duration) LockOption {
	return func(o *lockOptions) { o.poll = o.given("WithPollInterval", d, minPoll) }
}

// OnLost calls fn when a hold is lost, on a goroutine of its own, after
// [Hold.Lost], [Hold.Err] and [Hold.Context] tell of it. A [Shared] Lock that
// loses several holds calls it once for each. It is not called after a release,
// nor when the Lock or the Client is closed. fn may block, and may call any
// method; a panic in it is recovered and logged. See [Interrupt] for one that
// ends the program.
func OnLost(fn func(*Hold)) LockOption {
	return func(o *lockOptions) { o.onLost = fn }
}

// WithTTL sets how long the key of a [Client.Lease] lives without a renewal: how
// long the lock stays taken when its holder crashes, and how long the holder may
// be cut off without losing it. The default is 60 seconds, the least is 200
// milliseconds.
func WithTTL(d time.Duration) LockOption {
	return func(o *lockOptions) { o.ttl = o.given(nameTTL, d, minTTL) }
}

// WithRenewInterval sets the time between two renewals of a [Client.Lease]. The
// default is a third of the TTL, but at least 100 milliseconds, which is the
// least; it must be shorter than the TTL.
func WithRenewInterval(d time.Duration) LockOption {
	return func(o *lockOptions) { o.renew = o.given(nameRenew, d, minRenew) }
}

// Names of options that not every kind of lock has.
const (
	nameTTL         = "WithTTL"
	nameRenew       = "WithRenewInterval"
	nameHealth      = "WithHealthCheck"
	nameSelfCheck   = "WithSelfCheck"
	nameUnavailable = "WithUnavailableTimeout"
)

// options are the defaults with what was given.
func options(opts []LockOption) lockOptions {
	o := lockOptions{health: defaultHealthCheck, unavailable: defaultUnavailable, poll: defaultPoll, ttl: defaultTTL}
	for _, opt := range opts {
		opt(&o)
	}
	if o.renew == 0 {
		o.renew = max(minRenew, o.ttl/3)
	}
	return o
}

// shareKey tells which Locks of a client share a local queue, and with it one
// participant: those of the same name and the same options. The zero value stands
// for none. Most locks of a program have the same options, which are kept once.
type shareKey struct {
	name    string
	options unique.Handle[shareOptions]
}

type shareOptions struct {
	once, shared, fenced                          bool
	label                                         string
	health, selfCheck, unavailable, poll, maxWait time.Duration
}

// shareKey is the key of a presence lock. OnLost is left out: it concerns one Lock.
func (o *lockOptions) shareKey(name string, once bool) shareKey {
	return shareKey{name, unique.Make(shareOptions{
		once, o.shared, o.fenced, o.label, o.health, o.selfCheck, o.unavailable, o.poll, o.maxWait,
	})}
}

func (o *lockOptions) given(name string, d, least time.Duration) time.Duration {
	o.set = append(o.set, setting{name, d, least})
	return d
}

// validate is for presence locks.
func (o *lockOptions) validate(name string) error {
	if err := o.check(name, nameTTL, nameRenew); err != nil {
		return err
	}
	switch {
	case o.shared && o.fenced:
		return &ConfigError{Reason: "Shared and Fenced exclude each other: readers hold together, and have no order"}
	case len(o.label) > maxLabel || !utf8.ValidString(o.label):
		return &ConfigError{Reason: fmt.Sprintf("WithLabel needs UTF-8 of at most %d bytes", maxLabel)}
	}
	return nil
}

// validateLease is for leases.
func (o *lockOptions) validateLease(name string) error {
	if err := o.check(name, nameHealth, nameSelfCheck, nameUnavailable); err != nil {
		return err
	}
	switch {
	case o.shared:
		return &ConfigError{Reason: "Shared is for presence locks: a lease has one holder"}
	case o.label != "":
		return &ConfigError{Reason: "WithLabel is for presence locks: the key of a lease has no room for it"}
	case o.renew >= o.ttl:
		return &ConfigError{Reason: fmt.Sprintf("WithRenewInterval must be shorter than the TTL of %v, got %v", o.ttl, o.renew)}
	}
	return nil
}

// check looks at what all kinds of locks have in common. Some options are for
// others only.
func (o *lockOptions) check(name string, others ...string) error {
	if name == "" {
		return &ConfigError{Reason: "a lock needs a name"}
	}
	for _, s := range o.set {
		if slices.Contains(others, s.name) {
			return &ConfigError{Reason: s.name + " is for another kind of lock: a Lease has a TTL, and a presence lock a connection"}
		}
		if s.given < s.least {
			return &ConfigError{Reason: fmt.Sprintf("%s needs at least %v, got %v", s.name, s.least, s.given)}
		}
	}
	return nil
}

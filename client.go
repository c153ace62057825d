package tether

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"runtime"

	"github.com/redis/go-redis/v9"

	"github.com/tetherlock/tether/actor"
	"github.com/tetherlock/tether/internal/clientloop"
	"github.com/tetherlock/tether/internal/endpoint"
	"github.com/tetherlock/tether/wire"
)

// Client makes locks on one Redis server. It is safe for concurrent use.
type Client struct{ *core }

// core is a client without its handle, so that the handle can be collected.
type core struct {
	rdb      redis.UniversalClient
	loop     *clientLoop
	reporter *reporter
	log      *slog.Logger
	err      error // there are no presence locks, and why
}

// clientLoop finds Locks by their name and options.
type clientLoop = clientloop.Loop[shareKey, *lock]

// New returns a client for the server that rdb talks to. It connects to
// nothing yet and panics if rdb is nil.
//
// The options of rdb are read: dialler, TLS, Unix socket or Sentinel,
// credentials and time-outs. Its connections and hooks are not used for locks:
// each acquired lock has one connection of its own, on which Protocol,
// ClientName, OnConnect and hooks of the options have no effect. rdb may be
// closed before the locks are, unless it is a Sentinel client.
//
// With a cluster client or a ring, whose options name no single server, there
// are only leases, see [Client.Lease]; every other call returns an
// [*UnsupportedError] unless [WithDialer] is given.
func New(rdb redis.UniversalClient, opts ...Option) *Client {
	if rdb == nil {
		panic("tether: New needs a Redis client")
	}
	o := clientOptions{logger: slog.New(slog.DiscardHandler)}
	for _, opt := range opts {
		opt(&o)
	}
	c := &core{rdb: rdb, log: o.logger}
	e, err := endpoint.New(rdb, o.dialer)
	c.err = publicError(err)
	c.loop = clientloop.New[shareKey, *lock](e)
	c.reporter = newReporter(o, c.loop.Done())
	client := &Client{c}
	whenDropped(client, (*clientLoop).Drop, c.loop)
	return client
}

// Lock returns a lock. Nothing is sent until it is acquired. It is exclusive:
// one holder at a time, over all machines.
//
// A Lock is meant to be kept and used again; for names that vary per request
// there are [Client.Acquire], [Client.TryAcquire] and [Client.Do]. Two Locks
// of one name exclude each other like two machines. Those of one client with the
// same options, [OnLost] aside, share a local queue and one connection: a release
// hands the lock to the next of them without asking the server, unless somebody
// else is known to wait. With wrong options every call returns a [*ConfigError].
func (c *Client) Lock(name string, opts ...LockOption) *Lock {
	defer runtime.KeepAlive(c)
	o := options(opts)
	l := c.presence(name, o, false)
	if l.err == nil {
		c.register(l, o.shareKey(name, false))
	}
	return newLock(l)
}

// newLock gives a lock its handle.
func newLock(l *lock) *Lock {
	handle := &Lock{l}
	if l.err == nil {
		whenDropped(handle, (*lock).handleDropped, l)
	}
	return handle
}

// presence returns a presence lock whose goroutine has yet to be started.
func (c *core) presence(name string, o lockOptions, once bool) *lock {
	if err := o.validate(name); err != nil || c.err != nil {
		return &lock{name: name, err: cmp.Or(c.err, err)}
	}
	h := c.newParticipant(name, o) // the functions below refer to it, not to name, which is larger
	l := c.handle(name, o, once)
	l.loop = actor.NewLoop(actor.Config{
		Channel:     name,
		Waiters:     func() string { return wire.WaitersChannel(h.name) },
		WakeChannel: func(id string) string { return wire.WakeChannel(h.name, id) },
		Response:    func() string { return wire.ResponseChannel(h.name, endpoint.NewID()) },
		Jitter:      rand.Float64,
		Shared:      o.shared,
		Fenced:      o.fenced,
		DB:          c.loop.Endpoint.DB,
		Label:       o.label,
		Health:      o.health,
		SelfCheck:   o.selfCheck,
		Unavailable: o.unavailable,
		Poll:        o.poll,
		MaxWait:     o.maxWait,
		Reply:       c.loop.Endpoint.ReplyLimit,
		Renewable:   c.loop.Endpoint.RenewableLogin(),
		Observed:    h.observed,
		Once:        once,
	}, h)
	h.actor = l.loop
	return l
}

func (c *core) handle(name string, o lockOptions, once bool) *lock {
	return &lock{name: name, client: c.loop, once: once, onLost: o.onLost}
}

func (c *core) newParticipant(name string, o lockOptions) *participant {
	return &participant{
		client: c.loop, reporter: c.reporter, log: c.log, name: name, label: o.label,
		health: o.health, maxWait: o.maxWait,
	}
}

// register has a Lock closed with the client, and starts its participant unless
// another Lock with the same key has one.
func (c *core) register(l *lock, key shareKey) {
	switch loop := c.loop.Register(key, l, l.loop); loop {
	case nil:
		l.loop, l.err = nil, ErrClosed
	case l.loop:
		loop.Start(nil, nil)
	default:
		l.loop = loop
	}
}

// Close ends all locks of the client, as [Lock.Close] does, and closes the
// idle connections. It never closes the Redis client. Later calls on the
// client and its locks return [ErrClosed]; closing again returns nil.
//
// With [WithObserver] or [WithLogger] it then waits until they have been told
// everything, a second at most. An observer that is still busy after that, for
// one because it has called Close itself, is told the rest when it returns.
func (c *Client) Close() error {
	defer runtime.KeepAlive(c)
	if c.loop.Close() && c.reporter != nil {
		c.reporter.Wait()
	}
	return nil
}

// Acquire waits for a lock until ctx ends, like [Lock.Acquire]. Nothing of it
// is left behind when the hold ends. Calls of one client for the same name, with
// the same options, share a local queue.
func (c *Client) Acquire(ctx context.Context, name string, opts ...LockOption) (*Hold, error) {
	defer runtime.KeepAlive(c)
	return c.acquire(ctx, name, opts, false)
}

// TryAcquire takes a lock if nobody has it, like [Lock.TryAcquire]. Nothing of
// it is left behind when the hold ends. It does not wait behind other calls of
// the client either.
func (c *Client) TryAcquire(ctx context.Context, name string, opts ...LockOption) (*Hold, error) {
	defer runtime.KeepAlive(c)
	return c.acquire(ctx, name, opts, true)
}

// Do runs fn under a lock, like [Lock.Do]. Nothing of it is left behind.
func (c *Client) Do(ctx context.Context, name string, fn func(context.Context, *Hold) error, opts ...LockOption) error {
	defer runtime.KeepAlive(c)
	return do(ctx, fn, func() (*Hold, error) { return c.acquire(ctx, name, opts, false) })
}

// TryDo runs fn under a lock if nobody has it, like [Lock.TryDo]. Nothing of it
// is left behind.
func (c *Client) TryDo(ctx context.Context, name string, fn func(context.Context, *Hold) error, opts ...LockOption) error {
	defer runtime.KeepAlive(c)
	return do(ctx, fn, func() (*Hold, error) { return c.acquire(ctx, name, opts, true) })
}

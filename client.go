package tether

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"runtime"

	"github.com/redis/go-redis/v9"

	"github.com/tetherlock/tether/actor"
	"github.com/tetherlock/tether/wire"
)

// Client makes locks on one Redis server. It is safe for concurrent use.
type Client struct{ *core }

// core is a client without its handle, so that the handle can be collected.
type core struct {
	hub *hub
	log *slog.Logger
	err error // no lock can be made, and why
}

// New returns a client for the server that rdb talks to. It connects to
// nothing yet and panics if rdb is nil.
//
// The options of rdb are read: dialler, TLS, Unix socket or Sentinel,
// credentials and time-outs. Its connections and hooks are not used for locks:
// each acquired lock has one connection of its own, on which Protocol,
// ClientName, OnConnect and hooks of the options have no effect. rdb may be
// closed before the locks are, unless it is a Sentinel client.
//
// With a cluster client or a ring, whose options name no single server, every
// call returns an [*UnsupportedError] unless [WithDialer] is given.
func New(rdb redis.UniversalClient, opts ...Option) *Client {
	if rdb == nil {
		panic("tether: New needs a Redis client")
	}
	o := clientOptions{logger: slog.New(slog.DiscardHandler)}
	for _, opt := range opts {
		opt(&o)
	}
	c := &core{log: o.logger}
	e, err := newEndpoint(rdb, o.dialer)
	if err != nil {
		c.err = err
		return &Client{c}
	}
	c.hub = newHub(e)
	client := &Client{c}
	whenDropped(client, func(h *hub) { h.send(orphanHub{}) }, c.hub)
	return client
}

// Lock returns a lock. Nothing is sent until it is acquired. It is exclusive:
// one holder at a time, over all machines.
//
// A Lock is meant to be kept and used again; for names that vary per request
// there are [Client.Acquire], [Client.TryAcquire] and [Client.Do]. Two Locks
// of one name exclude each other like two machines. Wrong options show as a
// [*ConfigError] from every call.
func (c *Client) Lock(name string, opts ...LockOption) *Lock {
	defer runtime.KeepAlive(c)
	l := &Lock{c.open(name, false, opts)}
	if l.err == nil {
		whenDropped(l, func(loop *actor.Loop) { loop.Send(actor.Orphan{}) }, l.loop)
	}
	return l
}

// open starts the goroutine of a lock. With once, it ends by itself.
func (c *core) open(name string, once bool, opts []LockOption) *lock {
	o := lockOptions{health: defaultHealthCheck}
	for _, opt := range opts {
		opt(&o)
	}
	l := &lock{name: name, once: once, err: c.err}
	if err := o.validate(name); err != nil {
		l.err = err
	}
	if l.err != nil {
		return l
	}
	h := &host{hub: c.hub, name: name, log: c.log, health: o.health}
	l.loop = actor.Start(actor.Config{
		Channel:   name,
		Response:  func() string { return wire.ResponseChannel(name, newID()) },
		Jitter:    rand.Float64,
		Health:    o.health,
		Reply:     c.hub.endpoint.replyLimit,
		Renewable: c.hub.endpoint.login.renewable(),
		Once:      once,
	}, h)
	h.loop = l.loop
	if !c.hub.enter(l.loop) {
		l.err = ErrClosed
		l.loop.Send(actor.Orphan{})
	}
	return l
}

// Close ends all locks of the client, as [Lock.Close] does, and closes the
// idle connections. It never closes the Redis client. Later calls on the
// client and its locks return [ErrClosed]; closing again returns nil.
func (c *Client) Close() error {
	defer runtime.KeepAlive(c)
	if c.hub == nil {
		return nil
	}
	reply := make(chan []*actor.Loop, 1)
	if !c.hub.send(closeHub{reply}) {
		return nil
	}
	for _, loop := range <-reply {
		loop.Send(actor.Close{})
	}
	<-c.hub.done
	return nil
}

// Acquire waits for a lock until ctx ends, like [Lock.Acquire]. Nothing of it
// is left behind when the hold ends.
func (c *Client) Acquire(ctx context.Context, name string, opts ...LockOption) (*Hold, error) {
	defer runtime.KeepAlive(c)
	return c.open(name, true, opts).acquire(ctx, false)
}

// TryAcquire takes a lock if nobody has it, like [Lock.TryAcquire]. Nothing of
// it is left behind when the hold ends.
func (c *Client) TryAcquire(ctx context.Context, name string, opts ...LockOption) (*Hold, error) {
	defer runtime.KeepAlive(c)
	return c.open(name, true, opts).acquire(ctx, true)
}

// Do runs fn under a lock, like [Lock.Do]. Nothing of it is left behind.
func (c *Client) Do(ctx context.Context, name string, fn func(context.Context, *Hold) error, opts ...LockOption) error {
	defer runtime.KeepAlive(c)
	return c.open(name, true, opts).do(ctx, false, fn)
}

// TryDo runs fn under a lock if nobody has it, like [Lock.TryDo]. Nothing of it
// is left behind.
func (c *Client) TryDo(ctx context.Context, name string, fn func(context.Context, *Hold) error, opts ...LockOption) error {
	defer runtime.KeepAlive(c)
	return c.open(name, true, opts).do(ctx, true, fn)
}

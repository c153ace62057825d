package tether

import (
	"context"
	"math/rand/v2"
	"runtime"

	"github.com/tetherlock/tether/actor"
	"github.com/tetherlock/tether/internal/endpoint"
	"github.com/tetherlock/tether/internal/leasekey"
)

// Lease returns a lock that is a key with an expiry, renewed for as long as it
// is held. It is for places where a presence lock cannot be: behind a proxy that
// pools connections, on Redis Cluster or a ring, shared with Python's
// redis.lock.Lock, or where a lock must outlive a broken connection. Its handle
// is the same.
//
// The commands go through the Redis client that was given to [New], which must
// not be closed before the lease is; no connection is kept for it. The key is
// name, its value a random holder id; see [WithTTL] and [WithRenewInterval].
//
// A crashed holder keeps the lock until the TTL is over. A holder that cannot
// renew in time has lost it: [Hold.Lost] closes before the key can expire and
// anybody else have it, as the holder counts the TTL from before its last
// successful renewal was sent, less one percent and two milliseconds. An error
// of Redis alone is no loss; renewals are tried again until then, and a
// [HealthEvent] tells each. Time that the machine was suspended counts too: a
// holder that was away for too long is told within a second after it wakes up.
// Only work that looks at a token, see [Fenced], is safe until then. A key that
// somebody has deleted or overwritten, or that a restarted Redis has forgotten,
// is missed at the next renewal, which is a loss at once.
//
// Waiters are woken by releases of tether where there is pub/sub, all at once,
// and look at the key besides, see [WithPollInterval]: whoever comes first gets
// it. Each waiting Lock has a connection for that. [Hold.Release] deletes the
// key if it is still the own one; if not, it leaves it alone and returns a
// [*LostError]. When Redis cannot be reached, the key is deleted as soon as it
// can be, or goes by itself after the TTL. An acquire whose context ends
// returns at once; what it may have set is deleted behind it.
//
// The Redis user needs EVAL, EVALSHA, GET, SET, DEL, PEXPIRE and PTTL, and access
// to the key; for [Fenced] INCR and TIME, and access to the counter; for waking
// PUBLISH and SUBSCRIBE, and the channel {name}-released. Without the latter two
// releases work, and waiters look by themselves.
//
// Of the options, [Shared], [WithLabel], [WithHealthCheck], [WithSelfCheck] and
// [WithUnavailableTimeout] are for presence locks only. The tokens of [Fenced]
// come from the key {name}-fence here, so that both are in one slot of a
// cluster. A name that has a part in braces itself stands there without more of
// them, as in {part}rest-fence; the same goes for the channel.
//
// A lease and a presence lock of one name do not exclude each other. See
// [Client.ProbeLease] for who holds a lease.
func (c *Client) Lease(name string, opts ...LockOption) *Lock {
	defer runtime.KeepAlive(c)
	o := options(opts)
	if err := o.validateLease(name); err != nil {
		return newLock(&lock{name: name, err: err})
	}
	h := c.newParticipant(name, o)
	h.lease = true
	l := c.handle(name, o, false)
	l.loop = actor.NewLeaseLoop(actor.LeaseConfig{
		ID:      endpoint.NewID,
		Jitter:  rand.Float64,
		TTL:     o.ttl,
		Renew:   o.renew,
		Poll:    o.poll,
		MaxWait: o.maxWait,
	}, leaseEnvironment{h, leasekey.New(c.rdb, name, o.ttl, o.fenced)})
	h.actor = l.loop
	c.register(l, shareKey{})
	return newLock(l)
}

// leaseEnvironment is the environment of a lease.
type leaseEnvironment struct {
	*participant
	key *leasekey.Key
}

// Run runs a command. The client's time-outs must not look like the end of a
// caller's context.
func (e leaseEnvironment) Run(ctx context.Context, command actor.Run) (actor.LeaseReply, error) {
	reply, err := e.key.Run(ctx, command)
	return reply, notContextError(err)
}

func (e leaseEnvironment) Listen(released chan<- struct{}) (stop func()) {
	return e.key.Listen(released)
}

package tether

import (
	"context"
	"fmt"

	"github.com/tetherlock/tether/actor"
)

// acquire takes a lock that lasts as long as its holds.
func (c *core) acquire(ctx context.Context, name string, opts []LockOption, try bool) (*Hold, error) {
	o := options(opts)
	for {
		l := c.presence(name, o, true)
		if err := l.refused(ctx); err != nil {
			return nil, err
		}
		h, err := c.acquireOnce(ctx, l, o.shareKey(name, true), try)
		if err != errEnded {
			return h, err
		}
	}
}

// acquireOnce starts the participant of l with the acquire, or joins the one that
// serves the key already. That one may end in the same moment, which is errEnded.
func (c *core) acquireOnce(ctx context.Context, l *lock, key shareKey, try bool) (*Hold, error) {
	q := &request{lock: l, try: try, result: make(chan Result, 1)}
	elsewhere := make(chan *actor.Loop, 1)
	c.loop.StartOnce(key, l.loop, q, elsewhere)
	select {
	case r := <-q.result:
		return r.Hold, r.Err
	case loop := <-elsewhere:
		return l.join(ctx, loop, q)
	case <-ctx.Done():
	}
	c.loop.Barrier() // now it is known which of the two it was
	select {
	case <-elsewhere:
		return nil, fmt.Errorf("tether: acquire %q: %w", l.name, contextError(ctx))
	default:
		return l.cancel(ctx, q)
	}
}

// join sends the acquire to another call's participant, nil for a closed client.
func (l *lock) join(ctx context.Context, loop *actor.Loop, q *request) (*Hold, error) {
	switch l.loop = loop; {
	case loop == nil:
		return nil, ErrClosed
	case !loop.Send(q):
		return nil, errEnded
	}
	return l.await(ctx, q)
}

package tether

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"weak"

	"github.com/tetherlock/tether/actor"
)

// Hold is one grant of a lock, from the grant to its release or loss. It is
// safe for concurrent use.
type Hold struct{ *holdState }

// holdState is what a hold and its lock's goroutine share. What changes in it
// changes once, before the channel or context that tells of it is closed.
type holdState struct {
	loop  *actor.Loop
	call  *request
	id    string
	token int64
	hold  weak.Pointer[Hold] // the program's, for OnLost

	ctx      context.Context
	cancel   context.CancelCauseFunc
	lost     chan struct{}
	finished chan struct{} // the release is over, with result
	result   error
}

func newHoldState(loop *actor.Loop, g actor.Grant, call *request) *holdState {
	t := &holdState{
		loop: loop, call: call, id: g.ID, token: g.Token,
		lost: make(chan struct{}), finished: make(chan struct{}),
	}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	return t
}

func newHold(t *holdState, log *slog.Logger) *Hold {
	h := &Hold{t}
	if t.call.lock.onLost != nil {
		t.hold = weak.Make(h)
	}
	if !log.Enabled(context.Background(), slog.LevelWarn) {
		return h
	}
	// The program may well rely on the lock although it has forgotten the
	// Hold, so nothing is released here.
	whenDropped(h, func(t *holdState) {
		if t.ctx.Err() == nil {
			// The handler may take its time, and the collector waits.
			go log.Warn("a Hold was dropped without Release; the lock stays held", keyLock, t.call.lock.name, keyHolder, t.id)
		}
	}, t)
	return h
}

// publicHold is the Hold that the program has. When it has dropped that one, it is
// another one of the same grant.
func (t *holdState) publicHold() *Hold {
	if h := t.hold.Value(); h != nil {
		return h
	}
	return &Hold{t}
}

// end ends the hold. The lock's goroutine calls it once.
func (t *holdState) end(cause error) {
	t.call.unwatch()
	t.cancel(cause)
	if cause != ErrReleased {
		close(t.lost)
	}
}

// Lost returns a channel that is closed when the hold is lost: its connection
// ended, the server is no master any more, a health check failed, or the Lock
// or Client was closed. It is never closed after [Hold.Release]; use
// [Hold.Context] to learn of either end.
func (h *Hold) Lost() <-chan struct{} { return h.lost }

// Err returns nil while the lock is held, a [*LostError] after a loss, and
// [ErrReleased] after a release.
func (h *Hold) Err() error { return context.Cause(h.ctx) }

// Context returns a context that ends with the hold. Its cause, see
// [context.Cause], is a [*LostError] or [ErrReleased]. It has no parent and no
// values: the context of Acquire bounds the waiting, not the hold.
func (h *Hold) Context() context.Context { return h.ctx }

// WithContext returns a context with the values and the end of parent that
// also ends with the hold, with the same cause as [Hold.Context]. The returned
// function frees what it takes; call it when the work is done.
func (h *Hold) WithContext(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	stop := context.AfterFunc(h.ctx, func() { cancel(context.Cause(h.ctx)) })
	return ctx, func() {
		stop()
		cancel(context.Canceled)
	}
}

// ID returns the holder id, 32 hexadecimal digits. It names the connection:
// holds that follow each other on one connection share it, and so do the holds
// of one [Shared] Lock.
func (h *Hold) ID() string { return h.id }

// Token returns the fencing token of a lock that was taken with [Fenced], and 0
// without it. Tokens grow in the order of the grants.
func (h *Hold) Token() int64 { return h.token }

// ownedCall is one call of Owned that waits for its answer.
type ownedCall struct{ reply chan ownedAnswer }

type ownedAnswer struct {
	owned bool
	err   error
}

// Owned asks Redis whether the lock is still held, and waits for the answer
// until ctx ends: the server must answer on the hold's own connection, which
// carries the subscription, and still be a master. It is false without an
// error when the hold has ended. The answer may be stale when you read it;
// work that must not overlap needs a fencing token, see [Fenced].
func (h *Hold) Owned(ctx context.Context) (bool, error) {
	defer runtime.KeepAlive(h)
	q := &ownedCall{make(chan ownedAnswer, 1)}
	if h.ctx.Err() != nil || !h.loop.Send(actor.CheckOwned{Hold: h.call, Call: q}) {
		return false, nil
	}
	select {
	case o := <-q.reply:
		return o.owned, o.err
	case <-ctx.Done():
		return false, fmt.Errorf("tether: owned %q: %w", h.Name(), contextError(ctx))
	}
}

// Name returns the name of the lock.
func (h *Hold) Name() string { return h.call.lock.name }

// Release gives the lock back and waits until the server has confirmed it, its
// connection ends, which is as good, ctx ends, or 5 seconds have passed. The
// hold is over in any case, and its context ends with [ErrReleased] before
// anything is written; without a confirmation the connection is closed, which
// frees the lock as well, and the error says so.
//
// After a loss, Release does nothing and returns the [*LostError]. Calling it
// again returns what the first call returned.
func (h *Hold) Release(ctx context.Context) error {
	defer runtime.KeepAlive(h)
	h.beginRelease()
	return h.waitReleased(ctx)
}

// ReleaseAsync begins to give the lock back, like [Hold.Release], and returns
// at once. The hold is over then; the channel delivers the one result.
func (h *Hold) ReleaseAsync() <-chan error {
	defer runtime.KeepAlive(h)
	if h.beginRelease() {
		<-h.ctx.Done()
	}
	result := make(chan error, 1)
	go func(t *holdState) { result <- t.waitReleased(context.Background()) }(h.holdState)
	return result
}

// beginRelease asks the lock's goroutine to release, unless the hold has ended. It
// returns true when the goroutine ends the hold next.
func (t *holdState) beginRelease() bool {
	return t.ctx.Err() == nil && t.loop.Send(actor.Release{Hold: t.call})
}

// waitReleased waits for the end of a release. When ctx ends first, the connection
// is closed, which releases as well.
func (t *holdState) waitReleased(ctx context.Context) error {
	select {
	case <-t.finished:
	case <-t.lost:
	case <-ctx.Done():
		t.loop.Send(actor.Abandon{Hold: t.call, Cause: contextError(ctx)})
	}
	select {
	case <-t.lost:
		return context.Cause(t.ctx)
	case <-t.finished:
		return t.result
	}
}

// contextError is why a context has ended: its error, and the cause if that is
// another one.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || cause == err {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

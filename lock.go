package tether

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/tetherlock/tether/actor"
)

// State is where a [Lock] is in its life.
type State uint8

// The states of a lock.
const (
	// Idle holds nothing and wants nothing.
	Idle = State(actor.Idle)
	// Acquiring wants the lock.
	Acquiring = State(actor.Acquiring)
	// Held holds it.
	Held = State(actor.Held)
	// Lost has lost its last hold. The next acquire starts afresh.
	Lost = State(actor.HoldLost)
)

// String returns the state's name.
func (s State) String() string { return actor.State(s).String() }

// Lock is a distributed lock, as seen from one place. It is safe for
// concurrent use and not reentrant: acquires of one Lock queue, first come,
// first served. Those of a [Shared] one hold together.
//
// An idle Lock that is dropped without Close leaves nothing behind.
type Lock struct{ *lock }

// lock is a Lock without its handle, so that the handle can be collected.
type lock struct {
	name   string
	client *clientLoop
	loop   *actor.Loop
	onLost func(*Hold)
	once   bool  // a one-shot call
	err    error // of every call

	// Of the participant's goroutine.
	state  *lockState // nil while the participant has nothing to remember
	closed bool       // the lock was closed beside others, and acquires no more
}

// Result is the outcome of [Lock.AcquireAsync]: a hold or an error.
type Result struct {
	Hold *Hold
	Err  error
}

// Name returns the name of the lock.
func (l *Lock) Name() string { return l.name }

// Acquire waits for the lock until ctx ends. The hold does not depend on ctx
// afterwards.
//
// When ctx ends first, the error matches its error and names who holds the
// lock (a [*HeldError], which matches [ErrHeld]), who does not answer, or the
// last failure to reach the server; a grant that came too late has been given
// back. Failures that
// may pass, such as a refused connection or a failover, are retried with
// growing pauses. Those that would repeat end the call at once:
// [*ConfigError], [*UnsupportedError], [*AuthError], [*PermissionError],
// [ErrClosed].
func (l *Lock) Acquire(ctx context.Context) (*Hold, error) {
	defer runtime.KeepAlive(l)
	return l.acquire(ctx, false)
}

// TryAcquire takes the lock if nobody holds it. At the sight of a holder it
// returns a [*HeldError], which matches [ErrHeld]; of several tries on a free
// lock exactly one succeeds. A Lock that holds, or that others already wait
// for, returns it at once, without asking the server; a [Shared] one that holds
// gives another hold. A failure to reach the server ends it as well. It takes a
// round trip when the lock is free, and never more than about three times what
// [WithUnavailableTimeout] says.
func (l *Lock) TryAcquire(ctx context.Context) (*Hold, error) {
	defer runtime.KeepAlive(l)
	return l.acquire(ctx, true)
}

func (l *lock) acquire(ctx context.Context, try bool) (*Hold, error) {
	q := &request{lock: l, try: try, result: make(chan Result, 1)}
	if err := l.send(ctx, q); err != nil {
		return nil, err
	}
	return l.await(ctx, q)
}

// await waits for the result of an acquire.
func (l *lock) await(ctx context.Context, q *request) (*Hold, error) {
	select {
	case r := <-q.result:
		return r.Hold, r.Err
	case <-ctx.Done():
		return l.cancel(ctx, q)
	}
}

// cancel ends an acquire whose context has ended. A grant of the same moment is
// given back, as if it had come too late.
func (l *lock) cancel(ctx context.Context, q *request) (*Hold, error) {
	l.loop.Send(actor.Cancel{Call: q, Cause: contextError(ctx)})
	r := <-q.result
	if r.Hold == nil {
		return nil, r.Err
	}
	_ = r.Hold.Release(ctx) // ctx has ended: this does not wait
	return nil, fmt.Errorf("tether: acquire %q: %w", l.name, contextError(ctx))
}

// refused is why an acquire has no I/O: wrong options, or a context that has ended.
func (l *lock) refused(ctx context.Context) error {
	switch {
	case l.err != nil:
		return l.err
	case ctx.Err() != nil:
		return fmt.Errorf("tether: acquire %q: %w", l.name, contextError(ctx))
	}
	return nil
}

// send hands an acquire to the lock's goroutine.
func (l *lock) send(ctx context.Context, q *request) error {
	if err := l.refused(ctx); err != nil {
		return err
	}
	if !l.loop.Send(q) {
		return ErrClosed
	}
	return nil
}

// errEnded is a one-shot lock that has ended in the same moment.
var errEnded = errors.New("tether: ended")

// AcquireAsync is [Lock.Acquire] for select loops: it returns at once, and the
// channel delivers exactly one result. A grant that nobody has received when
// ctx ends or the lock is closed is given back, and the channel delivers the
// error instead.
func (l *Lock) AcquireAsync(ctx context.Context) <-chan Result {
	defer runtime.KeepAlive(l)
	q := &request{lock: l.lock, result: make(chan Result, 1)}
	if l.err != nil {
		q.result <- Result{Err: l.err}
		return q.result
	}
	asked, loop := make(chan struct{}), l.loop // not l: a watch must not keep a dropped handle
	defer close(asked)
	q.stop = context.AfterFunc(ctx, func() {
		<-asked // a cancel in front of its acquire would be lost
		loop.Send(actor.Cancel{Call: q, Cause: contextError(ctx)})
	})
	if err := l.send(ctx, q); err != nil {
		q.stop()
		q.result <- Result{Err: err}
	}
	return q.result
}

// Events returns the channel of the lock's events: the same one every time,
// filled from the first call on and closed when the lock has ended. It holds
// 64 events; when nobody reads, the oldest are dropped, and a [DroppedEvent]
// tells how many.
func (l *Lock) Events() <-chan Event {
	defer runtime.KeepAlive(l)
	reply := make(chan (<-chan Event), 1)
	if l.err == nil && l.loop.Send(askEvents{l.lock, reply}) {
		return <-reply
	}
	return endedEvents()
}

// State returns where the lock is. It may have changed when you read it.
func (l *Lock) State() State {
	defer runtime.KeepAlive(l)
	reply := make(chan State, 1)
	if l.err == nil && l.loop.Send(askState{l.lock, reply}) {
		return <-reply
	}
	return Idle
}

// Close ends the lock. Its holds end first, as a loss whose cause is
// [ErrClosed], of which [OnLost] is not told; acquires that wait return
// [ErrClosed], as do all later calls.
// Close returns when the lock has left the server, or its connection is
// closed, after a second at the latest. Closing again returns nil.
func (l *Lock) Close() error {
	defer runtime.KeepAlive(l)
	if l.loop == nil {
		return nil
	}
	left := make(chan struct{})
	if l.loop.Send(closeLock{l.lock, l.client.Unregister(l.loop, l.lock), left}) {
		select {
		case <-left:
		case <-l.loop.Done(): // it was the last one
		}
	}
	return nil
}

// handleDropped is for a lock whose handle is gone.
func (l *lock) handleDropped() {
	l.loop.Send(lockDropped{l, l.client.Unregister(l.loop, l)})
}

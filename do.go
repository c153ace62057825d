package tether

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// releaseLimit bounds the release at the end of Do, whose own context may have
// ended long ago.
const releaseLimit = 5 * time.Second

// Do waits for the lock as [Lock.Acquire] does, runs fn and releases.
//
// The context of fn has the values, end and deadline of ctx, and also ends
// with the hold, a [*LostError] as its cause. Do returns the error of the
// acquire, or else that of fn joined with the [*LostError] if the lock was
// lost, or with the error of the release. A panic in fn releases and goes on;
// fn may release the hold itself.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context, h *Hold) error) error {
	defer runtime.KeepAlive(l)
	return do(ctx, fn, func() (*Hold, error) { return l.acquire(ctx, false) })
}

// TryDo is [Lock.Do] with [Lock.TryAcquire].
func (l *Lock) TryDo(ctx context.Context, fn func(ctx context.Context, h *Hold) error) error {
	defer runtime.KeepAlive(l)
	return do(ctx, fn, func() (*Hold, error) { return l.acquire(ctx, true) })
}

func do(ctx context.Context, fn func(context.Context, *Hold) error, acquire func() (*Hold, error)) (err error) {
	h, err := acquire()
	if err != nil {
		return err
	}
	inner, cancel := h.WithContext(ctx)
	defer cancel()
	// A panic or a Goexit in fn comes by here too, and goes on.
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
		defer cancel()
		if released := h.Release(ctx); released != nil {
			err = errors.Join(err, released)
		}
	}()
	return fn(inner, h)
}

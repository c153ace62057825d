package tether_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
)

// dropped runs f and waits until the collector has taken what f alone refers to.
func dropped(f func()) {
	collected := make(chan struct{})
	func() {
		witness := new([64]byte)
		runtime.AddCleanup(witness, func(struct{}) { close(collected) }, struct{}{})
		f()
		runtime.KeepAlive(witness)
	}()
	for range 3 { // cleanups of one cycle run in no particular order
		runtime.GC()
	}
	<-collected
}

// sharingKinds are the locks whose handles may share one participant.
var sharingKinds = map[string][]tether.LockOption{
	"exclusive": nil,
	"shared":    {tether.Shared()},
	"fenced":    {tether.Fenced()},
}

// A hold ends by its own release, the Close of its own Lock or of the client, or
// a loss. The handle of its Lock was collected, and the last other Lock of the
// name is closed: the hold goes on.
func TestHoldOutlivesHandles(t *testing.T) {
	for kind, opts := range sharingKinds {
		t.Run(kind, func(t *testing.T) {
			onServers(t, func(t *testing.T, s server) {
				c := s.client(t)
				var h *tether.Hold
				other := c.Lock("l", opts...)
				dropped(func() {
					var err error
					h, err = c.Lock("l", opts...).Acquire(t.Context())
					require.NoError(t, err)
				})
				require.NoError(t, other.Close())
				require.NoError(t, other.Close())
				require.NoError(t, h.Err())
				owned, err := h.Owned(t.Context())
				require.NoError(t, err)
				require.True(t, owned)
				_, err = s.client(t).TryAcquire(t.Context(), "l")
				require.ErrorIs(t, err, tether.ErrHeld)
				require.NoError(t, h.Release(t.Context()))
				s.eventually(t, func() bool { return s.subscribers(t, "l") == 0 })
			})
		})
	}
}

// The same for a hold whose grant comes after the last Close: a Lock was dropped
// while it waited.
func TestWaitOutlivesHandles(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		first, err := s.client(t).Acquire(t.Context(), "l")
		require.NoError(t, err)
		other := c.Lock("l")
		var result <-chan tether.Result
		dropped(func() { result = c.Lock("l").AcquireAsync(t.Context()) })
		mine := make(chan error, 1)
		go func() {
			_, err := other.Acquire(t.Context())
			mine <- err
		}()
		s.eventually(t, func() bool { return other.State() == tether.Acquiring })
		require.NoError(t, other.Close())
		require.ErrorIs(t, <-mine, tether.ErrClosed)
		require.NoError(t, first.Release(t.Context()))
		r := <-result
		require.NoError(t, r.Err)
		require.NoError(t, r.Hold.Err())
		require.NoError(t, r.Hold.Release(t.Context()))
		s.eventually(t, func() bool { return s.subscribers(t, "l") == 0 })
	})
}

// The events of a Lock go on while it holds, whatever happens to its handle and
// to other Locks of the name.
func TestEventsOutliveHandles(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		other := c.Lock("l")
		var h *tether.Hold
		var events <-chan tether.Event
		dropped(func() {
			l := c.Lock("l")
			events = l.Events()
			var err error
			h, err = l.Acquire(t.Context())
			require.NoError(t, err)
		})
		require.NoError(t, other.Close())
		require.NoError(t, h.Release(t.Context()))
		var last tether.Event
		for e := range events {
			last = e
		}
		require.IsType(t, tether.ReleasedEvent{}, last)
	})
}

// A lease has a participant of its own: the Close of another one of its name is
// nothing to it, nor is the end of its handle.
func TestLeaseOutlivesHandles(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		other := c.Lease("lease")
		var h *tether.Hold
		dropped(func() {
			var err error
			h, err = c.Lease("lease").Acquire(t.Context())
			require.NoError(t, err)
		})
		require.NoError(t, other.Close())
		require.NoError(t, h.Err())
		require.NoError(t, h.Release(t.Context()))
	})
}

// A lease that was dropped while it waited is granted, and is its receiver's.
func TestLeaseWaitOutlivesItsHandle(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		first, err := c.Lease("lease").Acquire(t.Context())
		require.NoError(t, err)
		var result <-chan tether.Result
		dropped(func() {
			result = c.Lease("lease", tether.WithPollInterval(5*time.Millisecond)).AcquireAsync(t.Context())
		})
		require.NoError(t, first.Release(t.Context()))
		r := <-result
		require.NoError(t, r.Err)
		require.NoError(t, r.Hold.Err())
		require.NoError(t, r.Hold.Release(t.Context()))
	})
}

// One-shot calls have no handle: those of one name share a participant, which
// ends with the last of their holds and not with the first.
func TestOneShotHoldOutlivesTheOthers(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		kept := c.Lock("l", tether.Shared())
		a, err := c.Acquire(t.Context(), "l", tether.Shared())
		require.NoError(t, err)
		b, err := c.Acquire(t.Context(), "l", tether.Shared())
		require.NoError(t, err)
		require.NoError(t, a.Release(t.Context()))
		require.NoError(t, kept.Close())
		require.NoError(t, b.Err())
		require.NoError(t, b.Release(t.Context()))
	})
}

// The Close of a Lock ends its own hold and wait, those of dropped Locks of the
// name excepted, and returns when it has left.
func TestCloseEndsItsOwnHold(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		l := c.Lock("l")
		var waiting <-chan tether.Result
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		dropped(func() { waiting = c.Lock("l").AcquireAsync(context.Background()) })
		require.NoError(t, l.Close())
		require.ErrorIs(t, h.Err(), tether.ErrClosed)
		select {
		case r := <-waiting:
			require.NoError(t, r.Err)
			require.NoError(t, r.Hold.Release(t.Context()))
		case <-time.After(10 * time.Second):
			t.Fatal("the wait of another Lock has ended with the Close")
		}
	})
}

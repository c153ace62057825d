package tether_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/internal/redistest"
)

// Cases of the API: Release, Close, contexts, Shared, Events, Do and Hold.

func TestLostNeverClosesAfterRelease(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		h := s.acquire(t, s.client(t), "l")
		require.NoError(t, h.Release(t.Context()))
		<-h.Context().Done()
		never(t, 50*time.Millisecond, isClosed(h.Lost()))
	})
}

func TestReleaseEndsTheContextFirst(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		h := s.acquire(t, c, "l")
		result := h.ReleaseAsync()
		// The hold is over when ReleaseAsync returns, whatever the server does.
		require.ErrorIs(t, context.Cause(h.Context()), tether.ErrReleased)
		require.ErrorIs(t, h.Err(), tether.ErrReleased)
		require.NoError(t, <-result)
		s.awaitNoSubscribers(t, "l")
	})
}

func TestReleaseAgainJoinsTheFirst(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		l := s.client(t).Lock("l")
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		results := []<-chan error{h.ReleaseAsync(), h.ReleaseAsync(), h.ReleaseAsync()}
		for _, r := range results {
			require.NoError(t, <-r)
		}
		next, err := l.Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, h.Release(t.Context()), "of the first hold")
		require.NoError(t, next.Err(), "it does not end the second hold")
		require.NoError(t, next.Release(t.Context()))
	})
}

func TestReleaseAfterLoss(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		l := s.client(t).Lock("l")
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		s.killConnections(t, "l")
		<-h.Lost()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		lost, ok := errors.AsType[*tether.LostError](h.Release(ended))
		require.True(t, ok)
		require.Equal(t, "l", lost.Name)
		require.Equal(t, h.ID(), lost.HolderID)
		require.WithinDuration(t, time.Now(), lost.At, time.Minute)
		require.Equal(t, tether.Lost, l.State())
		again, err := l.Acquire(t.Context())
		require.NoError(t, err, "a lost lock is reusable")
		require.NotEqual(t, h.ID(), again.ID(), "a holder id belongs to one socket")
		require.NoError(t, again.Release(t.Context()))
	})
}

func TestReleaseWithAnEndedContext(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		h := s.acquire(t, s.client(t), "l")
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the program ends")
		cancel(why)
		err := h.Release(ctx)
		if err != nil { // the confirmation may have been faster
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, why)
			require.ErrorContains(t, err, "not confirmed")
		}
		require.ErrorIs(t, h.Err(), tether.ErrReleased)
		require.False(t, isClosed(h.Lost())())
		s.awaitNoSubscribers(t, "l")
	})
}

func TestReleaseOfAFrozenServerReturnsByTheDeadline(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		h := s.acquire(t, s.client(t), "l")
		s.freeze(t)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		began := time.Now()
		err := h.Release(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "not confirmed")
		require.Less(t, time.Since(began), time.Second)
		s.thaw(t)
		s.awaitNoSubscribers(t, "l")
	})
}

func TestCloseWhileHeld(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		for name, closing := range map[string]func(*tether.Client, *tether.Lock) error{
			"lock":   func(_ *tether.Client, l *tether.Lock) error { return l.Close() },
			"client": func(c *tether.Client, _ *tether.Lock) error { return c.Close() },
		} {
			c := s.client(t)
			l := c.Lock(name)
			h, err := l.Acquire(t.Context())
			require.NoError(t, err)
			require.NoError(t, closing(c, l))
			require.True(t, isClosed(h.Lost())())
			_, ok := errors.AsType[*tether.LostError](h.Err())
			require.True(t, ok)
			require.ErrorIs(t, h.Err(), tether.ErrClosed)
			require.ErrorIs(t, context.Cause(h.Context()), tether.ErrClosed)
			s.awaitNoSubscribers(t, name)
		}
	})
}

func TestCloseWhileHeldOnAFrozenServerIsBounded(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		l := s.client(t).Lock("l")
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		s.freeze(t)
		began := time.Now()
		require.NoError(t, l.Close())
		require.Less(t, time.Since(began), 3*time.Second)
		require.True(t, isClosed(h.Lost())())
		s.thaw(t)
		s.awaitNoSubscribers(t, "l")
	})
}

func TestCloseWhileWaiting(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		s.acquire(t, s.client(t), "l")
		c := s.client(t)
		l := c.Lock("l")
		events := l.Events()
		first, second := l.AcquireAsync(t.Context()), l.AcquireAsync(t.Context())
		awaitEvent[tether.WaitingEvent](t, events)
		require.NoError(t, l.Close())
		require.ErrorIs(t, (<-first).Err, tether.ErrClosed)
		require.ErrorIs(t, (<-second).Err, tether.ErrClosed)
		_, err := l.Acquire(t.Context())
		require.ErrorIs(t, err, tether.ErrClosed)
		_, err = l.TryAcquire(t.Context())
		require.ErrorIs(t, err, tether.ErrClosed)
		require.ErrorIs(t, (<-l.AcquireAsync(t.Context())).Err, tether.ErrClosed)
		require.ErrorIs(t, l.Do(t.Context(), nil), tether.ErrClosed)
		require.Equal(t, tether.Idle, l.State())
		require.NoError(t, l.Close())

		require.NoError(t, c.Close())
		require.NoError(t, c.Close())
		_, err = c.Acquire(t.Context(), "other")
		require.ErrorIs(t, err, tether.ErrClosed)
		_, err = c.Lock("other").Acquire(t.Context())
		require.ErrorIs(t, err, tether.ErrClosed)
		_, err = c.Probe(t.Context(), "other")
		require.ErrorIs(t, err, tether.ErrClosed)
		require.Equal(t, 1, s.subscribers(t, "l"))
	})
}

// noDialClient returns a client. A dial fails the test.
func noDialClient(t *testing.T) *tether.Client {
	rdb := redis.NewClient(&redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) {
		t.Error("no I/O is expected")
		return nil, net.ErrClosed
	}})
	c := tether.New(rdb)
	t.Cleanup(func() { require.NoError(t, c.Close()); require.NoError(t, rdb.Close()) })
	return c
}

func TestAcquireWithAnEndedContextDoesNoIO(t *testing.T) {
	why := errors.New("the request is gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	c := noDialClient(t)
	l := c.Lock("l")
	check := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, why)
		require.NotErrorIs(t, err, tether.ErrHeld)
	}
	_, err := l.Acquire(ctx)
	check(err)
	_, err = l.TryAcquire(ctx)
	check(err)
	check((<-l.AcquireAsync(ctx)).Err)
	check(l.Do(ctx, nil))
	check(l.TryDo(ctx, nil))
	_, err = c.Acquire(ctx, "l")
	check(err)
	_, err = c.TryAcquire(ctx, "l")
	check(err)
	check(c.Do(ctx, "l", nil))
	check(c.TryDo(ctx, "l", nil))
}

func TestAcquireOnALockThatHoldsQueues(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		l := s.client(t).Lock("l")
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)

		// An acquire that is cancelled does not change the order of the others.
		first := l.AcquireAsync(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err = l.Acquire(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, tether.ErrHeld)
		require.ErrorContains(t, err, "held by this Lock")
		second := l.AcquireAsync(t.Context())

		require.NoError(t, h.Release(t.Context()))
		one := <-first
		require.NoError(t, one.Err)
		require.Empty(t, second, "not at the same time")
		require.NoError(t, one.Hold.Release(t.Context()))
		two := <-second
		require.NoError(t, two.Err)
		require.NoError(t, two.Hold.Release(t.Context()))
		s.awaitNoSubscribers(t, "l")
	})
}

func TestTryAcquireOnALockInUseDoesNoIO(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		holder := s.client(t).Lock("l")
		h, err := holder.Acquire(t.Context())
		require.NoError(t, err)
		s.freeze(t) // a call that asks the server would block from here on
		_, err = holder.TryAcquire(t.Context())
		require.ErrorIs(t, err, tether.ErrHeld)
		s.thaw(t)

		waiter := s.client(t).Lock("l")
		events := waiter.Events()
		waiting := waiter.AcquireAsync(t.Context())
		awaitEvent[tether.WaitingEvent](t, events)
		s.freeze(t)
		_, err = waiter.TryAcquire(t.Context())
		require.ErrorIs(t, err, tether.ErrHeld)
		s.thaw(t)
		require.NoError(t, h.Release(t.Context()))
		r := <-waiting
		require.NoError(t, r.Err)
		require.NoError(t, r.Hold.Release(t.Context()))
	})
}

func TestTwoLocksOfOneNameExcludeEachOther(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		h := s.acquire(t, c, "l")
		_, err := c.Lock("l").TryAcquire(t.Context())
		held, ok := errors.AsType[*tether.HeldError](err)
		require.True(t, ok, "%v", err)
		require.Len(t, held.Holders, 1)
		require.Equal(t, h.ID(), held.Holders[0].ID)
		require.Equal(t, "exclusive", held.Holders[0].Mode)
		require.ErrorContains(t, err, h.ID())
	})
}

func TestAcquireAsyncGivesBackWhatNobodyReceives(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		l := c.Lock("l")
		ctx, cancel := context.WithCancel(t.Context())
		result := l.AcquireAsync(ctx)
		s.eventually(t, func() bool { return l.State() == tether.Held })
		cancel()
		s.eventually(t, func() bool { return l.State() == tether.Idle })
		s.awaitNoSubscribers(t, "l")
		require.ErrorIs(t, (<-result).Err, context.Canceled)

		result = l.AcquireAsync(t.Context())
		s.eventually(t, func() bool { return l.State() == tether.Held })
		require.NoError(t, l.Close())
		require.ErrorIs(t, (<-result).Err, tether.ErrClosed)
		s.awaitNoSubscribers(t, "l")
	})
}

func TestAcquireAsyncKeepsWhatWasReceived(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		l := s.client(t).Lock("l")
		ctx, cancel := context.WithCancel(t.Context())
		r := <-l.AcquireAsync(ctx)
		require.NoError(t, r.Err)
		cancel()
		never(t, 50*time.Millisecond, func() bool { return r.Hold.Err() != nil })
		require.NoError(t, r.Hold.Release(t.Context()))
	})
}

func TestSharedLockGivesEveryAcquireItsOwnHold(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		l := s.client(t).Lock("l", tether.Shared())
		first, err := l.Acquire(t.Context())
		require.NoError(t, err)
		s.freeze(t) // a call that asks the server would block from here on
		second, err := l.Acquire(t.Context())
		require.NoError(t, err)
		third, err := l.TryAcquire(t.Context())
		require.NoError(t, err)
		fourth := <-l.AcquireAsync(t.Context())
		require.NoError(t, fourth.Err)
		require.NoError(t, first.Release(t.Context()), "only the last release asks the server")
		s.thaw(t)
		require.Equal(t, 1, s.subscribers(t, "l"), "one participant")
		require.Equal(t, second.ID(), third.ID())
		require.ErrorIs(t, first.Err(), tether.ErrReleased)
		require.NoError(t, second.Err())

		// A loss ends all remaining holds.
		s.killConnections(t, "l")
		for _, h := range []*tether.Hold{second, third, fourth.Hold} {
			<-h.Lost()
			_, ok := errors.AsType[*tether.LostError](h.Release(t.Context()))
			require.True(t, ok)
		}
		require.False(t, isClosed(first.Lost())())
	})
}

func TestLastReleaseOfASharedLockLeaves(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		l := s.client(t).Lock("l", tether.Shared())
		var holds []*tether.Hold
		for range 3 {
			h, err := l.Acquire(t.Context())
			require.NoError(t, err)
			holds = append(holds, h)
		}
		for i, h := range holds {
			require.Equal(t, 1, s.subscribers(t, "l"))
			require.NoError(t, h.Release(t.Context()))
			require.NoError(t, h.Release(t.Context()), "again")
			require.Equal(t, i == len(holds)-1, l.State() == tether.Idle)
		}
		s.awaitNoSubscribers(t, "l")
	})
}

func TestCloseWhileSeveralHold(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		l := s.client(t).Lock("l", tether.Shared())
		var holds []*tether.Hold
		for range 2 {
			h, err := l.Acquire(t.Context())
			require.NoError(t, err)
			holds = append(holds, h)
		}
		unread := l.AcquireAsync(t.Context())
		s.eventually(t, func() bool { return len(unread) == 1 })
		require.NoError(t, l.Close())
		for _, h := range holds {
			require.True(t, isClosed(h.Lost())())
			require.ErrorIs(t, h.Err(), tether.ErrClosed)
		}
		require.ErrorIs(t, (<-unread).Err, tether.ErrClosed)
		s.awaitNoSubscribers(t, "l")
	})
}

func TestSharedGrantThatNobodyReceivesIsGivenBackAlone(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		l := s.client(t).Lock("l", tether.Shared())
		events := l.Events()
		ctx, cancel := context.WithCancel(t.Context())
		unread := []<-chan tether.Result{l.AcquireAsync(ctx), l.AcquireAsync(ctx)}
		kept := <-l.AcquireAsync(t.Context())
		require.NoError(t, kept.Err)
		cancel()
		for range unread {
			awaitEvent[tether.ReleasedEvent](t, events)
		}
		for _, result := range unread {
			require.ErrorIs(t, (<-result).Err, context.Canceled)
		}
		require.NoError(t, kept.Hold.Err())
		require.Equal(t, 1, s.subscribers(t, "l"))
		require.NoError(t, kept.Hold.Release(t.Context()))
		s.awaitNoSubscribers(t, "l")

		// If it is the only hold, its participant leaves the channel.
		ctx, cancel = context.WithCancel(t.Context())
		result := l.AcquireAsync(ctx)
		s.eventually(t, func() bool { return len(result) == 1 })
		cancel()
		s.awaitNoSubscribers(t, "l")
		require.ErrorIs(t, (<-result).Err, context.Canceled)
	})
}

// Readers that come after a waiting writer wait behind it. With a reader always
// there, the writer would wait for ever.
func TestSharedLockLetsAWaitingWriterIn(t *testing.T) {
	s := realServer(t, redistest.Start(t))
	l := s.client(t).Lock("l", tether.Shared())
	first, err := l.Acquire(t.Context())
	require.NoError(t, err)
	writer := s.client(t).Lock("l")
	events := writer.Events()
	writing := writer.AcquireAsync(t.Context())
	awaitEvent[tether.WaitingEvent](t, events)
	_, err = l.TryAcquire(t.Context())
	require.ErrorIs(t, err, tether.ErrHeld)
	reading := l.AcquireAsync(t.Context())
	never(t, 50*time.Millisecond, func() bool { return len(reading) > 0 })
	require.NoError(t, first.Release(t.Context()))
	w := <-writing
	require.NoError(t, w.Err)
	require.Empty(t, reading)
	require.NoError(t, w.Hold.Release(t.Context()))
	r := <-reading
	require.NoError(t, r.Err)
	require.NoError(t, r.Hold.Release(t.Context()))
}

func TestEventsOfOneLock(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		l := s.client(t).Lock("l")
		events := l.Events()
		require.Equal(t, events, l.Events(), "one channel per Lock")
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		granted := awaitEvent[tether.GrantedEvent](t, events)
		require.Equal(t, h.ID(), granted.HolderID)
		require.Equal(t, 1, granted.RoundTrips)
		require.Equal(t, "l", granted.Name)
		require.NoError(t, h.Release(t.Context()))
		awaitEvent[tether.ReleasedEvent](t, events)

		// For a slow receiver the oldest events are dropped. A DroppedEvent has their
		// number.
		for range 64 {
			h, err := l.Acquire(t.Context())
			require.NoError(t, err)
			require.NoError(t, h.Release(t.Context()))
		}
		for range 10 {
			<-events
		}
		h, err = l.Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, h.Release(t.Context()))
		dropped := awaitEvent[tether.DroppedEvent](t, events)
		require.Greater(t, dropped.Count, 64)

		require.NoError(t, l.Close())
		for range events {
		}
		_, open := <-l.Events()
		require.False(t, open)
	})
}

func TestDo(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		type key struct{}
		c := s.client(t)
		l := c.Lock("l")
		ctx := context.WithValue(t.Context(), key{}, "value")
		ctx, cancel := context.WithDeadline(ctx, time.Now().Add(time.Hour))
		defer cancel()

		mine := errors.New("of fn")
		err := l.Do(ctx, func(inner context.Context, h *tether.Hold) error {
			require.Equal(t, "value", inner.Value(key{}))
			_, limited := inner.Deadline()
			require.True(t, limited)
			require.Equal(t, 1, s.subscribers(t, "l"))
			return mine
		})
		require.True(t, err == mine, "fn's error, as it is: %v", err)
		s.awaitNoSubscribers(t, "l")

		// A loss ends fn's context, and is in the result beside fn's error.
		err = l.Do(ctx, func(inner context.Context, h *tether.Hold) error {
			s.killConnections(t, "l")
			<-inner.Done()
			_, lost := errors.AsType[*tether.LostError](context.Cause(inner))
			require.True(t, lost)
			return mine
		})
		require.ErrorIs(t, err, mine)
		_, lost := errors.AsType[*tether.LostError](err)
		require.True(t, lost)

		// The error of the acquire, without a call of fn.
		h := s.acquire(t, c, "l")
		ran := func(context.Context, *tether.Hold) error { t.Error("fn ran"); return nil }
		require.ErrorIs(t, l.TryDo(ctx, ran), tether.ErrHeld)
		require.ErrorIs(t, c.TryDo(ctx, "l", ran), tether.ErrHeld)
		require.NoError(t, h.Release(ctx))

		// fn may release the hold. An ended context does not stop Do's release.
		require.NoError(t, l.Do(ctx, func(_ context.Context, h *tether.Hold) error { return h.Release(ctx) }))
		inner, stop := context.WithCancel(ctx)
		require.NoError(t, c.Do(inner, "l", func(context.Context, *tether.Hold) error { stop(); return nil }))
		s.awaitNoSubscribers(t, "l")
	})
}

func TestDoReleasesOnPanicAndGoexit(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		l := s.client(t).Lock("l")
		require.PanicsWithValue(t, "out", func() {
			_ = l.Do(t.Context(), func(context.Context, *tether.Hold) error { panic("out") })
		})
		s.awaitNoSubscribers(t, "l")
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = l.Do(t.Context(), func(context.Context, *tether.Hold) error { runtime.Goexit(); return nil })
		}()
		<-done
		s.awaitNoSubscribers(t, "l")
	})
}

func TestHoldContextHasNoParent(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		type key struct{}
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, 1), time.Minute)
		h, err := s.client(t).Acquire(ctx, "l")
		require.NoError(t, err)
		cancel()
		require.Nil(t, h.Context().Value(key{}))
		_, limited := h.Context().Deadline()
		require.False(t, limited)
		require.NoError(t, h.Err())

		parent, end := context.WithCancelCause(context.WithValue(t.Context(), key{}, 2))
		bound, free := h.WithContext(parent)
		defer free()
		require.Equal(t, 2, bound.Value(key{}))
		why := errors.New("parent")
		end(why)
		<-bound.Done()
		require.ErrorIs(t, context.Cause(bound), why)

		bound, free = h.WithContext(t.Context())
		defer free()
		require.NoError(t, h.Release(t.Context()))
		<-bound.Done()
		require.ErrorIs(t, context.Cause(bound), tether.ErrReleased)
	})
}

func TestDroppedHoldIsNotReleased(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		logged := &logBuffer{lines: make(chan string, 16)}
		c := s.client(t, tether.WithLogger(slog.New(slog.NewTextHandler(logged, nil))))
		func() {
			_, err := c.Acquire(t.Context(), "l")
			require.NoError(t, err)
		}()
		s.eventually(t, func() bool {
			runtime.GC()
			select {
			case line := <-logged.lines:
				return strings.Contains(line, "dropped without Release")
			default:
				return false
			}
		})
		require.Equal(t, 1, s.subscribers(t, "l"), "the work may still run")
	})
}

// logBuffer sends log lines to the test.
type logBuffer struct{ lines chan string }

func (b *logBuffer) Write(p []byte) (int, error) {
	b.lines <- string(bytes.Clone(p))
	return len(p), nil
}

func TestDroppedLockLeavesNothing(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		before := runtime.NumGoroutine()
		for i := range 100 {
			_ = c.Lock("l").State()
			_ = c.Lock("l" + strconv.Itoa(i)).State()
		}
		s.eventually(t, func() bool {
			runtime.GC()
			return runtime.NumGoroutine() <= before
		})
	})
}

func TestConfigErrors(t *testing.T) {
	require.Panics(t, func() { tether.New(nil) })
	c := noDialClient(t)
	for what, opts := range map[string][]tether.LockOption{
		"":     nil,
		"zero": {tether.WithHealthCheck(0)},
		"neg":  {tether.WithHealthCheck(-time.Second)},
		"tiny": {tether.WithHealthCheck(time.Millisecond)},
	} {
		check := func(err error) {
			t.Helper()
			_, ok := errors.AsType[*tether.ConfigError](err)
			require.True(t, ok, "%q: %v", what, err)
		}
		l := c.Lock(what, opts...)
		_, err := l.Acquire(t.Context())
		check(err)
		_, err = l.TryAcquire(t.Context())
		check(err)
		check((<-l.AcquireAsync(t.Context())).Err)
		check(l.Do(t.Context(), nil))
		_, err = c.Acquire(t.Context(), what, opts...)
		check(err)
		_, err = c.TryAcquire(t.Context(), what, opts...)
		check(err)
		require.Equal(t, tether.Idle, l.State())
		_, open := <-l.Events()
		require.False(t, open)
		require.NoError(t, l.Close())
	}
	_, err := c.Probe(t.Context(), "")
	_, ok := errors.AsType[*tether.ConfigError](err)
	require.True(t, ok)
}

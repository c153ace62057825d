package tether_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
)

func TestLeaseTakesTurns(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		a, b := s.client(t).Lease(leaseKey, tether.WithTTL(time.Second)), s.client(t).Lease(leaseKey, tether.WithTTL(time.Second))
		h, err := a.Acquire(t.Context())
		require.NoError(t, err)
		require.Equal(t, h.ID(), s.admin.Get(t.Context(), leaseKey).Val())
		ttl := s.admin.PTTL(t.Context(), leaseKey).Val()
		require.Greater(t, ttl, 500*time.Millisecond)
		require.LessOrEqual(t, ttl, time.Second)
		_, err = b.TryAcquire(t.Context())
		require.ErrorIs(t, err, tether.ErrHeld)
		require.ErrorContains(t, err, h.ID())
		owned, err := h.Owned(t.Context())
		require.NoError(t, err)
		require.True(t, owned)

		waiting := b.AcquireAsync(t.Context())
		// It is held for longer than its TTL, because it is renewed.
		never(t, 1500*time.Millisecond, func() bool { return len(waiting) > 0 })
		require.NoError(t, h.Release(t.Context()))
		r := <-waiting
		require.NoError(t, r.Err)
		require.NoError(t, r.Hold.Release(context.Background()))
		require.Zero(t, s.admin.Exists(t.Context(), leaseKey).Val())
	})
}

func TestLeaseIsLostWithItsKey(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		l := s.client(t).Lease(leaseKey, tether.WithTTL(600*time.Millisecond))
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.admin.Set(t.Context(), leaseKey, "somebody else", 0).Err())
		s.eventually(t, isClosed(h.Lost()))
		require.ErrorContains(t, h.Err(), "taken by somebody else")
		require.Equal(t, "somebody else", s.admin.Get(t.Context(), leaseKey).Val())
		require.ErrorIs(t, h.Release(t.Context()), h.Err())
		require.NoError(t, s.admin.Del(t.Context(), leaseKey).Err())
		again, err := l.Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, again.Release(t.Context()))
	})
}

func TestDoUnderALeaseJoinsTheLossAndTheErrorOfTheWork(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		l := s.client(t).Lease(leaseKey, tether.WithTTL(time.Hour))
		broken := errors.New("broken")
		for name, work := range map[string]error{"with an error": broken, "without": nil} {
			err := l.Do(t.Context(), func(ctx context.Context, h *tether.Hold) error {
				require.NoError(t, s.admin.Set(ctx, leaseKey, name, 0).Err())
				return work
			})
			_, lost := errors.AsType[*tether.LostError](err)
			require.True(t, lost, "%v", err)
			require.Equal(t, work != nil, errors.Is(err, broken))
			require.True(t, s.keyIs(t, name)(), "the new owner's key is left alone")
			require.NoError(t, s.admin.Del(t.Context(), leaseKey).Err())
		}
		require.ErrorIs(t, l.Do(t.Context(), func(context.Context, *tether.Hold) error { return broken }), broken)
		require.NoError(t, l.TryDo(t.Context(), func(context.Context, *tether.Hold) error { return nil }))
		require.True(t, s.keyIs(t, "")())
	})
}

// The key is lost before the next renewal. The release finds out, and must leave
// another holder's key alone.
func TestReleaseOfALeaseThatIsSomebodyElses(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		for value, take := range map[string]func(h *tether.Hold) error{
			"":        func(*tether.Hold) error { return s.admin.Del(t.Context(), leaseKey).Err() },
			"foreign": func(*tether.Hold) error { return s.admin.Set(t.Context(), leaseKey, "foreign", time.Minute).Err() },
			"similar": func(h *tether.Hold) error { return s.admin.Set(t.Context(), leaseKey, h.ID()+"x", 0).Err() },
		} {
			h, err := s.client(t).Lease(leaseKey).Acquire(t.Context())
			require.NoError(t, err)
			require.NoError(t, take(h))
			left := s.admin.Get(t.Context(), leaseKey).Val()
			lost, ok := errors.AsType[*tether.LostError](h.Release(t.Context()))
			require.True(t, ok, value)
			require.Equal(t, h.ID(), lost.HolderID)
			require.ErrorIs(t, h.Err(), tether.ErrReleased, "it had ended before that was known")
			require.False(t, isClosed(h.Lost())())
			require.Equal(t, left, s.admin.Get(t.Context(), leaseKey).Val())
			require.NoError(t, s.admin.Del(t.Context(), leaseKey).Err())
		}
	})
}

func TestOwnedAsksAboutTheKey(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		l := s.client(t).Lease(leaseKey)
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		owned, err := h.Owned(t.Context())
		require.NoError(t, err)
		require.True(t, owned)

		s.freeze(t)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err = h.Owned(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		s.thaw(t)
		require.NoError(t, h.Err(), "not to know is no loss")

		require.NoError(t, s.admin.Del(t.Context(), leaseKey).Err())
		owned, err = h.Owned(t.Context())
		require.NoError(t, err)
		require.False(t, owned)
		<-h.Lost()
		require.ErrorContains(t, h.Err(), "deleted")
		owned, err = h.Owned(t.Context())
		require.NoError(t, err)
		require.False(t, owned)
	})
}

func TestALeaseThatNobodyReceivesIsGivenBack(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		l := s.client(t).Lease(leaseKey)
		events := l.Events()
		ctx, cancel := context.WithCancel(t.Context())
		result := l.AcquireAsync(ctx)
		s.eventually(t, func() bool { return l.State() == tether.Held })
		cancel()
		s.eventually(t, s.keyIs(t, ""))
		require.ErrorIs(t, (<-result).Err, context.Canceled)
		awaitEvent[tether.ReleasedEvent](t, events)

		result = l.AcquireAsync(t.Context())
		s.eventually(t, func() bool { return l.State() == tether.Held })
		require.NoError(t, l.Close())
		require.ErrorIs(t, (<-result).Err, tether.ErrClosed)
		require.True(t, s.keyIs(t, "")())

		// A hold that was received is kept when its context ends.
		l = s.client(t).Lease(leaseKey)
		ctx, cancel = context.WithCancel(t.Context())
		r := <-l.AcquireAsync(ctx)
		require.NoError(t, r.Err)
		cancel()
		never(t, 50*time.Millisecond, func() bool { return r.Hold.Err() != nil })
		require.NoError(t, r.Hold.Release(t.Context()))
	})
}

func TestAcquiresOfOneLeaseQueue(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		l := s.client(t).Lease(leaseKey)
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		first := l.AcquireAsync(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err = l.Acquire(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "held by this Lock")
		_, err = l.TryAcquire(t.Context())
		require.ErrorIs(t, err, tether.ErrHeld)
		second := l.AcquireAsync(t.Context())
		require.NoError(t, h.Release(t.Context()))
		one := <-first
		require.NoError(t, one.Err)
		require.NotEqual(t, h.ID(), one.Hold.ID())
		require.Empty(t, second)
		require.NoError(t, one.Hold.Release(t.Context()))
		two := <-second
		require.NoError(t, two.Err)
		require.NoError(t, two.Hold.Release(t.Context()))
		require.NoError(t, h.Release(t.Context()), "again")
	})
}

func TestAClosedLease(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		l, rival := c.Lease(leaseKey), c.Lease(leaseKey)
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		events := rival.Events()
		waiting := rival.AcquireAsync(t.Context())
		awaitEvent[tether.WaitingEvent](t, events)
		require.NoError(t, rival.Close())
		require.ErrorIs(t, (<-waiting).Err, tether.ErrClosed)
		require.NoError(t, c.Close())
		require.True(t, isClosed(h.Lost())())
		require.ErrorIs(t, h.Err(), tether.ErrClosed)
		require.ErrorIs(t, h.Release(t.Context()), tether.ErrClosed)
		require.True(t, s.keyIs(t, "")())
		for _, lease := range []*tether.Lock{l, rival, c.Lease("other")} {
			_, err = lease.Acquire(t.Context())
			require.ErrorIs(t, err, tether.ErrClosed)
			require.NoError(t, lease.Close())
		}
		_, err = c.ProbeLease(t.Context(), leaseKey)
		require.ErrorIs(t, err, tether.ErrClosed)
	})
}

// Of several contenders one holds at a time, tokens rise, and no subscription of a
// waiter is left.
func TestOneHolderOfALeaseAtATime(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		const contenders, turns = 5, 8
		inside := make(chan int64, 1)
		inside <- 0
		var wg sync.WaitGroup
		for i := range contenders {
			l := s.client(t).Lease(leaseKey, tether.Fenced(), tether.WithTTL(5*time.Second))
			wg.Go(func() {
				for turn := range turns {
					err := l.Do(t.Context(), func(_ context.Context, h *tether.Hold) error {
						select {
						case last := <-inside:
							if h.Token() <= last {
								t.Errorf("token %d behind %d", h.Token(), last)
							}
							if (i+turn)%3 == 0 { // lose the counter
								s.admin.Del(t.Context(), "{l}-fence")
							}
							inside <- h.Token()
						default:
							t.Error("two at a time")
						}
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		require.True(t, s.keyIs(t, "")())
		s.eventually(t, func() bool { return len(s.admin.PubSubChannels(t.Context(), "*").Val()) == 0 })
	})
}

func TestCancelledWaitsForALeaseLeaveNothing(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		h, err := s.client(t).Lease(leaseKey).Acquire(t.Context())
		require.NoError(t, err)
		s.clientList(t)
		connections, goroutines := len(s.clientList(t)), runtime.NumGoroutine()
		rdb := redis.NewClient(s.options())
		c := tether.New(rdb)
		var wg sync.WaitGroup
		for range 10 {
			l := c.Lease(leaseKey)
			wg.Go(func() {
				for range 30 {
					ctx, cancel := context.WithTimeout(t.Context(), rand.N(10*time.Millisecond))
					_, err := l.Acquire(ctx)
					cancel()
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		s.eventually(t, func() bool { return len(s.admin.PubSubChannels(t.Context(), "*").Val()) == 0 })
		require.NoError(t, c.Close())
		require.NoError(t, rdb.Close())
		s.eventually(t, func() bool { return len(s.clientList(t)) == connections && runtime.NumGoroutine() <= goroutines })
		require.NoError(t, h.Release(t.Context()))
	})
}

func TestDroppedLeaseLeavesNothing(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		before := runtime.NumGoroutine()
		for range 100 {
			_ = c.Lease(leaseKey).State()
		}
		s.eventually(t, func() bool {
			runtime.GC()
			return runtime.NumGoroutine() <= before
		})
		// A Lock that holds is not cleaned up: the work may still run.
		func() {
			_, err := c.Lease(leaseKey, tether.WithTTL(300*time.Millisecond)).Acquire(t.Context())
			require.NoError(t, err)
		}()
		never(t, time.Second, func() bool {
			runtime.GC()
			return s.keyIs(t, "")()
		})
	})
}

func TestOnLostOfALease(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		told := make(chan *tether.Hold, 1)
		l := s.client(t).Lease(leaseKey, tether.WithTTL(300*time.Millisecond), tether.OnLost(func(h *tether.Hold) { told <- h }))
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.admin.Del(t.Context(), leaseKey).Err())
		require.Same(t, h, <-told)
	})
}

func TestLeaseOptionsThatMakeNoSense(t *testing.T) {
	c := noDialClient(t)
	for what, opts := range map[string][]tether.LockOption{
		"WithTTL needs at least 200ms":                         {tether.WithTTL(199 * time.Millisecond)},
		"WithRenewInterval needs at least 100ms":               {tether.WithRenewInterval(99 * time.Millisecond)},
		"WithRenewInterval must be shorter than the TTL of 1s": {tether.WithTTL(time.Second), tether.WithRenewInterval(time.Second)},
		"shorter than the TTL of 1m0s":                         {tether.WithRenewInterval(time.Hour)},
		"Shared is for presence locks":                         {tether.Shared()},
		"WithLabel is for presence locks":                      {tether.WithLabel("x")},
		"WithHealthCheck is for another kind of lock":          {tether.WithHealthCheck(time.Second)},
		"WithSelfCheck is for another kind of lock":            {tether.WithSelfCheck(time.Second)},
		"WithUnavailableTimeout is for another kind":           {tether.WithUnavailableTimeout(time.Second)},
	} {
		_, err := c.Lease(leaseKey, opts...).Acquire(t.Context())
		wrong, ok := errors.AsType[*tether.ConfigError](err)
		require.True(t, ok, "%s: %v", what, err)
		require.Contains(t, wrong.Reason, what)
	}
	_, nameless := c.Lease("").TryAcquire(t.Context())
	_, probed := c.ProbeLease(t.Context(), "")
	_, ttl := c.Lock(leaseKey, tether.WithTTL(time.Minute)).TryAcquire(t.Context())
	_, interval := c.Acquire(t.Context(), leaseKey, tether.WithRenewInterval(time.Second))
	for _, err := range []error{nameless, probed, ttl, interval} {
		_, ok := errors.AsType[*tether.ConfigError](err)
		require.True(t, ok, "%v", err)
	}
}

func TestLeaseWithAnEndedContextDoesNoIO(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := noDialClient(t).Lease(leaseKey).Acquire(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, tether.ErrHeld)
}

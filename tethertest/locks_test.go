package tethertest_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/tethertest"
)

// withVirtualTimeClient runs a test in virtual time, with a server in memory and a
// client of it. It closes both, because synctest waits for their goroutines.
func withVirtualTimeClient(t *testing.T, test func(t *testing.T, s *tethertest.Server, rdb *redis.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := tethertest.Start("")
		require.NoError(t, err)
		defer s.Close()
		rdb := redis.NewClient(s.Options())
		defer func() { require.NoError(t, rdb.Close()) }()
		test(t, s, rdb)
	})
}

// within receives a value that must arrive soon. Without a time-out a missing
// value would not be detected: as long as a ticker runs, virtual time goes on.
func within[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		require.Fail(t, "nothing received")
		panic("unreachable")
	}
}

func newTether(t *testing.T, rdb *redis.Client) *tether.Client {
	c := tether.New(rdb)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func TestWaiterGetsTheLockInVirtualTime(t *testing.T) {
	withVirtualTimeClient(t, func(t *testing.T, s *tethertest.Server, rdb *redis.Client) {
		first, second := newTether(t, rdb), newTether(t, rdb)
		h, err := first.Acquire(t.Context(), "l")
		require.NoError(t, err)
		require.Equal(t, 1, s.Subscribers("l"))
		_, err = second.TryAcquire(t.Context(), "l")
		require.ErrorIs(t, err, tether.ErrHeld)

		// A waiter is not subscribed while it waits.
		waiting := second.Lock("l").AcquireAsync(t.Context())
		<-time.After(time.Minute)
		synctest.Wait()
		require.Equal(t, 1, s.Subscribers("l"))
		select {
		case <-waiting:
			require.Fail(t, "two holders")
		default:
		}

		require.NoError(t, h.Release(t.Context()))
		released := time.Now()
		r := within(t, waiting)
		require.NoError(t, r.Err)
		// It polls every 100 ms, give or take the jitter.
		require.LessOrEqual(t, time.Since(released), 200*time.Millisecond)
		require.NoError(t, r.Hold.Release(t.Context()))
		require.Zero(t, s.Subscribers("l"))
	})
}

func TestKillSubscribersEndsAHold(t *testing.T) {
	withVirtualTimeClient(t, func(t *testing.T, s *tethertest.Server, rdb *redis.Client) {
		c := newTether(t, rdb)
		h, err := c.Acquire(t.Context(), "l")
		require.NoError(t, err)
		other, err := c.Acquire(t.Context(), "other")
		require.NoError(t, err)
		began := time.Now()

		require.Equal(t, 1, s.KillSubscribers("l"))
		within(t, h.Lost())
		require.Zero(t, time.Since(began))
		var lost *tether.LostError
		require.ErrorAs(t, h.Err(), &lost)
		require.Zero(t, s.Subscribers("l"))
		require.Zero(t, s.KillSubscribers("l"))

		require.NoError(t, other.Err())
		again, err := c.Acquire(t.Context(), "l")
		require.NoError(t, err)
		require.NoError(t, again.Release(t.Context()))
		require.NoError(t, other.Release(t.Context()))
	})
}

// The health check is due 10 seconds after the grant, and a demoted server
// answers it at once.
func TestDemotionIsNoticedAtTheHealthCheck(t *testing.T) {
	withVirtualTimeClient(t, func(t *testing.T, s *tethertest.Server, rdb *redis.Client) {
		c := newTether(t, rdb)
		began := time.Now()
		h, err := c.Acquire(t.Context(), "l")
		require.NoError(t, err)
		s.SetRole("replica")
		within(t, h.Lost())
		require.Equal(t, 10*time.Second, time.Since(began))
		require.ErrorIs(t, h.Err(), tether.ErrNotMaster)

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = c.Acquire(ctx, "l")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, tether.ErrNotMaster)

		s.SetRole("master")
		h, err = c.Acquire(t.Context(), "l")
		require.NoError(t, err)
		require.NoError(t, h.Release(t.Context()))
	})
}

// The health check is due 10 seconds after the grant, and its reply times out 5
// seconds later.
func TestFrozenServerLosesItsHolds(t *testing.T) {
	withVirtualTimeClient(t, func(t *testing.T, s *tethertest.Server, rdb *redis.Client) {
		c := newTether(t, rdb)
		began := time.Now()
		h, err := c.Acquire(t.Context(), "l")
		require.NoError(t, err)
		s.Freeze()
		within(t, h.Lost())
		require.Equal(t, 15*time.Second, time.Since(began))
		// The frozen server has not noticed the end of the connection.
		require.Equal(t, 1, s.Subscribers("l"))

		s.Thaw()
		again, err := c.Acquire(t.Context(), "l")
		require.NoError(t, err)
		require.NoError(t, again.Release(t.Context()))
		synctest.Wait()
		require.Zero(t, s.Subscribers("l"))
	})
}

// After a thaw the server runs the commands that have arrived meanwhile. A freeze
// that is shorter than the health check's time-out does not end a hold.
func TestThawedServerGoesOn(t *testing.T) {
	withVirtualTimeClient(t, func(t *testing.T, s *tethertest.Server, rdb *redis.Client) {
		c := newTether(t, rdb)
		h, err := c.Acquire(t.Context(), "l")
		require.NoError(t, err)
		require.NoError(t, rdb.Set(t.Context(), "n", 1, 0).Err())

		s.Freeze()
		began := time.Now()
		answered := make(chan time.Duration, 1)
		go func() {
			// The client's own read time-out is 3 seconds.
			if rdb.Incr(t.Context(), "n").Err() == nil {
				answered <- time.Since(began)
			}
		}()
		<-time.After(2 * time.Second)
		synctest.Wait()
		require.Empty(t, answered)
		s.Thaw()
		require.Equal(t, 2*time.Second, within(t, answered))
		require.Equal(t, "2", rdb.Get(t.Context(), "n").Val())

		<-time.After(time.Minute)
		require.NoError(t, h.Err())
		require.NoError(t, h.Release(t.Context()))
	})
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	withVirtualTimeClient(t, func(t *testing.T, s *tethertest.Server, rdb *redis.Client) {
		c := newTether(t, rdb)
		for _, name := range []string{"a", "b"} {
			h, err := c.Acquire(t.Context(), name)
			require.NoError(t, err)
			require.NoError(t, h.Release(t.Context()))
		}
		connections := func() int {
			list, err := rdb.ClientList(t.Context()).Result()
			require.NoError(t, err)
			return strings.Count(list, "\n")
		}
		// One connection of rdb, and one on which both locks were acquired.
		require.Equal(t, 2, connections())
		<-time.After(29 * time.Second)
		require.Equal(t, 2, connections())
		<-time.After(2 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, connections())
	})
}

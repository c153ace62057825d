package tethertest_test

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/tethertest"
	"github.com/tetherlock/tether/wire"
)

// withVirtualTime runs a test in a synctest bubble, with a server in memory.
func withVirtualTime(t *testing.T, test func(t *testing.T, s *tethertest.Server)) {
	synctest.Test(t, func(t *testing.T) {
		s, err := tethertest.Start("")
		require.NoError(t, err)
		defer s.Close()
		test(t, s)
	})
}

// Keys expire in virtual time, to the millisecond, and TIME returns it.
func TestVirtualExpiry(t *testing.T) {
	withVirtualTime(t, func(t *testing.T, s *tethertest.Server) {
		rdb := redis.NewClient(s.Options())
		defer rdb.Close()
		ctx := t.Context()
		require.NoError(t, rdb.Set(ctx, "lease", "mine", time.Hour).Err())
		began := rdb.Time(ctx).Val()

		<-time.After(time.Hour - time.Millisecond)
		require.Equal(t, "mine", rdb.Get(ctx, "lease").Val())
		require.Equal(t, time.Millisecond, rdb.PTTL(ctx, "lease").Val())

		<-time.After(time.Millisecond)
		require.ErrorIs(t, rdb.Get(ctx, "lease").Err(), redis.Nil)
		require.Equal(t, time.Hour, rdb.Time(ctx).Val().Sub(began))
	})
}

// A subscriber that waits does not stop virtual time, because no goroutine of the
// server waits for the network.
func TestVirtualSubscriber(t *testing.T) {
	withVirtualTime(t, func(t *testing.T, s *tethertest.Server) {
		rdb := redis.NewClient(s.Options())
		defer rdb.Close()
		sub := dial(t, s)
		defer sub.Close()
		require.Equal(t, push("subscribe", "c"), sub.ask(t, "SUBSCRIBE", "c"))

		began := time.Now()
		publisher := time.AfterFunc(24*time.Hour, func() { rdb.Publish(context.Background(), "c", "at last") })
		defer publisher.Stop()
		v, err := sub.Read()
		require.NoError(t, err)
		require.Equal(t, "at last", v.Elems[2].Str)
		require.Equal(t, 24*time.Hour, time.Since(began))
		synctest.Wait()
	})
}

// A frozen server keeps its connections, accepts others, and does not reply. After
// the thaw it runs the commands that have arrived meanwhile.
func TestFreeze(t *testing.T) {
	withVirtualTime(t, func(t *testing.T, s *tethertest.Server) {
		old := dial(t, s)
		defer old.Close()
		require.Equal(t, push("subscribe", "c"), old.ask(t, "SUBSCRIBE", "c"))

		s.Freeze()
		fresh := dial(t, s)
		defer fresh.Close()
		for _, c := range []*peer{old, fresh} {
			require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
			_, err := c.Write(wire.AppendCommand(nil, "PING", "hello"))
			require.NoError(t, err)
			_, err = c.Conn.Read(make([]byte, 1))
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			require.NoError(t, c.SetDeadline(time.Time{}))
		}
		require.Equal(t, 1, s.Subscribers("c"), "the methods of Server still work")

		s.Thaw()
		v, err := old.Read()
		require.NoError(t, err)
		require.Equal(t, "hello", v.Elems[1].Str)
		v, err = fresh.Read()
		require.NoError(t, err)
		require.Equal(t, "hello", v.Str)
	})
}

// KillSubscribers and Close work on a frozen server.
func TestFrozenEnds(t *testing.T) {
	withVirtualTime(t, func(t *testing.T, s *tethertest.Server) {
		c := dial(t, s)
		defer c.Close()
		require.Equal(t, push("subscribe", "c"), c.ask(t, "SUBSCRIBE", "c"))
		s.Freeze()
		waiting := dial(t, s)
		defer waiting.Close()
		require.Equal(t, 1, s.KillSubscribers("c"))
		require.Equal(t, 0, s.Subscribers("c"))
		c.requireClosed(t)
		s.Close()
		waiting.requireClosed(t)
	})
}

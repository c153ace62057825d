package tether_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/tethertest"
)

// An idle connection loses the lock's name within a second, and is closed after
// 30 seconds.
func TestIdleSocketsAreClosedInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := tethertest.Start("")
		require.NoError(t, err)
		defer srv.Close()
		rdb := redis.NewClient(srv.Options())
		defer func() { require.NoError(t, rdb.Close()) }()
		c := tether.New(rdb)
		defer func() { require.NoError(t, c.Close()) }()
		s := server{admin: rdb}
		names := func() (names []string) {
			for _, client := range s.clientList(t) {
				if client["name"] != "" {
					names = append(names, client["name"])
				}
			}
			return names
		}

		h, err := c.Acquire(t.Context(), "l")
		require.NoError(t, err)
		require.NoError(t, h.Release(t.Context()))
		require.Equal(t, []string{"l-lock-" + h.ID()}, names())
		<-time.After(900 * time.Millisecond)
		require.Equal(t, []string{"tether-idle"}, names())
		<-time.After(29 * time.Second)
		require.Equal(t, []string{"tether-idle"}, names())
		<-time.After(time.Second)
		require.Empty(t, names())
	})
}

// In a synctest bubble a Lock that is dropped is not cleaned up before Close:
// cleanups run outside of the bubble, and may not use its channels. Go panics if
// they do.
func TestDroppedInABubble(t *testing.T) {
	for range 3 {
		synctest.Test(t, func(t *testing.T) {
			srv, err := tethertest.Start("")
			require.NoError(t, err)
			defer srv.Close()
			rdb := redis.NewClient(srv.Options())
			defer func() { require.NoError(t, rdb.Close()) }()
			c := tether.New(rdb)
			defer func() { require.NoError(t, c.Close()) }()
			for range 10 {
				h, err := c.Lock("l").Acquire(t.Context())
				require.NoError(t, err)
				require.NoError(t, h.Release(t.Context()))
			}
			_, err = c.Lock("forgotten").Acquire(t.Context())
			require.NoError(t, err)
			runtime.GC()
		})
		runtime.GC()
	}
}

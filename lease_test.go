package tether_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
)

func TestLeaseTakesTurns(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		a, b := s.client(t).Lease("l", tether.WithTTL(time.Second)), s.client(t).Lease("l", tether.WithTTL(time.Second))
		h, err := a.Acquire(t.Context())
		require.NoError(t, err)
		require.Equal(t, h.ID(), s.admin.Get(t.Context(), "l").Val())
		ttl := s.admin.PTTL(t.Context(), "l").Val()
		require.Greater(t, ttl, 500*time.Millisecond)
		require.LessOrEqual(t, ttl, time.Second)
		_, err = b.TryAcquire(t.Context())
		require.ErrorIs(t, err, tether.ErrHeld)
		require.ErrorContains(t, err, h.ID())
		owned, err := h.Owned(t.Context())
		require.NoError(t, err)
		require.True(t, owned)

		waiting := b.AcquireAsync(t.Context())
		// It is renewed for longer than it lives.
		never(t, 1500*time.Millisecond, func() bool { return len(waiting) > 0 })
		require.NoError(t, h.Release(t.Context()))
		r := <-waiting
		require.NoError(t, r.Err)
		require.NoError(t, r.Hold.Release(context.Background()))
		require.Zero(t, s.admin.Exists(t.Context(), "l").Val())
	})
}

func TestLeaseIsLostWithItsKey(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		l := s.client(t).Lease("l", tether.WithTTL(600*time.Millisecond))
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.admin.Set(t.Context(), "l", "somebody else", 0).Err())
		s.until(t, closed(h.Lost()))
		require.ErrorContains(t, h.Err(), "taken by somebody else")
		require.Equal(t, "somebody else", s.admin.Get(t.Context(), "l").Val())
		require.ErrorIs(t, h.Release(t.Context()), h.Err())
		require.NoError(t, s.admin.Del(t.Context(), "l").Err())
		again, err := l.Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, again.Release(t.Context()))
	})
}

package tether_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
)

func TestProbeLease(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		list, err := c.ProbeLease(t.Context(), leaseKey)
		require.NoError(t, err)
		require.NotNil(t, list)
		require.Empty(t, list)

		h, err := c.Lease(leaseKey).Acquire(t.Context())
		require.NoError(t, err)
		list, err = c.ProbeLease(t.Context(), leaseKey)
		require.NoError(t, err)
		require.Len(t, list, 1)
		ttl := list[0].TTL
		require.Greater(t, ttl, 50*time.Second)
		require.LessOrEqual(t, ttl, time.Minute)
		require.Equal(t, tether.Holder{ID: h.ID(), Mode: "exclusive", TTL: ttl}, list[0])
		require.Equal(t, h.ID()+" (exclusive, expires in "+ttl.String()+")", list[0].String())
		require.NoError(t, h.Release(t.Context()))
	})
}

// Another program may store any value in the key. A value that is not one printable
// word is quoted, and a long one is cut off.
func TestUnusualValuesInTheKeyOfALease(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		for value, shown := range map[string]string{
			"0123456789abcdef0123456789abcdef": "0123456789abcdef0123456789abcdef", // redis-py's
			"host:1234":                        "host:1234",
			"größer":                           "größer",
			"":                                 `""`,
			"two words":                        `"two words"`,
			"\x00\xff\x1b[2J":                  `"\x00\xff\x1b[2J"`,
			"line\n":                           `"line\n"`,
			strings.Repeat("x", 5000):          strings.Repeat("x", 128) + "…",
		} {
			require.NoError(t, s.admin.Set(t.Context(), leaseKey, value, 0).Err())
			list, err := c.ProbeLease(t.Context(), leaseKey)
			require.NoError(t, err)
			require.Equal(t, []tether.Holder{{ID: shown, Mode: "exclusive"}}, list)
			_, err = c.Lease(leaseKey).TryAcquire(t.Context())
			require.ErrorIs(t, err, tether.ErrHeld)
			require.ErrorContains(t, err, "is held by "+shown+" (exclusive)")
			require.True(t, s.keyIs(t, value)(), "it is left alone")
		}
	})
}

func TestProbeLeaseFails(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		require.NoError(t, s.admin.LPush(t.Context(), leaseKey, "a").Err())
		_, err := c.ProbeLease(t.Context(), leaseKey)
		require.ErrorContains(t, err, `probe "l": EVAL: WRONGTYPE`)

		o := s.options()
		o.ReadTimeout = 200 * time.Millisecond // of what is left behind
		o.MaxRetries = -1
		c = clientOf(t, redis.NewClient(o))
		s.freeze(t)
		defer s.thaw(t)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err = c.ProbeLease(ctx, leaseKey)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Less(t, time.Since(began), 150*time.Millisecond)
		_, err = c.ProbeLease(t.Context(), leaseKey)
		require.ErrorContains(t, err, "timeout")
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	})
}

// Under the race detector a sync.Pool drops values at random, so that the number of
// allocations varies.

//go:build !race

package tether_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/internal/redistest"
)

// An acquire and a release of a free lock may not allocate more than today. The
// allocations of the lock's goroutines count too.
func TestPairAllocations(t *testing.T) {
	s := redistest.Start(t)
	c := clientOf(t, redis.NewClient(s.Options()))
	kept := c.Lock("pair")
	acquires := map[string]func(context.Context) (*tether.Hold, error){
		"kept":     kept.Acquire,
		"one-shot": func(ctx context.Context) (*tether.Hold, error) { return c.Acquire(ctx, "once") },
	}
	for name, ceiling := range map[string]float64{"kept": 20, "one-shot": 80} {
		t.Run(name, func(t *testing.T) {
			pair := func() {
				h, err := acquires[name](t.Context())
				require.NoError(t, err)
				require.NoError(t, h.Release(t.Context()))
			}
			pair()
			require.LessOrEqual(t, testing.AllocsPerRun(200, pair), ceiling)
		})
	}
}

// The race detector gives each goroutine and each object memory of its own.

//go:build !race

package tether_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/internal/redistest"
)

// memoryOfAHold is what a held lock takes at most, in bytes: its live memory and
// the stacks of its two goroutines.
const memoryOfAHold = 9000

// A held lock costs so much memory and no more. The first locks are there before
// the count begins: with them comes what a process has only once.
func TestMemoryOfAHold(t *testing.T) {
	const first, more = 200, 1000
	s := redistest.Start(t)
	c := clientOf(t, redis.NewClient(s.Options()))
	var locks []*tether.Lock
	var holds []*tether.Hold
	hold := func(n int) {
		for range n {
			l := c.Lock(fmt.Sprintf("memory-%d", len(holds)))
			h, err := l.Acquire(t.Context())
			require.NoError(t, err)
			locks, holds = append(locks, l), append(holds, h)
		}
	}
	hold(first)
	before := liveMemory()
	hold(more)
	each := 0
	for limit := time.Now().Add(10 * time.Second); time.Now().Before(limit); {
		// The goroutines settle a moment after the grant.
		if each = (liveMemory() - before) / more; each <= memoryOfAHold {
			break
		}
	}
	require.LessOrEqual(t, each, memoryOfAHold)
	require.Positive(t, each)
	runtime.KeepAlive(locks)
	runtime.KeepAlive(holds)
}

// liveMemory is the live memory and the stacks of the process. The collector frees
// some of it a round later, and shrinks a stack by half each time.
func liveMemory() int {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

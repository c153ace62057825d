package interop

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each side's pings of itself are answered by the other as well.
func TestSelfChecksOfBothSidesPassAtOnce(t *testing.T) {
	duels(t, tells, func(t *testing.T, d duel) {
		sides := []*peer{d.first.start(t), d.second.start(t)}
		seen := watch(t, d.channel)
		for _, v := range sides {
			v.open(t, lock{Channel: d.channel, Shared: true, SelfCheck: 0.2, Unavailable: 10})
			v.mustSucceed(t)
		}
		before := seen.pings.Load()
		until(t, "self-checks", func() bool { return seen.pings.Load() >= before+16 })
		for _, v := range sides {
			require.False(t, v.isLost(t))
			v.release(t)
		}
	})
}

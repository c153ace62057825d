package interop

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTokensDrawnByBothSidesRise(t *testing.T) {
	duels(t, tells, func(t *testing.T, d duel) {
		sides := []*peer{d.first.start(t), d.second.start(t)}
		for _, v := range sides {
			v.open(t, lock{Channel: d.channel, Fenced: true})
		}
		var tokens []int64
		for range 4 {
			for _, v := range sides {
				tokens = append(tokens, v.acquire(t).Token)
				v.release(t)
			}
		}
		// And handed over, when the token is drawn in the middle of a contest.
		for i := range 4 {
			holder, waiter := sides[i%2], sides[(i+1)%2]
			tokens = append(tokens, holder.acquire(t).Token)
			seen := watch(t, d.channel)
			waiting := waiter.acquiring(t)
			seen.waits(t, waiter, waiting)
			holder.release(t)
			tokens = append(tokens, waiter.granted(t, waiting).Token)
			waiter.release(t)
		}
		require.Positive(t, tokens[0])
		require.IsIncreasing(t, tokens)
	})
}

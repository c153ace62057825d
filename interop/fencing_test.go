package interop

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTokensDrawnByBothSidesRise(t *testing.T) {
	forPairs(t, withElections, func(t *testing.T, p pair) {
		sides := []*process{p.first.start(t), p.second.start(t)}
		for _, peer := range sides {
			peer.open(t, lock{Channel: p.channel, Fenced: true})
		}
		var tokens []int64
		for range 4 {
			for _, peer := range sides {
				tokens = append(tokens, peer.acquire(t).Token)
				peer.release(t)
			}
		}
		// A waiter draws its token while others are subscribed. That is another
		// path than the one for a free lock.
		for i := range 4 {
			holder, waiter := sides[i%2], sides[(i+1)%2]
			tokens = append(tokens, holder.acquire(t).Token)
			pings := countPings(t, p.channel)
			waiting := waiter.acquireAsync(t)
			pings.requireWaiting(t, waiter, waiting)
			holder.release(t)
			tokens = append(tokens, waiter.granted(t, waiting).Token)
			waiter.release(t)
		}
		require.Positive(t, tokens[0])
		require.IsIncreasing(t, tokens)
	})
}

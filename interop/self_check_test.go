package interop

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A self-check is a ping to oneself on the channel. The other side answers it too,
// and its answer must not be taken for one's own.
func TestSelfChecksOfBothSidesPassAtOnce(t *testing.T) {
	forPairs(t, withElections, func(t *testing.T, p pair) {
		sides := []*process{p.first.start(t), p.second.start(t)}
		pings := countPings(t, p.channel)
		for _, peer := range sides {
			peer.open(t, lock{Channel: p.channel, Shared: true, SelfCheck: 0.2, Unavailable: 10})
			peer.tryMustSucceed(t)
		}
		before := pings.count.Load()
		until(t, "self-checks", func() bool { return pings.count.Load() >= before+16 })
		for _, peer := range sides {
			require.False(t, peer.isLost(t))
			peer.release(t)
		}
	})
}

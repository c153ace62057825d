package interop

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A connection's name is <channel>-lock-<id>. A participant of the channel
// "a-lock-b" has a name that begins like those of the channel "a", and must not be
// reaped by participants of "a".
func TestReapingLeavesNeighbourChannelsAlone(t *testing.T) {
	forPairs(t, withRecords, func(t *testing.T, p pair) {
		neighbour := p.first.start(t)
		neighbour.open(t, lock{Channel: p.channel + "-lock-b"})
		neighbour.tryMustSucceed(t)

		frozen, reaper := p.first.start(t), p.second.start(t)
		frozen.open(t, lock{Channel: p.channel})
		reaper.open(t, lock{Channel: p.channel})
		frozen.tryMustSucceed(t)
		frozen.signal(t, syscall.SIGSTOP)
		reaper.acquire(t)

		if reaper.python != nil && !p.python.withElections {
			// 4.1 ends every connection whose name has the prefix. Our holder is told
			// of its loss at once.
			neighbour.awaitLoss(t)
			return
		}
		require.False(t, neighbour.isLost(t))
		reaper.open(t, lock{Channel: p.channel + "-lock-b"})
		reaper.tryMustFail(t)
		neighbour.release(t)
		reaper.tryMustSucceed(t)
	})
}

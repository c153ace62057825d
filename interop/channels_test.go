package interop

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// The names of connections are <channel>-lock-<id>: a channel's name with
// -lock- in it looks like a participant of a shorter one.
func TestReapingLeavesNeighbourChannelsAlone(t *testing.T) {
	duels(t, records, func(t *testing.T, d duel) {
		neighbour := d.first.start(t)
		neighbour.open(t, lock{Channel: d.channel + "-lock-b"})
		neighbour.mustSucceed(t)

		frozen, reaper := d.first.start(t), d.second.start(t)
		frozen.open(t, lock{Channel: d.channel})
		reaper.open(t, lock{Channel: d.channel})
		frozen.mustSucceed(t)
		frozen.signal(t, syscall.SIGSTOP)
		reaper.acquire(t)

		if reaper.python != nil && !d.python.tells {
			// 4.1 goes by the prefix. Our holder is told of its loss at once.
			neighbour.toldOfTheLoss(t)
			return
		}
		require.False(t, neighbour.isLost(t))
		reaper.open(t, lock{Channel: d.channel + "-lock-b"})
		reaper.mustFail(t)
		neighbour.release(t)
		reaper.mustSucceed(t)
	})
}

package interop

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAKilledHoldersLockIsFree(t *testing.T) {
	forPairs(t, allVersions, func(t *testing.T, p pair) {
		first, second, pings := p.first.start(t), p.second.start(t), countPings(t, p.channel)
		first.open(t, lock{Channel: p.channel})
		second.open(t, lock{Channel: p.channel})
		first.tryMustSucceed(t)
		waiting := second.acquireAsync(t)
		pings.requireWaiting(t, second, waiting)
		first.signal(t, syscall.SIGKILL)
		second.granted(t, waiting)
		second.release(t)
	})
}

func TestAFrozenHolderIsReapedAndToldWhenItWakes(t *testing.T) {
	forPairs(t, withRecords, func(t *testing.T, p pair) {
		first, second := p.first.start(t), p.second.start(t)
		first.open(t, lock{Channel: p.channel})
		second.open(t, lock{Channel: p.channel})
		first.tryMustSucceed(t)
		first.signal(t, syscall.SIGSTOP)
		second.acquire(t)
		first.signal(t, syscall.SIGCONT)
		if first.python != nil && !p.python.withElections {
			// redis-py subscribes again, and 4.1 goes on as a holder. Later
			// participants see it and are not granted.
			until(t, "it subscribes again", func() bool { return subscribers(t, shared.Client(t), p.channel) == 2 })
			second.release(t)
			second.tryMustFail(t)
			return
		}
		first.awaitLoss(t)
		first.tryMustFail(t)
		second.release(t)
		first.acquire(t)
		first.release(t)
	})
}

// Participants of portalocker 3.2 have no id. All of them have the same
// connection name.
func TestTetherReapsAFrozenHolderOf32(t *testing.T) {
	forVersions(t, withoutRecords, func(t *testing.T, p python) {
		channel := newChannel()
		first, second := startPython(t, p, shared), startTether(t, shared)
		first.open(t, lock{Channel: channel})
		second.open(t, lock{Channel: channel})
		first.tryMustSucceed(t)
		first.signal(t, syscall.SIGSTOP)
		second.acquire(t)
		second.release(t)
	})
}

// Portalocker 3.2 looks for the connection name of 3.2, which tether's holders do
// not have. So the lock stays held until the frozen process ends or a newer
// participant reaps it. That is safe.
func TestPortalocker32CannotReapAFrozenTetherHolder(t *testing.T) {
	forVersions(t, withoutRecords, func(t *testing.T, p python) {
		channel := newChannel()
		first, second, pings := startTether(t, shared), startPython(t, p, shared), countPings(t, channel)
		first.open(t, lock{Channel: channel})
		second.open(t, lock{Channel: channel})
		first.tryMustSucceed(t)
		first.signal(t, syscall.SIGSTOP)
		waiting := second.acquireAsync(t)
		pings.requireWaiting(t, second, waiting)
		first.signal(t, syscall.SIGCONT)
		require.False(t, first.isLost(t))
		first.release(t)
		second.granted(t, waiting)
		second.release(t)
	})
}

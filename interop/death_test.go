package interop

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAKilledHoldersLockIsFree(t *testing.T) {
	duels(t, everyone, func(t *testing.T, d duel) {
		first, second, seen := d.first.start(t), d.second.start(t), watch(t, d.channel)
		first.open(t, lock{Channel: d.channel})
		second.open(t, lock{Channel: d.channel})
		first.mustSucceed(t)
		waiting := second.acquiring(t)
		seen.waits(t, second, waiting)
		first.signal(t, syscall.SIGKILL)
		second.granted(t, waiting)
		second.release(t)
	})
}

func TestAFrozenHolderIsReapedAndToldWhenItWakes(t *testing.T) {
	duels(t, records, func(t *testing.T, d duel) {
		first, second := d.first.start(t), d.second.start(t)
		first.open(t, lock{Channel: d.channel})
		second.open(t, lock{Channel: d.channel})
		first.mustSucceed(t)
		first.signal(t, syscall.SIGSTOP)
		second.acquire(t)
		first.signal(t, syscall.SIGCONT)
		if first.python != nil && !d.python.tells {
			// It subscribes again and believes that it still holds. Others see
			// that, and keep out.
			until(t, "it subscribes again", func() bool { return subscribers(t, shared.Client(t), d.channel) == 2 })
			second.release(t)
			second.mustFail(t)
			return
		}
		first.toldOfTheLoss(t)
		first.mustFail(t)
		second.release(t)
		first.acquire(t)
		first.release(t)
	})
}

// Portalocker 3.2 has no identity: everybody is called alike.
func TestTetherReapsAFrozenHolderOf32(t *testing.T) {
	onPythons(t, oldest, func(t *testing.T, p python) {
		channel := newChannel()
		first, second := startPython(t, p, shared), startTether(t, shared)
		first.open(t, lock{Channel: channel})
		second.open(t, lock{Channel: channel})
		first.mustSucceed(t)
		first.signal(t, syscall.SIGSTOP)
		second.acquire(t)
		second.release(t)
	})
}

// It looks for the name that only its own kind bears. So the lock stays taken,
// which is safe, until the process ends or somebody else reaps it.
func TestPortalocker32CannotReapAFrozenTetherHolder(t *testing.T) {
	onPythons(t, oldest, func(t *testing.T, p python) {
		channel := newChannel()
		first, second, seen := startTether(t, shared), startPython(t, p, shared), watch(t, channel)
		first.open(t, lock{Channel: channel})
		second.open(t, lock{Channel: channel})
		first.mustSucceed(t)
		first.signal(t, syscall.SIGSTOP)
		waiting := second.acquiring(t)
		seen.waits(t, second, waiting)
		first.signal(t, syscall.SIGCONT)
		require.False(t, first.isLost(t))
		first.release(t)
		second.granted(t, waiting)
		second.release(t)
	})
}

package interop

import "testing"

func TestAnExclusiveHoldKeepsTheOtherOutAndIsHandedOver(t *testing.T) {
	duels(t, everyone, func(t *testing.T, d duel) {
		first, second, seen := d.first.start(t), d.second.start(t), watch(t, d.channel)
		first.open(t, lock{Channel: d.channel})
		second.open(t, lock{Channel: d.channel})

		first.mustSucceed(t)
		second.mustFail(t)
		waiting := second.acquiring(t)
		seen.waits(t, second, waiting)
		first.release(t)
		second.granted(t, waiting)

		first.mustFail(t)
		waiting = first.acquiring(t)
		seen.waits(t, first, waiting)
		second.release(t)
		first.granted(t, waiting)
		first.release(t)
	})
}

package interop

import "testing"

func TestAnExclusiveHoldKeepsTheOtherOutAndIsHandedOver(t *testing.T) {
	forPairs(t, allVersions, func(t *testing.T, p pair) {
		first, second, pings := p.first.start(t), p.second.start(t), countPings(t, p.channel)
		first.open(t, lock{Channel: p.channel})
		second.open(t, lock{Channel: p.channel})

		first.tryMustSucceed(t)
		second.tryMustFail(t)
		waiting := second.acquireAsync(t)
		pings.requireWaiting(t, second, waiting)
		first.release(t)
		second.granted(t, waiting)

		first.tryMustFail(t)
		waiting = first.acquireAsync(t)
		pings.requireWaiting(t, first, waiting)
		second.release(t)
		first.granted(t, waiting)
		first.release(t)
	})
}

package interop

import "testing"

func TestReadersHoldTogether(t *testing.T) {
	forPairs(t, withRecords, func(t *testing.T, p pair) {
		readers := []*process{p.first.start(t), p.second.start(t), p.first.start(t)}
		for _, reader := range readers {
			reader.open(t, lock{Channel: p.channel, Shared: true})
			reader.tryMustSucceed(t)
		}
		for _, reader := range readers {
			reader.release(t)
		}
	})
}

func TestAReaderKeepsAWriterOut(t *testing.T) {
	forPairs(t, withRecords, func(t *testing.T, p pair) {
		checkExclusion(t, p, lock{Channel: p.channel, Shared: true}, lock{Channel: p.channel})
	})
}

func TestAWriterKeepsAReaderOut(t *testing.T) {
	forPairs(t, withRecords, func(t *testing.T, p pair) {
		checkExclusion(t, p, lock{Channel: p.channel}, lock{Channel: p.channel, Shared: true})
	})
}

// checkExclusion checks that other is granted when holder releases, and not before.
func checkExclusion(t *testing.T, p pair, holder, other lock) {
	first, second, pings := p.first.start(t), p.second.start(t), countPings(t, p.channel)
	first.open(t, holder)
	second.open(t, other)
	first.tryMustSucceed(t)
	second.tryMustFail(t)
	waiting := second.acquireAsync(t)
	pings.requireWaiting(t, second, waiting)
	first.release(t)
	second.granted(t, waiting)
	second.release(t)
}

func TestAWriterWaitsForReadersAndKeepsNewOnesOut(t *testing.T) {
	forPairs(t, withRecords, func(t *testing.T, p pair) {
		reader, other := p.first.start(t), p.first.start(t)
		writer, late := p.second.start(t), p.second.start(t)
		for _, peer := range []*process{reader, other, late} {
			peer.open(t, lock{Channel: p.channel, Shared: true})
		}
		writer.open(t, lock{Channel: p.channel})
		reader.tryMustSucceed(t)
		other.tryMustSucceed(t)

		// The records of a writer of 4.1 do not say that it is elected, and it gives
		// its election up if a newcomer's answer takes the place of its own. So it
		// may have to wait for new readers too.
		elects := writer.python == nil || writer.python.withElections
		waiting := writer.acquireAsync(t)
		awaitParticipant(t, p.channel, participant{Mode: "pending", Elected: elects})
		pings := countPings(t, p.channel)
		if elects {
			late.tryMustFail(t)
		}
		other.release(t)
		pings.requireWaiting(t, writer, waiting)
		if elects {
			other.tryMustFail(t)
		}
		reader.release(t)
		writer.granted(t, waiting)
		late.tryMustFail(t)
		writer.release(t)
		late.acquire(t)
		late.release(t)
	})
}

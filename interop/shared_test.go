package interop

import "testing"

func TestReadersHoldTogether(t *testing.T) {
	duels(t, records, func(t *testing.T, d duel) {
		readers := []*peer{d.first.start(t), d.second.start(t), d.first.start(t)}
		for _, reader := range readers {
			reader.open(t, lock{Channel: d.channel, Shared: true})
			reader.mustSucceed(t)
		}
		for _, reader := range readers {
			reader.release(t)
		}
	})
}

func TestAReaderKeepsAWriterOut(t *testing.T) {
	duels(t, records, func(t *testing.T, d duel) {
		excludes(t, d, lock{Channel: d.channel, Shared: true}, lock{Channel: d.channel})
	})
}

func TestAWriterKeepsAReaderOut(t *testing.T) {
	duels(t, records, func(t *testing.T, d duel) {
		excludes(t, d, lock{Channel: d.channel}, lock{Channel: d.channel, Shared: true})
	})
}

// excludes shows that a holder keeps the other one out until it leaves.
func excludes(t *testing.T, d duel, holder, other lock) {
	first, second, seen := d.first.start(t), d.second.start(t), watch(t, d.channel)
	first.open(t, holder)
	second.open(t, other)
	first.mustSucceed(t)
	second.mustFail(t)
	waiting := second.acquiring(t)
	seen.waits(t, second, waiting)
	first.release(t)
	second.granted(t, waiting)
	second.release(t)
}

func TestAWriterWaitsForReadersAndKeepsNewOnesOut(t *testing.T) {
	duels(t, records, func(t *testing.T, d duel) {
		reader, other := d.first.start(t), d.first.start(t)
		writer, late := d.second.start(t), d.second.start(t)
		for _, v := range []*peer{reader, other, late} {
			v.open(t, lock{Channel: d.channel, Shared: true})
		}
		writer.open(t, lock{Channel: d.channel})
		reader.mustSucceed(t)
		other.mustSucceed(t)

		// A writer of 4.1 says nothing of its election, and gives it up when a
		// newcomer's answer takes the place of its own. So it may have to wait
		// for new readers as well.
		elects := writer.python == nil || writer.python.tells
		waiting := writer.acquiring(t)
		awaitMember(t, d.channel, member{Mode: "pending", Elected: elects})
		seen := watch(t, d.channel)
		if elects {
			late.mustFail(t)
		}
		other.release(t)
		seen.waits(t, writer, waiting)
		if elects {
			other.mustFail(t)
		}
		reader.release(t)
		writer.granted(t, waiting)
		late.mustFail(t)
		writer.release(t)
		late.acquire(t)
		late.release(t)
	})
}

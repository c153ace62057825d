package protocol

// Verdict is what the records of a conclusive probe permit.
//
// Verdicts are ordered from the most cautious to the most permissive. The
// verdict on a set of records is the minimum of the verdicts on the single
// records. So the order of the records and duplicates do not matter, and an
// additional record can only make the verdict more cautious. The zero value is
// not a verdict, and no function returns it.
type Verdict uint8

const (
	// Demote, from [Confirm]: give up the promotion, leave the channel, and try
	// again as a new contender.
	Demote Verdict = iota + 1
	// Held, from [Elect] and [Join]: there is an incompatible holder, or a writer
	// that is already elected. Leave the channel and sleep.
	//
	// Whether a try is refused does not depend on Held but on [Blocking]: for a
	// writer, another writer that is only elected is not a holder.
	Held
	// Defer, from [Elect] and [Join]: another contender goes first, but it is
	// not elected and may not stay. Leave the channel, and try again after a few
	// round trips. To sleep would be wrong: if the other leaves as well, the lock
	// is free, and nobody wakes the sleepers.
	Defer
	// Wait, from [Elect]: the writer is elected, but readers have not left yet,
	// or a peer that may not know of the election is still undecided. Stay on
	// the channel, advertise the election ([Elected]), and probe again.
	Wait
	// Again, from [Confirm]: undecided. Keep the promotion and probe again. A
	// writer that runs out of time for that demotes.
	Again
	// Promote, from [Elect]: the writer is elected and there are no readers.
	// Make the own record exclusive, then confirm. It is not a grant.
	Promote
	// Granted, from [Confirm] and [Join]: the lock is granted.
	Granted
)

// String returns the verdict in lower case, or "none".
func (v Verdict) String() string {
	switch v {
	case Demote:
		return "demote"
	case Held:
		return "held"
	case Defer:
		return "defer"
	case Wait:
		return "wait"
	case Again:
		return "again"
	case Promote:
		return "promote"
	case Granted:
		return "granted"
	default:
		return "none"
	}
}

// mostCautious returns the minimum of best and of the verdicts on the records of
// all participants other than self.
func mostCautious(best Verdict, self string, others []Record, verdictOn func(Record) Verdict) Verdict {
	verdict := best
	for _, r := range others {
		if r.isFrom(self) {
			continue
		}
		verdict = min(verdict, verdictOn(r))
	}
	return verdict
}

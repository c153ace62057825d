package protocol

// Verdict is what a conclusive probe permits its taker to do next.
//
// Verdicts are ordered from the most cautious to the most permissive, and the
// verdict on a set of records is the least of the verdicts on each record
// alone. So the order of the records and repeated records make no difference,
// and one more record can only make the verdict more cautious. The zero value
// is no verdict; no function returns it.
type Verdict uint8

const (
	// Demote, from [Confirm]: the promotion lost. Give it up, leave, and come
	// back as a fresh contender.
	Demote Verdict = iota + 1
	// Held, from [Elect] and [Join]: a holder is in the way, or a writer that
	// has won the election before us. Leave and wait to be woken.
	//
	// Whether a try is refused is not told by Held but by [Blocking]: a writer
	// that is merely elected is no holder to another writer.
	Held
	// Defer, from [Elect] and [Join]: lost to a contender that has not won
	// anything yet and may not stay. Leave, and try again within a few round
	// trips: a contender that went to sleep here could leave the lock free
	// with nobody to notice.
	Defer
	// Wait, from [Elect]: the election is won, or kept, but readers have yet
	// to leave, or a peer that may not have seen our election has yet to
	// decide. Stay on the channel, say so as [Elected], and probe again.
	Wait
	// Again, from [Confirm]: cannot tell yet. Keep the promotion and probe once
	// more; who runs out of time for that demotes.
	Again
	// Promote, from [Elect]: won, and nobody reads. Make the own record
	// exclusive, then confirm. It is not a grant.
	Promote
	// Granted, from [Confirm] and [Join]: the lock is ours.
	Granted
)

// String returns the verdict in lower case.
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

// judge returns the most cautious of what others permit one by one, and best
// when there is nobody but self.
func judge(best Verdict, self string, others []Record, permits func(Record) Verdict) Verdict {
	verdict := best
	for _, r := range others {
		if r.isOf(self) {
			continue
		}
		verdict = min(verdict, permits(r))
	}
	return verdict
}

package protocol

// Elect judges a conclusive probe for a writer whose own record is still
// pending: [Promote], [Wait], [Defer] or [Held]. With nobody else there it is
// Promote.
//
// self is the writer's holder id, and a record of that id among others is
// ignored. elected says whether self has won already and advertises it: an
// incumbent keeps its win against newcomers of any id, and loses it only to
// somebody who would not give way.
//
// The election is about progress, that of the contenders somebody stays. That
// no two writers are granted rests on [Confirm].
func Elect(self string, elected bool, others []Record) Verdict {
	against := freshAgainst
	if elected {
		against = incumbentAgainst
	}
	return judge(Promote, self, others, func(r Record) Verdict {
		switch {
		case r.claimsExclusive():
			return Held
		case r.Mode == Shared:
			// A joining reader too: it may have judged a probe in which we
			// were not there yet, and be granted late.
			return Wait
		default:
			return against(self, r)
		}
	})
}

// freshAgainst judges another contender for a writer that has won nothing yet.
func freshAgainst(self string, r Record) Verdict {
	switch {
	case r.Election == Elected:
		// Whatever its id, or a newcomer with a lower one would take the turn
		// of a writer that has waited. It is worth waiting for, and not only
		// when readers are in sight: lower ids that came straight back would
		// hold its promotion off again and again.
		return Held
	case r.ID < self:
		return Defer
	default:
		return Promote
	}
}

// incumbentAgainst judges another contender for an elected writer.
func incumbentAgainst(self string, r Record) Verdict {
	if r.ID > self {
		// It loses the sort, or forfeits its own election to ours.
		return Promote
	}
	switch {
	case r.Election == Elected:
		// Two elections can be won at once, each on an answer from before the
		// other's. The lower id keeps its own.
		return Held
	case r.predates():
		// It will elect itself by its id and cannot be told that we have won.
		return Defer
	default:
		// The hold-off. Its answer may be older than our election, and it may
		// be about to win on what it saw. The next probe tells: it has left,
		// or it is elected or exclusive.
		return Wait
	}
}

package protocol

// Elect returns the verdict for a writer whose own record is pending: [Promote],
// [Wait], [Defer] or [Held]. Without others it is Promote. others are the records
// of a conclusive probe.
//
// self is the writer's holder id; a record with that id is ignored. elected is
// true for an incumbent, which has won an election before and advertises it. An
// incumbent keeps its election against newcomers of any id. It loses it only to a
// holder, to an incumbent with a lower id, or to a pre-4.2 peer with a lower id,
// which does not know about elections.
//
// The election is about progress: one of the contenders stays. Safety, that no
// two writers are granted, does not depend on it but on [Confirm].
func Elect(self string, elected bool, others []Record) Verdict {
	electAgainst := electNewcomer
	if elected {
		electAgainst = electIncumbent
	}
	return mostCautious(Promote, self, others, func(r Record) Verdict {
		switch {
		case r.claimsExclusive():
			return Held
		case r.Mode == Shared:
			// A joining reader, too: its probe may have been before we joined,
			// and then it may still be granted.
			return Wait
		default:
			return electAgainst(self, r)
		}
	})
}

// electNewcomer is the verdict on another pending writer for one that has not won
// an election.
func electNewcomer(self string, r Record) Verdict {
	switch {
	case r.Election == Elected:
		// Its id does not matter: otherwise a newcomer with a lower id would
		// take the turn of a writer that has waited. The verdict is Held and not
		// Defer even without readers: newcomers with lower ids would come back
		// after a few round trips and make it wait again and again.
		return Held
	case r.ID < self:
		return Defer
	default:
		return Promote
	}
}

// electIncumbent is the verdict on another pending writer for an elected one.
func electIncumbent(self string, r Record) Verdict {
	if r.ID > self {
		// Its id sorts after ours, so it defers or gives up its own election.
		return Promote
	}
	switch {
	case r.Election == Elected:
		// Two writers can be elected at once, if each answered the other's probe
		// before it was elected. The lower id stays elected.
		return Held
	case r.isPre42():
		// It elects itself because its id sorts before ours, and ignores that we
		// are elected.
		return Defer
	default:
		// The hold-off. It may have answered before we were elected, and may be
		// about to elect itself. The next probe shows the outcome: it has left,
		// or it is elected or exclusive.
		return Wait
	}
}

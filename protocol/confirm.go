package protocol

// Confirm returns the verdict for a writer that has promoted: [Granted], [Again]
// or [Demote]. Without others it is Granted. others are the records of a
// conclusive probe that was sent when the writer's own record was already
// exclusive. self is the writer's holder id; a record with that id is ignored.
//
// If two writers see each other's exclusive record, neither is granted. The ids
// only decide which of them demotes first.
func Confirm(self string, others []Record) Verdict {
	return mostCautious(Granted, self, others, func(r Record) Verdict {
		switch {
		case r.claimsExclusive():
			return confirmAgainstExclusive(self, r)
		case r.Mode == Shared:
			return confirmAgainstReader(r)
		default:
			return confirmAgainstPending(self, r)
		}
	})
}

// confirmAgainstExclusive is the verdict on an exclusive or unreadable record.
func confirmAgainstExclusive(self string, r Record) Verdict {
	if r.unreadable() || r.isPre42() {
		// It does not confirm, so it never demotes.
		return Demote
	}
	if r.ID < self {
		return Demote
	}
	// It will see us in its own confirm and demote, unless it was granted before
	// we promoted. So a grant now would not be safe.
	return Again
}

// confirmAgainstReader is the verdict on a shared record.
func confirmAgainstReader(r Record) Verdict {
	if r.Joining {
		// If its probe counts us, it leaves. If it probed before we promoted, it
		// may be about to hold the lock.
		return Again
	}
	// It holds without probing again, so it does not yield to us.
	return Demote
}

// confirmAgainstPending is the verdict on a writer that is still pending.
func confirmAgainstPending(self string, r Record) Verdict {
	lower := r.ID < self
	switch {
	case lower && r.isPre42():
		// It elects itself because its id sorts before ours, and promotes.
		return Demote
	case lower:
		// It may be about to promote, because we answered its probe when we were
		// still pending.
		return Again
	case r.isPre42():
		// Its id sorts after ours, but that is not enough: it may have counted
		// one subscriber before we joined. Then it promotes without a probe.
		return Again
	default:
		// If it promotes, it will see us in its own confirm and demote.
		return Granted
	}
}

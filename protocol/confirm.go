package protocol

// Confirm judges a conclusive probe taken while self's own record was already
// exclusive: [Granted], [Again] or [Demote]. With nobody else there it is
// Granted. self is the writer's holder id, and a record of that id among
// others is ignored.
//
// Of two writers that see each other's exclusive record neither is granted.
// Ids only decide which of the two gives up first.
func Confirm(self string, others []Record) Verdict {
	return judge(Granted, self, others, func(r Record) Verdict {
		switch {
		case r.claimsExclusive():
			return rivalPermits(self, r)
		case r.Mode == Shared:
			return readerPermits(r)
		default:
			return contenderPermits(self, r)
		}
	})
}

// rivalPermits judges another exclusive record.
func rivalPermits(self string, r Record) Verdict {
	if r.opaque() || r.predates() {
		// It never confirms, so it never gives up.
		return Demote
	}
	if r.ID < self {
		return Demote
	}
	// It sees us in its own confirm and demotes. Standing beside it until then
	// would rest on that; it may have been granted before we promoted.
	return Again
}

// readerPermits judges a reader.
func readerPermits(r Record) Verdict {
	if r.Joining {
		// It leaves if it sees us. If it judged a probe from before, it is
		// about to hold.
		return Again
	}
	// It holds without ever asking again, so it is for us to yield.
	return Demote
}

// contenderPermits judges a writer that is still pending.
func contenderPermits(self string, r Record) Verdict {
	lower := r.ID < self
	switch {
	case lower && r.predates():
		// It wins the sort against us and will promote.
		return Demote
	case lower:
		// It may be about to promote on an answer that we gave as pending.
		return Again
	case r.predates():
		// Though it would lose the sort: it may have counted itself alone
		// before we came, and then it promotes without a look at anybody.
		return Again
	default:
		// Its own confirm will see us.
		return Granted
	}
}

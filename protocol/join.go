package protocol

// Join returns the verdict for a joining reader: [Granted], [Defer] or [Held].
// Without others it is Granted. others are the records of a conclusive probe.
// self is the reader's holder id; a record with that id is ignored.
//
// A reader is granted only if all others are readers. A single pending writer,
// elected or not, keeps new readers out. Otherwise a steady stream of readers
// could starve it.
func Join(self string, others []Record) Verdict {
	return mostCautious(Granted, self, others, func(r Record) Verdict {
		switch {
		case r.claimsExclusive():
			return Held
		case r.Mode == Shared:
			return Granted
		case r.Election == Elected:
			return Held
		default:
			return Defer
		}
	})
}

package protocol

// Join judges a conclusive probe for a reader: [Granted], [Defer] or [Held].
// With nobody else there it is Granted. self is the reader's holder id, and a
// record of that id among others is ignored.
//
// Readers keep company with readers only. One writer on the channel, even one
// that has won nothing, keeps new readers out, so that they cannot starve it.
func Join(self string, others []Record) Verdict {
	return judge(Granted, self, others, func(r Record) Verdict {
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

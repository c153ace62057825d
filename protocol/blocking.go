package protocol

// Blocking returns the records of others that hold the lock in a way that is
// incompatible with want. It keeps their order, and returns nil if there are
// none. A try is refused if there is one, and the error names them. others must
// not contain the caller's own record.
//
// An exclusive or unreadable record blocks every want. A reader that holds the
// lock blocks writers. An elected writer blocks readers, which queue behind it.
// Other contenders and joining readers hold nothing, so they block nobody. Any
// want other than [Shared] counts as [Exclusive].
func Blocking(want Mode, others []Record) []Record {
	var holders []Record
	for _, r := range others {
		if r.blocks(want) {
			holders = append(holders, r)
		}
	}
	return holders
}

func (r Record) blocks(want Mode) bool {
	switch {
	case r.claimsExclusive():
		return true
	case want == Shared:
		return r.Mode == Pending && r.Election == Elected
	default:
		return r.Mode == Shared && !r.Joining
	}
}

package protocol

// Blocking returns those of others that hold the lock in a way that want
// cannot share, in their order, and nil if there are none. It is what a single
// try is refused for, and what an error names. others must not contain the
// asker's own record.
//
// An exclusive record blocks everybody, an unreadable one likewise. A reader
// that holds blocks writers. An elected writer blocks readers, who queue behind
// it, as a holder would. Other contenders, and readers that are still joining,
// hold nothing. Any want but [Shared] asks as a writer.
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

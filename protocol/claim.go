package protocol

// isFrom reports whether r is the record of the participant self. A legacy
// record has no real id: legacy-<n> only numbers it. So it is never self's.
func (r Record) isFrom(self string) bool {
	return !r.Legacy && r.ID == self
}

// unreadable reports whether r tells nothing except that its sender is
// subscribed. An unknown mode counts, too: a zero Record, left by a bug, must not
// be taken for one that claims nothing.
func (r Record) unreadable() bool {
	return r.Legacy || r.Mode != Exclusive && r.Mode != Pending && r.Mode != Shared
}

// claimsExclusive reports whether r's sender claims the lock exclusively, or may
// do so because r is unreadable.
func (r Record) claimsExclusive() bool {
	return r.unreadable() || r.Mode == Exclusive
}

// isPre42 reports whether r comes from a 4.0 or 4.1 peer. Such a peer elects
// itself by id alone, ignores advertised elections, and never confirms or gives
// up a promotion.
func (r Record) isPre42() bool {
	return r.Election != NotElected && r.Election != Elected
}

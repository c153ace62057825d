package protocol

// isOf reports whether r is self's own answer. An unreadable answer is
// nobody's, whatever id it was given to tell it from the next one.
func (r Record) isOf(self string) bool {
	return !r.Legacy && r.ID == self
}

// opaque reports whether nothing is known of r's sender except that it is
// there. The mode is looked at too, so that a record that was never filled in
// does not pass for a harmless one.
func (r Record) opaque() bool {
	return r.Legacy || r.Mode != Exclusive && r.Mode != Pending && r.Mode != Shared
}

// claimsExclusive reports whether r's sender has the lock to itself, as far as
// it knows or as far as we can tell.
func (r Record) claimsExclusive() bool {
	return r.opaque() || r.Mode == Exclusive
}

// predates reports whether r comes from a 4.0 or 4.1 peer: it elects itself by
// id alone, cannot be told of an election, and stands by a promotion for good.
func (r Record) predates() bool {
	return r.Election != NotElected && r.Election != Elected
}

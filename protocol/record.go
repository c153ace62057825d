// Package protocol says what holder records mean and what they permit.
//
// It is pure: no I/O, no clock, no goroutine. A probe of a lock's channel
// yields one [Record] per participant; the functions of this package turn a
// conclusive set of records into a verdict. A set is conclusive when everybody
// who got the ping has answered; any other set permits nothing and must not be
// brought here.
//
// A writer announces itself as pending, and [Elect] lets one of the pending
// writers promote. With its record exclusive it probes once more, and
// [Confirm] grants it the lock. A reader needs one probe, judged by [Join].
//
// # Why no two of them hold together
//
// A writer is granted only if nobody claims the lock, exclusive or shared, at
// an instant at which its own record is exclusive. A reader is granted only if
// everybody is a reader. Take two probes that could both be granted, the later
// one while the earlier prober is still subscribed: it is counted, it answers,
// and from its own deciding probe on its answers claim the lock, if only as a
// joining reader's. So the later one is refused, unless both are readers. Ids
// do not enter into it. They order contenders that must not all give way.
//
// That is enough among peers that keep these rules. The clauses about records
// without an election, and about unreadable answers, are there for peers that
// promote without a confirmation.
package protocol

// Mode is what a participant says that it does with the lock.
type Mode uint8

const (
	// Exclusive holds the lock alone.
	Exclusive Mode = iota + 1
	// Pending wants the lock exclusively and does not have it yet.
	Pending
	// Shared is a reader: any number of them hold the lock together.
	Shared
)

// String returns the mode as it travels in a record.
func (m Mode) String() string {
	switch m {
	case Exclusive:
		return "exclusive"
	case Pending:
		return "pending"
	case Shared:
		return "shared"
	default:
		return "unknown"
	}
}

// ParseMode is the inverse of [Mode.String] for the three modes of the wire.
func ParseMode(s string) (Mode, bool) {
	for _, m := range [...]Mode{Exclusive, Pending, Shared} {
		if m.String() == s {
			return m, true
		}
	}
	return 0, false
}

// Election says whether a participant advertises an election that it has won.
// Only a pending writer's is looked at as such; what the other records tell by
// it is the generation of their sender.
type Election uint8

const (
	// Unstated is a record without a readable field: a 4.0 or 4.1 peer, which
	// neither defers to an advertised election nor confirms its promotion.
	Unstated Election = iota
	// NotElected is a participant that has not won an election.
	NotElected
	// Elected is a writer that has won and waits, or has promoted.
	Elected
)

// Record is one participant's answer to a ping.
type Record struct {
	// ID is the holder id of the participant's socket, or legacy-<n>. Ids
	// are ordered byte by byte; a legacy one takes no part in the order.
	ID string
	// Mode is what the participant claimed when it answered.
	Mode Mode
	// Election tells its election, and thereby its generation.
	Election Election
	// Legacy is an answer that could not be read as a record. It counts as
	// exclusive and has no identity.
	Legacy bool
	// Joining is a reader that does not hold the lock yet, or no longer. It
	// means nothing on other modes.
	Joining bool
	// Held is the age of its hold in milliseconds, 0 when it holds nothing or
	// does not say.
	Held int64
	// TTL is the time in milliseconds until its claim expires by itself, 0
	// when it does not, or does not say.
	TTL int64
	// Label is what its user calls it.
	Label string
	// Place is the asker's place in this participant's queue, 0 when it is
	// not in it.
	Place int
	// Fenced says that it draws fencing tokens, from the counter in the
	// database DB.
	Fenced bool
	DB     int
}

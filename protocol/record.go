// Package protocol defines what the records of a probe permit.
//
// It is pure: no I/O, no clock, no goroutine. A probe of a lock's channel yields
// one [Record] from each participant, and the functions of this package turn the
// records into a [Verdict]. They must be called only with the records of a
// conclusive probe, one that every participant that received the ping has
// answered. An inconclusive probe permits nothing: the missing answer may be a
// holder's.
//
// A writer joins the channel as pending. [Elect] lets one of the pending writers
// promote: its record becomes exclusive. It then probes once more, and [Confirm]
// grants it the lock. A reader needs one probe and [Join].
//
// # Safety
//
// A writer is granted only if, at an instant when its own record is exclusive,
// no other participant claims the lock, exclusive or shared. A reader is granted
// only if all other participants are readers.
//
// Consider two grants, and assume that the participant granted first is still
// subscribed when the other's deciding probe is counted. Then the probe counts
// it, and it answers. Since its own deciding probe its answers claim the lock
// (those of a reader as [Shared], possibly joining). So the other is refused,
// unless both are readers.
//
// The ids do not matter for safety. They order the contenders, so that not all
// of them give way.
//
// This suffices among peers that follow these rules. The rules about records
// without an election and about unreadable records exist for older peers, which
// promote without a confirmation.
package protocol

// Mode is what a participant claims about the lock.
type Mode uint8

const (
	// Exclusive is a writer that holds the lock, or has promoted and confirms.
	Exclusive Mode = iota + 1
	// Pending is a writer that contends for the lock and claims nothing yet.
	Pending
	// Shared is a reader. Any number of readers can hold the lock together.
	Shared
)

// String returns the mode as it is encoded in a record, or "unknown".
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

// ParseMode returns the mode whose String is s. ok is false for any other s.
func ParseMode(s string) (mode Mode, ok bool) {
	for _, m := range [...]Mode{Exclusive, Pending, Shared} {
		if m.String() == s {
			return m, true
		}
	}
	return 0, false
}

// Election tells whether a participant advertises that it has won an election.
// That matters only for a pending writer. In other records it only shows whether
// the sender is a pre-4.2 peer.
type Election uint8

const (
	// Unstated is a record without a valid field elected. It comes from a 4.0 or
	// 4.1 peer, which neither defers to an advertised election nor confirms its
	// promotion.
	Unstated Election = iota
	// NotElected is a participant that has not won an election.
	NotElected
	// Elected is a writer that has won an election. It waits or has promoted.
	Elected
)

// Record is one participant's answer to a ping.
type Record struct {
	// ID is the holder id of the participant's socket, or legacy-<n> for a
	// legacy record. Ids are compared byte by byte. The ids of legacy records
	// are never compared.
	ID string
	// Mode is what the participant claimed when it answered.
	Mode Mode
	// Election tells whether it has won an election, or is a pre-4.2 peer.
	Election Election
	// Legacy is true for an answer that could not be decoded as a record. It
	// counts as exclusive.
	Legacy bool
	// Joining is true for a reader that does not hold the lock yet, or no
	// longer. It has no meaning in other modes.
	Joining bool
	// Held is the age of its hold in milliseconds, 0 if it does not hold the
	// lock or its age is unknown.
	Held int64
	// TTL is the time in milliseconds until its claim expires, 0 if it does not
	// expire or the time is unknown.
	TTL int64
	// Label is the text that its user has chosen to identify it.
	Label string
	// Place is the place of the ping's sender in this participant's queue, 0 if
	// it is not queued there.
	Place int
	// Fenced is true if it draws fencing tokens.
	Fenced bool
	// DB is the database of the counter that it draws them from.
	DB int
	// Session is true if its connection is a session's, which carries other locks too.
	Session bool
}

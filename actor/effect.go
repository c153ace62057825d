package actor

import (
	"time"

	"github.com/tetherlock/tether/protocol"
)

// Effect is something that a [Machine] or [Lease] wants to be done. Effects are
// plain data and are performed in order; their results come back as inputs.
type Effect interface{ effect() }

// Effects on the socket.
type (
	// Dial asks for a socket: a clean idle one, or else a new one. With Fresh
	// it must be new and the idle ones are closed: one of them has proved dead,
	// so the others may be. The answer is [Dialed] or [DialFailed].
	Dial struct {
		Dial  int
		Fresh bool
	}
	// CancelDial gives up the socket that Dial asked for.
	CancelDial struct{}
	// Send writes commands. All of one turn of the loop go out in one write. It
	// is valid until the next call of Step.
	Send struct{ Commands []Command }
	// Drop closes the socket.
	Drop struct{}
	// Park gives the clean socket back to the connection pool. With Last the
	// lock is about to end: only answers to callers and Stop follow.
	Park struct{ Last bool }
	// Stop ends the loop. Nothing follows it.
	Stop struct{}
)

// Effects of a lease.
type (
	// Run runs a command on the key. Its outcome is a [Ran] with the same Num.
	Run struct {
		Num int
		Op  LeaseOp
		ID  string
	}
	// Hear begins or ends to listen for releases of the key, see [KeyReleased].
	Hear struct{ On bool }
)

func (Run) effect()  {}
func (Hear) effect() {}

// LeaseOp is what a [Run] does with the key.
type LeaseOp uint8

const (
	// TakeKey sets the key to the id if it is not set, or has that id already.
	TakeKey LeaseOp = iota + 1
	// RenewKey sets the expiry of the key anew if it has the id.
	RenewKey
	// CheckKey asks whether the key has the id.
	CheckKey
	// DropKey deletes the key if it has the id, and tells waiters.
	DropKey
)

// Effects for callers.
type (
	// Grant answers an acquire with a hold.
	Grant struct {
		Call  Call
		ID    string
		Token int64
	}
	// Refuse answers an acquire with an error.
	Refuse struct {
		Call    Call
		Refusal Refusal
	}
	// Reclaim asks the environment to take a grant back if nobody has received
	// it. If it can, it answers with [Reclaimed].
	Reclaim struct {
		Call  Call
		Cause error
	}
	// End ends a hold. Loss is why it was lost, nil if it was given back.
	End struct {
		Hold Call
		Loss error
	}
	// Released answers a Release: the hold has left the channel. Err is why
	// the server has not confirmed that, nil if it has.
	Released struct {
		Hold Call
		Err  error
	}
	// OwnedAnswer answers a [CheckOwned]. Err is why the server could not be
	// asked.
	OwnedAnswer struct {
		Call  Call
		Owned bool
		Err   error
	}
	// Notify reports an event. Call is the call that it concerns, nil if it
	// concerns all calls of the lock.
	Notify struct {
		Event Event
		Call  Call
	}
)

func (Dial) effect()        {}
func (CancelDial) effect()  {}
func (*Send) effect()       {}
func (Drop) effect()        {}
func (Park) effect()        {}
func (Stop) effect()        {}
func (Grant) effect()       {}
func (Refuse) effect()      {}
func (Reclaim) effect()     {}
func (End) effect()         {}
func (Released) effect()    {}
func (OwnedAnswer) effect() {}
func (Notify) effect()      {}

// Reason is the reason of a [Refusal].
type Reason uint8

const (
	// Contended is a try that met a holder.
	Contended Reason = iota + 1
	// Inconclusive is a try whose time was up before everybody had answered.
	Inconclusive
	// Cancelled is an acquire whose context ended.
	Cancelled
	// LockClosed is an acquire on a lock that was closed.
	LockClosed
	// AttemptError is an acquire whose attempt failed, and no other may follow.
	AttemptError
	// Expired is an acquire that has waited for as long as it may.
	Expired
)

// Refusal says why an acquire got no hold.
type Refusal struct {
	Reason Reason
	// Cause is what ended the context, or the error that ended the acquire.
	Cause error
	// LastErr is the error of the last failed attempt, nil if the server has
	// answered since.
	LastErr error
	// Holders are the incompatible holders that were seen last.
	Holders []protocol.Record
	// OwnHold says that this very lock holds. For a presence lock, Holders then
	// has its own record.
	OwnHold bool
	// Silent counts the participants that did not answer the last probe.
	Silent int
	// SilentConns are connections that do not answer: participants that could
	// not be ended. If there are none of those, they are the subscribers whose
	// names do not tell what they are: any of them may be on the channel.
	SilentConns []Connection
	// ReapState is what was tried about the silent participants.
	ReapState ReapState
	// ReapErr is why silent participants could not be found or ended.
	ReapErr error
	// SilentFor is how long ago they were asked. Unavailable is how long they
	// may take to answer.
	SilentFor, Unavailable time.Duration
}

// ReapState is what was tried about participants that do not answer.
type ReapState uint8

const (
	// NotSearched is nothing so far: they are waited for.
	NotSearched ReapState = iota
	// Searching is a search that is under way: they are pinged twice, and ended
	// if they have not answered in time.
	Searching
	// ReapDone is their end. The probe behind it is not answered yet.
	ReapDone
	// ReapRefused is a command of the search that the server refused.
	ReapRefused
	// NotFound is a search that found no connection of theirs by name.
	NotFound
	// Undecided is a search that had to spare them: they have answered an
	// earlier ping, or come in the middle of it.
	Undecided
	// ListLate is a search that ended with a list which came too late to rely
	// on, as when this process was frozen meanwhile.
	ListLate
)

// String names what was tried.
func (s ReapState) String() string {
	switch s {
	case NotSearched:
		return "not searched"
	case Searching:
		return "searching"
	case ReapDone:
		return "reaped"
	case ReapRefused:
		return "refused"
	case NotFound:
		return "not found"
	case Undecided:
		return "undecided"
	case ListLate:
		return "list late"
	default:
		return "unknown"
	}
}

// Event is something that observers of a lock are told.
type Event interface{ event() }

// The events.
type (
	// Attempting begins an attempt.
	Attempting struct{}
	// AttemptFailed is an attempt that ended with an error. Retry is the time
	// until the next one, 0 if there is none.
	AttemptFailed struct {
		Err   error
		Retry time.Duration
	}
	// Waiting is an acquire that waits for others. Silent counts participants
	// that did not answer.
	Waiting struct {
		Holders []protocol.Record
		Silent  int
		// Place is the place in the holder's queue, 0 if it keeps none.
		Place int
	}
	// WonElection is a writer that won the election and is next.
	WonElection struct{}
	// Demoted is a writer whose promotion was not confirmed.
	Demoted struct{}
	// Granted is a new hold.
	Granted struct {
		ID         string
		Token      int64
		RoundTrips int
		Waited     time.Duration
	}
	// Reaped is a silent participant whose connection was ended.
	Reaped struct{ Connection Connection }
	// ReapDenied is an error to CLIENT LIST or CLIENT KILL: silent participants
	// cannot be found or ended.
	ReapDenied struct{ Err error }
	// Checked is a check of a hold that passed, or, with Err, an error that
	// ends nothing.
	Checked struct {
		RoundTrip time.Duration
		Err       error
	}
	// Lost is a hold that ended without a release.
	Lost struct {
		ID  string
		Err error
	}
	// GaveBack is a hold that was released. Err is why that is not confirmed.
	GaveBack struct {
		ID  string
		Err error
	}
)

func (Attempting) event()    {}
func (AttemptFailed) event() {}
func (Waiting) event()       {}
func (WonElection) event()   {}
func (Demoted) event()       {}
func (Granted) event()       {}
func (Reaped) event()        {}
func (ReapDenied) event()    {}
func (Checked) event()       {}
func (Lost) event()          {}
func (GaveBack) event()      {}

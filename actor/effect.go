package actor

import (
	"time"

	"github.com/tetherlock/tether/protocol"
)

// Effect is something that the machine wants to be done. Effects are plain
// data and are performed in order; their results come back as inputs.
type Effect interface{ effect() }

// Effects on the socket.
type (
	// Dial asks for a socket: a clean idle one, or a new one. Fresh wants a
	// new one, and no idle one to be used again: they are of no use.
	Dial struct {
		Dial  int
		Fresh bool
	}
	// CancelDial gives up the socket that Dial asked for.
	CancelDial struct{}
	// Send writes commands. All of one turn go out in one write. It is good
	// until the next call of Step.
	Send struct{ Commands []Command }
	// Drop closes the socket.
	Drop struct{}
	// Park hands the clean socket back for others to use. It is the last when
	// Stop follows, behind the answer to the last caller.
	Park struct{ Last bool }
	// Stop ends the loop. Nothing follows it.
	Stop struct{}
)

// Effects of a lease.
type (
	// Run runs a command on the key; Ran answers.
	Run struct {
		Num int
		Op  LeaseOp
		ID  string
	}
	// Hear begins or ends to listen for releases.
	Hear struct{ On bool }
)

func (Run) effect()  {}
func (Hear) effect() {}

// LeaseOp is what a [Run] does with the key.
type LeaseOp uint8

const (
	// TakeKey sets the key to the id if nobody has set it, or if it is the
	// own one already.
	TakeKey LeaseOp = iota + 1
	// RenewKey puts the expiry of the own key off.
	RenewKey
	// CheckKey looks whether the key is the own one.
	CheckKey
	// DropKey deletes the own key and tells those that wait.
	DropKey
)

// Effects that callers see.
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
	// Reclaim asks the host to take the grant back if nobody has received it.
	Reclaim struct {
		Call  Call
		Cause error
	}
	// End ends a hold: lost, or given back when Loss is nil.
	End struct {
		Hold Call
		Loss error
	}
	// Released says that a hold which was given back, or ended by a Release with
	// a loss, has left the channel, or why that is not confirmed.
	Released struct {
		Hold Call
		Err  error
	}
	// Owns answers an inquiry. Err says why that could not be found out.
	OwnedAnswer struct {
		Call  Call
		Owned bool
		Err   error
	}
	// Notify tells an event, of a call if it is one call's alone.
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

// Why is the reason of a [Refusal].
type Reason uint8

const (
	// Contended is a try that met a holder.
	Contended Reason = iota + 1
	// Inconclusive is a try that could not find out who is there in time.
	Inconclusive
	// Cancelled is an acquire whose context ended.
	Cancelled
	// Shut is an acquire on a lock that was closed.
	LockClosed
	// Broken is an acquire that ended with an error.
	AttemptError
	// Expired is an acquire that has waited for as long as it may.
	Expired
)

// Refusal says why an acquire got no hold.
type Refusal struct {
	Reason Reason
	// Cause is what ended the context, or the error that ended the acquire.
	Cause error
	// Trouble is the last failed attempt, if nothing was heard since.
	LastErr error
	// Holders are the incompatible holders that were seen last.
	Holders []protocol.Record
	// Self says that this very lock holds. If others are told of it, Holders
	// has its record.
	OwnHold bool
	// Silent counts the participants that did not answer the last probe.
	Silent int
	// Mute are connections that do not answer: participants that could not be
	// ended, and, if none of them is missing, whoever else is subscribed to
	// something.
	SilentConns []Connection
	// ReapState is what was tried about the silent participants.
	ReapState ReapState
	// Denied is why silent participants could not be found or ended.
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

// Event is something worth telling to whoever observes a lock.
type Event interface{ event() }

// The events.
type (
	// Attempting begins an attempt.
	Attempting struct{}
	// AttemptFailed is an attempt that ended with an error. Retry tells when
	// the next one begins, 0 when there is none.
	AttemptFailed struct {
		Err   error
		Retry time.Duration
	}
	// Waiting is an acquire that waits for others.
	Waiting struct {
		Holders []protocol.Record
		Silent  int
		// Place is the place in the queue of whoever is waited for, 0 if it
		// keeps none.
		Place int
	}
	// WonElection is a writer that goes next.
	WonElection struct{}
	// Demoted is a writer that gave its promotion up.
	Demoted struct{}
	// Granted is a new hold.
	Granted struct {
		ID         string
		Token      int64
		RoundTrips int
		Waited     time.Duration
	}
	// Reaped is a participant that was counted, did not answer, and whose
	// connection has been ended for that.
	Reaped struct{ Connection Connection }
	// ReapDenied is a missing permission to find or to end those that do not
	// answer.
	ReapDenied struct{ Err error }
	// Checked is the outcome of a health check, or an error, that did not end
	// anything.
	Checked struct {
		RoundTrip time.Duration
		Err       error
	}
	// Lost is a hold that ended without a release.
	Lost struct {
		ID  string
		Err error
	}
	// GaveBack is a hold that was released. Err says why it is not confirmed.
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

package tether

import (
	"time"

	"github.com/tetherlock/tether/actor"
)

// Event is something that happened to a [Lock]. Its type is one of the structs
// of this file whose names end in Event.
type Event interface {
	event()
	info() EventInfo
}

// EventInfo is what all events have.
type EventInfo struct {
	// Name is the lock.
	Name string
	// At is when it happened.
	At time.Time
}

func (i EventInfo) info() EventInfo { return i }

// The kinds of events.
type (
	// AttemptEvent begins an attempt to get the lock.
	AttemptEvent struct{ EventInfo }

	// AttemptFailedEvent is an attempt that ended with an error.
	AttemptFailedEvent struct {
		EventInfo
		// Err is never nil.
		Err error
		// Retry is the time until the next attempt; 0 when there is none.
		Retry time.Duration
	}

	// WaitingEvent is an acquire that waits for others.
	WaitingEvent struct {
		EventInfo
		// Holders are those that were seen.
		Holders []Holder
		// Silent counts the participants that did not answer.
		Silent int
		// Place is the place in the queue, 1 for the next one, as far as those
		// who are waited for know it; 0 otherwise.
		Place int
	}

	// ElectedEvent is an acquire that goes next.
	ElectedEvent struct{ EventInfo }

	// DemotedEvent is an acquire that gave its turn to a rival.
	DemotedEvent struct{ EventInfo }

	// GrantedEvent is a new hold.
	GrantedEvent struct {
		EventInfo
		HolderID string
		// Token is the fencing token; 0 without one.
		Token int64
		// RoundTrips is what the successful attempt took; 0 for a hold that
		// joined another one of the same [Shared] Lock.
		RoundTrips int
		// Waited is the time since the lock began to serve the acquire; 0 for
		// a hold that joined.
		Waited time.Duration
	}

	// ReapedEvent is a participant that was counted, did not answer for as
	// long as [WithUnavailableTimeout] says, and whose connection was ended
	// for that. If it is alive after all, it learns of it as a loss.
	ReapedEvent struct {
		EventInfo
		// Holder has ID, or Legacy, and Addr; the rest is not known.
		Holder Holder
	}

	// ReapDeniedEvent is a participant that does not answer and cannot be
	// found, or its connection not ended. It goes on being waited for.
	ReapDeniedEvent struct {
		EventInfo
		// Err is why, as a rule a [*PermissionError].
		Err error
	}

	// HealthEvent is a health check or self-check that was passed, or an
	// error that has ended nothing.
	HealthEvent struct {
		EventInfo
		// RoundTrip is what the check took; 0 with an error.
		RoundTrip time.Duration
		// Err is a login with new credentials that the server refused, or an
		// answer to a peer or a wake for a waiter that it did not take.
		Err error
	}

	// LostEvent is a hold that ended without a release. A [Shared] Lock that
	// loses several holds tells of each.
	LostEvent struct {
		EventInfo
		// Err is never nil.
		Err *LostError
	}

	// ReleasedEvent is a hold that was released.
	ReleasedEvent struct {
		EventInfo
		HolderID string
		// Err says why the server has not confirmed it; the lock is free
		// nevertheless.
		Err error
	}

	// DroppedEvent stands for events that were not read in time.
	DroppedEvent struct {
		EventInfo
		// Count is how many were dropped before this one, and since the last
		// event of this kind.
		Count int
	}
)

func (AttemptEvent) event()       {}
func (AttemptFailedEvent) event() {}
func (WaitingEvent) event()       {}
func (ElectedEvent) event()       {}
func (DemotedEvent) event()       {}
func (GrantedEvent) event()       {}
func (ReapedEvent) event()        {}
func (ReapDeniedEvent) event()    {}
func (HealthEvent) event()        {}
func (LostEvent) event()          {}
func (ReleasedEvent) event()      {}
func (DroppedEvent) event()       {}

// eventBuffer is how many events wait for a reader before the oldest is
// dropped.
const eventBuffer = 64

// endedEvents is the channel of events of a lock that has ended.
func endedEvents() <-chan Event {
	ended := make(chan Event)
	close(ended)
	return ended
}

// translate turns an event of the machine into an exported one.
func (p *participant) translate(e actor.Event) Event {
	base := EventInfo{Name: p.name, At: time.Now()}
	switch e := e.(type) {
	case actor.Attempting:
		return AttemptEvent{base}
	case actor.AttemptFailed:
		return AttemptFailedEvent{base, notContextError(publicError(e.Err)), e.Retry}
	case actor.Waiting:
		return WaitingEvent{base, holders(e.Holders), e.Silent, e.Place}
	case actor.WonElection:
		return ElectedEvent{base}
	case actor.Demoted:
		return DemotedEvent{base}
	case actor.Granted:
		return GrantedEvent{base, e.ID, e.Token, e.RoundTrips, e.Waited}
	case actor.Reaped:
		return ReapedEvent{base, connHolder(e.Connection)}
	case actor.ReapDenied:
		return ReapDeniedEvent{base, publicError(e.Err)}
	case actor.Checked:
		return HealthEvent{base, e.RoundTrip, publicError(e.Err)}
	case actor.Lost:
		return LostEvent{base, p.loss}
	case actor.GaveBack:
		return ReleasedEvent{base, e.ID, publicError(e.Err)}
	}
	return nil
}

// emit gives an event to the reader of Events. It never waits: a late reader loses the
// oldest events, and a [DroppedEvent] says how many.
func (s *lockState) emit(e Event) {
	if s.missed > 0 && len(s.events) <= eventBuffer-2 {
		s.push(DroppedEvent{EventInfo{e.info().Name, time.Now()}, s.missed})
		s.missed = 0
	}
	s.push(e)
}

// push makes room and sends. There is room then, as no other goroutine sends.
func (s *lockState) push(e Event) {
	for {
		select {
		case s.events <- e:
			return
		default:
		}
		select {
		case <-s.events:
			s.missed++
		default:
		}
	}
}

package tether

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tetherlock/tether/actor"
	"github.com/tetherlock/tether/wire"
)

// participant is the environment of one participant's goroutine: the Locks that it
// serves, and their callers. It belongs to that goroutine.
type participant struct {
	client      *clientLoop
	reporter    *reporter
	log         *slog.Logger
	actor       *actor.Loop
	name, label string
	lease       bool
	reportedEnd bool // the client's loop knows that it ends

	health     time.Duration
	maxWait    time.Duration
	locks      []*lockState
	lastHolder *lock      // of the grant that came last
	loss       *LostError // of the hold that ended last
	readers    int        // Locks whose events are read
	missed     int        // events that the reporter had no room for
}

// request is one acquire, from the call to the end of its hold. To the machine it
// is a [actor.Call]. It is also the message that asks for the acquire.
type request struct {
	lock   *lock
	try    bool
	result chan Result
	// stop ends the watch over the context of an acquire whose result is
	// received later; nil if there is none.
	stop func() bool
	hold *holdState // from the grant on
}

func (q *request) unwatch() {
	if q.stop != nil {
		q.stop()
	}
}

// Messages to a participant, besides requests.
type (
	askState struct {
		lock  *lock
		reply chan<- State
	}
	askEvents struct {
		lock  *lock
		reply chan<- (<-chan Event)
	}
	// closeLock closes a lock. When it has left the server, left is closed. Last
	// says that no other Lock of the participant has a handle.
	closeLock struct {
		lock *lock
		last bool
		left chan<- struct{}
	}
	// lockDropped says that a lock's handle is gone. Last is as in closeLock.
	lockDropped struct {
		lock *lock
		last bool
	}
)

func (p *participant) Handle(m any, s actor.State, feed func(actor.Input)) {
	switch m := m.(type) {
	case *request:
		p.acquire(m, feed)
	case askState:
		m.reply <- p.state(m.lock, s)
	case askEvents:
		m.reply <- p.eventsOf(m.lock)
	case closeLock:
		p.closeLock(m, feed)
	case lockDropped:
		p.handleDropped(m, feed)
	}
}

func (p *participant) Idle() *wire.Socket { return p.client.Take() }

func (p *participant) DiscardIdle() { p.client.CloseIdle() }

func (p *participant) Dial(ctx context.Context) (*wire.Socket, error) {
	return p.client.Endpoint.Socket(ctx)
}

// Park tells of the end in the same message, unless the reporter is to be told
// something at the end.
func (p *participant) Park(s *wire.Socket, last bool) {
	p.reportedEnd = last && p.missed == 0
	if !p.reportedEnd {
		p.client.Put(s, nil)
		return
	}
	p.client.Put(s, p.actor)
}

func (p *participant) Watch(addr string) <-chan error { return p.client.Watch(addr, p.health) }

func (p *participant) Unwatch(moved <-chan error) { p.client.Unwatch(moved) }

func (p *participant) Perform(e actor.Effect) actor.Input {
	switch e := e.(type) {
	case actor.Grant:
		q := e.Call.(*request)
		q.hold = newHoldState(p.actor, e, q)
		p.lastHolder = q.lock
		q.result <- Result{Hold: newHold(q.hold, p.log)}
	case actor.Refuse:
		p.refuse(e)
	case actor.Reclaim:
		select {
		case <-e.Call.(*request).result:
			return actor.Reclaimed(e)
		default: // received: the hold is its receiver's
		}
	case actor.End:
		p.endHold(e)
	case actor.Released:
		p.released(e)
	case actor.OwnedAnswer:
		e.Call.(*ownedCall).reply <- ownedAnswer{e.Owned, publicError(e.Err)}
	case actor.Notify:
		p.notify(e)
	}
	return nil
}

// refuse answers an acquire with an error. Its grant may have been taken back.
func (p *participant) refuse(e actor.Refuse) {
	q := e.Call.(*request)
	q.unwatch()
	err := ErrClosed
	if !q.lock.closed {
		err = acquireError(p.name, p.maxWait, seenFrom(e.Refusal, q.lock == p.lastHolder))
	}
	p.finish(q)
	q.result <- Result{Err: err}
}

// seenFrom words a refusal by a hold of this participant for the Lock that was
// refused: as its own hold, or as that of another Lock.
func seenFrom(r actor.Refusal, own bool) actor.Refusal {
	switch {
	case r.OwnHold && own:
		r.Holders = nil
	case r.OwnHold:
		r.OwnHold = false
	}
	return r
}

// endHold ends the context of a hold, and closes Lost after a loss.
func (p *participant) endHold(e actor.End) {
	q := e.Hold.(*request)
	t := q.hold
	if e.Loss == nil {
		t.end(ErrReleased)
		return
	}
	p.lockState(q.lock).lost = true
	if !q.lock.closed {
		p.finish(q) // one that was closed has yet to leave
	}
	p.loss = &LostError{Name: p.name, HolderID: t.id, At: time.Now(), cause: notContextError(publicError(e.Loss))}
	t.end(p.loss)
	p.tellLost(t)
}

func (p *participant) released(e actor.Released) {
	q := e.Hold.(*request)
	p.finish(q)
	if t := q.hold; context.Cause(t.ctx) == ErrReleased {
		t.result = p.unconfirmed(t, e.Err)
		close(t.finished)
	}
}

// unconfirmed is the error of a release that the server did not confirm.
func (p *participant) unconfirmed(t *holdState, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, actor.ErrNotOwned):
		return &LostError{Name: p.name, HolderID: t.id, At: time.Now(), cause: err}
	case p.lease:
		return fmt.Errorf("tether: release of %q not confirmed, the key goes by itself after its TTL: %w", p.name, publicError(err))
	default:
		return fmt.Errorf("tether: release of %q not confirmed, the connection was closed: %w", p.name, publicError(err))
	}
}

// observed says whether anything takes events.
func (p *participant) observed() bool { return p.readers > 0 || p.reporter != nil }

// notify passes an event of the machine to the readers of Events and the reporter.
func (p *participant) notify(e actor.Notify) {
	level := severity(e.Event)
	told := p.reporter.wants(level)
	readers := p.eventReaders(e.Call)
	if len(readers) == 0 && !told {
		return
	}
	event := p.translate(e.Event)
	for _, b := range readers {
		b.emit(event)
	}
	if told {
		p.tell(event, level)
	}
}

// tell gives an event to the reporter. Without room it is counted, and the count
// goes first when there is room again.
func (p *participant) tell(e Event, level slog.Level) {
	if p.missed > 0 && p.reporter.Offer(p.missing()) {
		p.missed = 0
	}
	if p.missed > 0 || !p.reporter.Offer(report{e, level, p.label}) {
		p.missed++
	}
}

func (p *participant) missing() report {
	return report{DroppedEvent{EventInfo{p.name, time.Now()}, p.missed}, slog.LevelWarn, p.label}
}

func (p *participant) Ended() {
	for _, b := range p.locks {
		p.end(b)
	}
	if p.missed > 0 {
		p.reporter.OfferReserved(p.missing())
	}
	if !p.reportedEnd {
		p.client.Ended(p.actor)
	}
}

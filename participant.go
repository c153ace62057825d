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
	client          *clientLoop
	reporter        *reporter
	log             *slog.Logger
	actor           *actor.Loop
	reportedEnd     bool // the client's loop knows that it ends
	name, label     string
	unconfirmedNote string // what becomes of a release that is not confirmed

	health     time.Duration
	maxWait    time.Duration
	locks      map[*lock]*lockState
	lastHolder *lock      // of the grant that came last
	loss       *LostError // of the hold that ended last
	readers    int        // Locks whose events are read
	missed     int        // events that the reporter had no room for
}

// request is one acquire, from the call to the end of its hold. It is the call
// that the machine knows, and at last the message that asks for it.
type request struct {
	lock   *lock
	try    bool
	result chan Result
	// stop ends the watch over the context of an acquire whose result is
	// received later; nil if there is none.
	stop func() bool
	hold *holdState // of the goroutine, from the grant on
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

func (h *participant) Handle(m any, s actor.State, feed func(actor.Input)) {
	switch m := m.(type) {
	case *request:
		h.acquire(m, feed)
	case askState:
		m.reply <- h.state(m.lock, s)
	case askEvents:
		m.reply <- h.eventsOf(m.lock)
	case closeLock:
		h.closeLock(m, feed)
	case lockDropped:
		h.handleDropped(m, feed)
	}
}

func (h *participant) Idle() *wire.Socket { return h.client.Take() }

func (h *participant) DiscardIdle() { h.client.CloseIdle() }

func (h *participant) Dial(ctx context.Context) (*wire.Socket, error) {
	return h.client.Endpoint.Socket(ctx)
}

// Park tells of the end in the same message, unless the reporter is to be told
// something at the end.
func (h *participant) Park(s *wire.Socket, last bool) {
	h.reportedEnd = last && h.missed == 0
	if !h.reportedEnd {
		h.client.Put(s, nil)
		return
	}
	h.client.Put(s, h.actor)
}

func (h *participant) Watch(addr string, moved chan<- error) { h.client.Watch(addr, h.health, moved) }

func (h *participant) Unwatch(moved chan<- error) { h.client.Unwatch(moved) }

func (h *participant) Perform(e actor.Effect) actor.Input {
	switch e := e.(type) {
	case actor.Grant:
		q := e.Call.(*request)
		q.hold = newHoldState(h.actor, h.name, e, q)
		h.lastHolder = q.lock
		q.result <- Result{Hold: newHold(q.hold, h.log)}
	case actor.Refuse:
		h.refuse(e)
	case actor.Reclaim:
		select {
		case <-e.Call.(*request).result:
			return actor.Reclaimed(e)
		default: // received: the hold is its receiver's
		}
	case actor.End:
		h.endHold(e)
	case actor.Released:
		h.released(e)
	case actor.OwnedAnswer:
		e.Call.(*ownedCall).reply <- ownedAnswer{e.Owned, publicError(e.Err)}
	case actor.Notify:
		h.notify(e)
	}
	return nil
}

// refuse answers an acquire with an error. Its grant may have been taken back.
func (h *participant) refuse(e actor.Refuse) {
	q := e.Call.(*request)
	q.unwatch()
	err := ErrClosed
	if !q.lock.isClosed() {
		err = acquireError(h.name, h.maxWait, seenFrom(e.Refusal, q.lock == h.lastHolder))
	}
	h.finish(q)
	q.result <- Result{Err: err}
}

// seenFrom tells a refusal by a hold of the own goroutine as the asking lock
// sees it: as its own hold, or as another's.
func seenFrom(r actor.Refusal, own bool) actor.Refusal {
	switch {
	case r.OwnHold && own:
		r.Holders = nil
	case r.OwnHold:
		r.OwnHold = false
	}
	return r
}

// endHold ends what a holder has: its context, and Lost on a loss.
func (h *participant) endHold(e actor.End) {
	q := e.Hold.(*request)
	t := q.hold
	if e.Loss == nil {
		t.end(ErrReleased)
		return
	}
	h.lockState(q.lock).lost = true
	if !q.lock.isClosed() {
		h.finish(q) // one that was closed has yet to leave
	}
	h.loss = &LostError{Name: h.name, HolderID: t.id, At: time.Now(), cause: notContextError(publicError(e.Loss))}
	t.end(h.loss)
	h.tellLost(t)
}

func (h *participant) released(e actor.Released) {
	q := e.Hold.(*request)
	h.finish(q)
	if t := q.hold; context.Cause(t.ctx) == ErrReleased {
		t.result = h.unconfirmed(t, e.Err)
		close(t.finished)
	}
}

// unconfirmed words the error of a release that the server did not confirm.
func (h *participant) unconfirmed(t *holdState, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, actor.ErrNotOwned):
		return &LostError{Name: h.name, HolderID: t.id, At: time.Now(), cause: err}
	default:
		return fmt.Errorf("tether: release of %q not confirmed, %s: %w", h.name, h.unconfirmedNote, publicError(err))
	}
}

// observed says whether events have any listener.
func (h *participant) observed() bool { return h.readers > 0 || h.reporter != nil }

// notify passes an event of the machine on to whoever wants to know.
func (h *participant) notify(e actor.Notify) {
	level := severity(e.Event)
	told := h.reporter.wants(level)
	readers := h.eventReaders(e.Call)
	if len(readers) == 0 && !told {
		return
	}
	event := h.translate(e.Event)
	for _, b := range readers {
		b.emit(event)
	}
	if told {
		h.tell(event, level)
	}
}

// tell gives an event to the reporter. Without room it is counted, and the count
// goes first when there is room again.
func (h *participant) tell(e Event, level slog.Level) {
	if h.missed > 0 && h.reporter.Offer(h.missing()) {
		h.missed = 0
	}
	if h.missed > 0 || !h.reporter.Offer(report{e, level, h.label}) {
		h.missed++
	}
}

func (h *participant) missing() report {
	return report{DroppedEvent{EventInfo{h.name, time.Now()}, h.missed}, slog.LevelWarn, h.label}
}

func (h *participant) Ended() {
	for _, b := range h.locks {
		h.end(b)
	}
	if h.missed > 0 {
		h.reporter.OfferReserved(h.missing())
	}
	if !h.reportedEnd {
		h.client.Ended(h.actor)
	}
}

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

// host is what a goroutine knows about the locks that it serves, and their
// callers. Only that goroutine touches it.
type participant struct {
	loop            *clientLoop
	dispatcher      *dispatcher
	log             *slog.Logger
	actor           *actor.Loop
	firstSocket     *wire.Socket // idle, to begin with
	reportedEnd     bool         // the hub knows that it ends
	name, label     string
	unconfirmedNote string // what becomes of a release that is not confirmed

	health     time.Duration
	maxWait    time.Duration
	locks      map[*lock]*lockState
	lastHolder *lock      // of the grant that came last
	loss       *LostError // of the hold that ended last
	readers    int        // members whose events are read
	missed     int        // by the herald
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

// Messages to the host itself, besides requests.
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

func (h *participant) Idle() *wire.Socket {
	if s := h.firstSocket; s != nil {
		h.firstSocket = nil
		return s
	}
	return h.loop.take()
}

func (h *participant) DiscardIdle() { h.loop.closeIdle() }

func (h *participant) Dial(ctx context.Context) (*wire.Socket, error) {
	return h.loop.endpoint.socket(ctx)
}

// Park tells the hub of the end at the same time, unless there is something to
// tell the herald then.
func (h *participant) Park(s *wire.Socket, last bool) {
	h.reportedEnd = last && h.missed == 0
	if !h.reportedEnd {
		h.loop.park(s, nil)
		return
	}
	h.loop.park(s, h.actor)
}

func (h *participant) Watch(addr string, moved chan<- error) {
	h.loop.watch(watcher{addr, h.health}, moved)
}

func (h *participant) Unwatch(moved chan<- error) { h.loop.unwatch(moved) }

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
func (h *participant) observed() bool { return h.readers > 0 || h.dispatcher != nil }

// notify passes an event of the machine on to whoever wants to know.
func (h *participant) notify(e actor.Notify) {
	level := severity(e.Event)
	told := h.dispatcher.wants(level)
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

// tell hands an event to the client's herald. What finds no room is counted,
// and the count goes first when there is room again.
func (h *participant) tell(e Event, level slog.Level) {
	if h.missed > 0 && h.dispatcher.offer(h.missing()) {
		h.missed = 0
	}
	if h.missed > 0 || !h.dispatcher.offer(notice{e, level, h.label}) {
		h.missed++
	}
}

func (h *participant) missing() notice {
	return notice{DroppedEvent{EventInfo{h.name, time.Now()}, h.missed}, slog.LevelWarn, h.label}
}

func (h *participant) Ended() {
	for _, b := range h.locks {
		h.end(b)
	}
	if h.missed > 0 {
		h.dispatcher.offerReserved(h.missing())
	}
	if h.firstSocket != nil {
		h.loop.park(h.firstSocket, nil)
	}
	if !h.reportedEnd {
		h.loop.participantEnded(h.actor)
	}
}

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
type host struct {
	hub         *hub
	herald      *herald
	log         *slog.Logger
	loop        *actor.Loop
	spare       *wire.Socket // idle, to begin with
	left        bool         // the hub knows that it ends
	name, label string
	behind      string // what becomes of a release that is not confirmed

	health  time.Duration
	maxWait time.Duration
	members map[*lock]*member
	holder  *lock      // of the grant that came last
	loss    *LostError // of the hold that ended last
	reading int        // members whose events are read
	missed  int        // by the herald
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
	hold *tenure // of the goroutine, from the grant on
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
	// closeMember closes a lock whose goroutine serves others as well. When it
	// has left the server, left is closed.
	closeMember struct {
		lock *lock
		left chan<- struct{}
	}
	// dropMember says that a lock's handle is gone.
	dropMember struct{ lock *lock }
)

func (h *host) Handle(m any, s actor.State, feed func(actor.Input)) {
	switch m := m.(type) {
	case *request:
		h.ask(m, feed)
	case askState:
		m.reply <- h.state(m.lock, s)
	case askEvents:
		m.reply <- h.eventsOf(m.lock)
	case closeMember:
		h.closeMember(m, feed)
	case dropMember:
		h.drop(m.lock)
	}
}

func (h *host) Idle() *wire.Socket {
	if s := h.spare; s != nil {
		h.spare = nil
		return s
	}
	return h.hub.take()
}

func (h *host) DiscardIdle() { h.hub.discard() }

func (h *host) Dial(ctx context.Context) (*wire.Socket, error) { return h.hub.endpoint.socket(ctx) }

// Park tells the hub of the end at the same time, unless there is something to
// tell the herald then.
func (h *host) Park(s *wire.Socket, last bool) {
	h.left = last && h.missed == 0
	if !h.left {
		h.hub.park(s, nil)
		return
	}
	h.hub.park(s, h.loop)
}

func (h *host) Watch(addr string, moved chan<- error) { h.hub.watch(watcher{addr, h.health}, moved) }

func (h *host) Unwatch(moved chan<- error) { h.hub.unwatch(moved) }

func (h *host) Perform(e actor.Effect) actor.Input {
	switch e := e.(type) {
	case actor.Grant:
		q := e.Call.(*request)
		q.hold = newTenure(h.loop, h.name, e, q)
		h.holder = q.lock
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
		e.Call.(*inquiry).reply <- owned{e.Owned, public(e.Err)}
	case actor.Notify:
		h.notify(e)
	}
	return nil
}

// refuse answers an acquire with an error. Its grant may have been taken back.
func (h *host) refuse(e actor.Refuse) {
	q := e.Call.(*request)
	q.unwatch()
	err := ErrClosed
	if !q.lock.isClosed() {
		err = worded(h.name, h.maxWait, seenFrom(e.Refusal, q.lock == h.holder))
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
func (h *host) endHold(e actor.End) {
	q := e.Hold.(*request)
	t := q.hold
	if e.Loss == nil {
		t.end(ErrReleased)
		return
	}
	h.member(q.lock).lost = true
	if !q.lock.isClosed() {
		h.finish(q) // one that was closed has yet to leave
	}
	h.loss = &LostError{Name: h.name, HolderID: t.id, At: time.Now(), cause: outside(public(e.Loss))}
	t.end(h.loss)
	h.tellLost(t)
}

func (h *host) released(e actor.Released) {
	q := e.Hold.(*request)
	h.finish(q)
	if t := q.hold; context.Cause(t.ctx) == ErrReleased {
		t.result = h.unconfirmed(t, e.Err)
		close(t.finished)
	}
}

// unconfirmed words the error of a release that the server did not confirm.
func (h *host) unconfirmed(t *tenure, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, actor.ErrNotOwned):
		return &LostError{Name: h.name, HolderID: t.id, At: time.Now(), cause: err}
	default:
		return fmt.Errorf("tether: release of %q not confirmed, %s: %w", h.name, h.behind, public(err))
	}
}

// observed says whether events have any listener.
func (h *host) observed() bool { return h.reading > 0 || h.herald != nil }

// notify passes an event of the machine on to whoever wants to know.
func (h *host) notify(e actor.Notify) {
	level := severity(e.Event)
	told := h.herald.hears(level)
	readers := h.readers(e.Call)
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
func (h *host) tell(e Event, level slog.Level) {
	if h.missed > 0 && h.herald.offer(h.missing()) {
		h.missed = 0
	}
	if h.missed > 0 || !h.herald.offer(notice{e, level, h.label}) {
		h.missed++
	}
}

func (h *host) missing() notice {
	return notice{DroppedEvent{EventInfo{h.name, time.Now()}, h.missed}, slog.LevelWarn, h.label}
}

func (h *host) Ended() {
	for _, b := range h.members {
		h.end(b)
	}
	if h.missed > 0 {
		h.herald.offerLast(h.missing())
	}
	if h.spare != nil {
		h.hub.park(h.spare, nil)
	}
	if !h.left {
		h.hub.leave(h.loop)
	}
}

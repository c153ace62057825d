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

// host is what one lock's goroutine knows about its callers. Only that
// goroutine touches it.
type host struct {
	hub         *hub
	herald      *herald
	log         *slog.Logger
	loop        *actor.Loop
	name, label string
	behind      string // what becomes of a release that is not confirmed

	health  time.Duration
	maxWait time.Duration
	onLost  func(*Hold)
	holds   map[actor.Call]*tenure
	loss    *LostError // of the hold that ended last
	events  chan Event
	dropped int // of the events
	missed  int // by the herald
}

// request is one acquire on its way. It is the call that the machine knows.
type request struct {
	result chan Result
	// stop ends the watch over the context of an acquire whose result is
	// received later; nil if there is none.
	stop func() bool
}

func (q *request) unwatch() {
	if q.stop != nil {
		q.stop()
	}
}

// Messages to the host itself.
type (
	askState  struct{ reply chan<- State }
	askEvents struct{ reply chan<- (<-chan Event) }
)

func (h *host) Handle(m any, s actor.State) {
	switch m := m.(type) {
	case askState:
		m.reply <- State(s)
	case askEvents:
		if h.events == nil {
			h.events = make(chan Event, eventBuffer)
		}
		m.reply <- h.events
	}
}

func (h *host) Idle() *wire.Socket { return h.hub.take() }

func (h *host) Discard() { h.hub.discard() }

func (h *host) Dial(ctx context.Context) (*wire.Socket, error) { return h.hub.endpoint.socket(ctx) }

func (h *host) Park(s *wire.Socket) { h.hub.park(s) }

func (h *host) Watch(addr string, moved chan<- error) { h.hub.watch(watcher{addr, h.health}, moved) }

func (h *host) Unwatch(moved chan<- error) { h.hub.unwatch(moved) }

func (h *host) Perform(e actor.Effect) actor.Input {
	switch e := e.(type) {
	case actor.Grant:
		q := e.Call.(*request)
		t := newTenure(h.loop, h.name, e, q)
		h.holds[q] = t
		q.result <- Result{Hold: newHold(t, h.log)}
	case actor.Refuse:
		q := e.Call.(*request)
		q.unwatch()
		delete(h.holds, q) // of a grant that was taken back
		q.result <- Result{Err: worded(h.name, h.maxWait, e.Refusal)}
	case actor.Reclaim:
		select {
		case <-e.Call.(*request).result:
			return actor.Reclaimed(e)
		default: // received: the hold is its receiver's
		}
	case actor.End:
		h.end(e)
	case actor.Released:
		h.released(e)
	case actor.Owns:
		e.Call.(*inquiry).reply <- owned{e.Owned, public(e.Err)}
	case actor.Notify:
		h.notify(e.Event)
	}
	return nil
}

// end ends what a holder has: its context, and Lost on a loss.
func (h *host) end(e actor.End) {
	t := h.holds[e.Hold]
	if e.Loss == nil {
		t.end(ErrReleased)
		return
	}
	delete(h.holds, e.Hold)
	h.loss = &LostError{Name: h.name, HolderID: t.id, At: time.Now(), cause: outside(public(e.Loss))}
	t.end(h.loss)
	h.tellLost(t)
}

func (h *host) released(e actor.Released) {
	t := h.holds[e.Hold]
	delete(h.holds, e.Hold)
	t.result = h.unconfirmed(t, e.Err)
	close(t.finished)
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

// notify passes an event of the machine on to whoever wants to know.
func (h *host) notify(e actor.Event) {
	level := severity(e)
	told := h.herald.hears(level)
	if h.events == nil && !told {
		return
	}
	event := h.translate(e)
	if h.events != nil {
		h.emit(event)
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
	if h.events != nil {
		close(h.events)
	}
	if h.missed > 0 {
		h.herald.offerLast(h.missing())
	}
	h.hub.leave(h.loop)
}

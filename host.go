package tether

import (
	"context"
	"log/slog"
	"time"

	"github.com/tetherlock/tether/actor"
	"github.com/tetherlock/tether/wire"
)

// host is what one lock's goroutine knows about its callers. Only that
// goroutine touches it.
type host struct {
	hub  *hub
	loop *actor.Loop
	name string
	log  *slog.Logger

	health  time.Duration
	hold    *tenure
	loss    *LostError // of the hold that ended last
	events  chan Event
	dropped int
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
		h.hold = newTenure(h.loop, h.name, e.ID, q)
		q.result <- Result{Hold: newHold(h.hold, h.log)}
	case actor.Refuse:
		q := e.Call.(*request)
		q.unwatch()
		q.result <- Result{Err: worded(h.name, e.Refusal)}
	case actor.Reclaim:
		select {
		case <-e.Call.(*request).result:
			return actor.Reclaimed(e)
		default: // received: the hold is its receiver's
		}
	case actor.End:
		h.end(e.Loss)
	case actor.Released:
		h.released(e.Err)
	case actor.Notify:
		h.notify(e.Event)
	}
	return nil
}

// end ends what the holder has: its context, and Lost on a loss.
func (h *host) end(loss error) {
	if loss == nil {
		h.hold.end(ErrReleased)
		return
	}
	h.loss = &LostError{Name: h.name, HolderID: h.hold.id, At: time.Now(), cause: public(loss)}
	h.hold.end(h.loss)
	h.logged(slog.LevelWarn, "lock lost", "lock", h.name, "holder", h.hold.id, "cause", h.loss.cause)
}

// logged logs beside the lock's goroutine: a handler may take its time.
func (h *host) logged(level slog.Level, text string, args ...any) {
	if log := h.log; log.Enabled(context.Background(), level) {
		go log.Log(context.Background(), level, text, args...)
	}
}

func (h *host) released(err error) {
	h.hold.result = unconfirmed(h.name, err)
	close(h.hold.finished)
}

func (h *host) notify(e actor.Event) {
	if f, ok := e.(actor.AttemptFailed); ok {
		h.logged(slog.LevelDebug, "attempt failed", "lock", h.name, "error", f.Err, "retry", f.Retry)
	}
	if h.events != nil {
		h.emit(h.translate(e))
	}
}

func (h *host) Ended() {
	if h.events != nil {
		close(h.events)
	}
	h.hub.leave(h.loop)
}

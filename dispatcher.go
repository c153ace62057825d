package tether

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

const (
	// heraldBuffer is how many events of a client wait for the observer and
	// the logger before those that come next are dropped.
	dispatchBuffer = 1024
	// heraldReserve is room beyond it for the last words of locks that have
	// ended: how many of their events were dropped.
	dispatchReserve = 1024
	// heraldLimit bounds how long Close waits for the observer.
	dispatchWait = time.Second
)

// herald tells the observer and the logger of a client what happens to its
// locks. It has a goroutine of its own, because both may take their time. A nil
// herald has nobody to tell.
type dispatcher struct {
	observer func(Event)
	log      *slog.Logger
	notices  chan notice
	ending   <-chan struct{} // no lock is left to bring any more
	done     chan struct{}
}

// notice is an event on its way. Label is that of the lock.
type notice struct {
	event Event
	level slog.Level
	label string
}

// newHerald starts a herald if there is somebody to tell.
func newDispatcher(o clientOptions, ending <-chan struct{}) *dispatcher {
	if o.observer == nil && !o.logger.Enabled(context.Background(), slog.LevelError) {
		return nil
	}
	h := &dispatcher{o.observer, o.logger, make(chan notice, dispatchBuffer+dispatchReserve), ending, make(chan struct{})}
	go h.run()
	return h
}

// hears says whether anybody wants to know of what has this level.
func (h *dispatcher) wants(level slog.Level) bool {
	return h != nil && (h.observer != nil || h.log.Enabled(context.Background(), level))
}

// offer hands a notice over without waiting, and returns false when there is no
// room for it.
func (h *dispatcher) offer(n notice) bool {
	return len(h.notices) < dispatchBuffer && h.offerReserved(n)
}

// offerLast is offer into the reserve.
func (h *dispatcher) offerReserved(n notice) bool {
	select {
	case h.notices <- n:
		return true
	default:
		return false
	}
}

// wait waits until everything has been told, for a while: an observer may
// block, and may be the one who closes the client.
func (h *dispatcher) wait() {
	if h == nil {
		return
	}
	select {
	case <-h.done:
	case <-time.After(dispatchWait):
	}
}

func (h *dispatcher) run() {
	over := false
	defer func() {
		if over {
			close(h.done)
			return
		}
		go h.run() // the observer has called runtime.Goexit, as a failing test does
	}()
	for n, ok := h.next(); ok; n, ok = h.next() {
		h.record(n)
		h.observe(n.event)
	}
	over = true
}

// next returns false when all has been told.
func (h *dispatcher) next() (notice, bool) {
	select {
	case n := <-h.notices:
		return n, true
	case <-h.ending:
	}
	select {
	case n := <-h.notices:
		return n, true
	default:
		return notice{}, false
	}
}

func (h *dispatcher) observe(e Event) {
	if h.observer == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			logPanic(h.log, "panic in an observer", p, slog.String(keyLock, e.info().Name))
		}
	}()
	h.observer(e)
}

// record logs an event, as of when it happened. A handler that panics has
// nobody who could be told.
func (h *dispatcher) record(n notice) {
	defer func() { _ = recover() }()
	ctx := context.Background()
	if !h.log.Enabled(ctx, n.level) {
		return
	}
	info := n.event.info()
	message, attrs := described(n.event)
	r := slog.NewRecord(info.At, n.level, message, 0)
	r.AddAttrs(slog.String(keyLock, info.Name))
	for _, a := range append([]slog.Attr{given(keyLabel, n.label)}, attrs...) {
		if a.Key != "" {
			r.AddAttrs(a)
		}
	}
	_ = h.log.Handler().Handle(ctx, r) // slog's own loggers don't look at it either
}

// logPanic logs what was recovered. A handler may panic as well.
func logPanic(log *slog.Logger, message string, recovered any, attrs ...slog.Attr) {
	defer func() { _ = recover() }()
	attrs = append(attrs, slog.String(keyPanic, fmt.Sprint(recovered)), slog.String(keyStack, string(debug.Stack())))
	log.LogAttrs(context.Background(), slog.LevelError, message, attrs...)
}

package tether

import (
	"slices"

	"github.com/tetherlock/tether/actor"
)

// member is what a goroutine knows about one of the locks that it serves.
type lockState struct {
	requests []*request // that wait, hold, or have not left yet, in order
	lost     bool       // the hold that ended last
	dropped  bool       // nobody has its handle
	closers  []chan<- struct{}
	events   chan Event
	missed   int // of the events
}

// isClosed says whether a lock takes part no longer.
func (l *lock) isClosed() bool { return isClosed(l.closed) }

// over says whether a channel was closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// member returns what is known about a lock.
func (h *participant) lockState(l *lock) *lockState {
	m := h.locks[l]
	if m == nil {
		m = &lockState{dropped: l.closed == nil}
		h.locks[l] = m
	}
	return m
}

// ask passes an acquire on.
func (h *participant) acquire(q *request, feed func(actor.Input)) {
	if q.lock.isClosed() {
		q.unwatch()
		q.result <- Result{Err: ErrClosed}
		return
	}
	m := h.lockState(q.lock)
	m.requests, m.lost = append(m.requests, q), false
	feed(actor.Acquire{Call: q, Try: q.try})
}

// finish is the end of a request.
func (h *participant) finish(q *request) {
	m := h.locks[q.lock]
	if m == nil {
		return
	}
	m.requests = slices.DeleteFunc(m.requests, func(other *request) bool { return other == q })
	h.forgetIfDone(q.lock, m)
}

// handleDropped notes that a lock's handle is gone. What it holds or waits for
// goes on.
func (h *participant) handleDropped(d lockDropped, feed func(actor.Input)) {
	if m := h.locks[d.lock]; m != nil {
		m.dropped = true
		h.forgetIfDone(d.lock, m)
	}
	if d.last {
		feed(actor.Unreferenced{})
	}
}

// settle forgets a lock that wants nothing any more.
func (h *participant) forgetIfDone(l *lock, m *lockState) {
	if len(m.requests) == 0 && (m.dropped || l.isClosed()) {
		h.end(m)
		delete(h.locks, l)
	}
}

// end tells whoever waits for the end of a lock.
func (h *participant) end(m *lockState) {
	if m.events != nil {
		h.readers--
		close(m.events)
	}
	for _, left := range m.closers {
		close(left)
	}
	m.events, m.closers = nil, nil
}

// state is that of one lock.
func (h *participant) state(l *lock, s actor.State) State {
	m := h.locks[l]
	switch {
	case m == nil:
		return Idle
	case slices.ContainsFunc(m.requests, (*request).holds):
		return State(s)
	case slices.ContainsFunc(m.requests, (*request).waits):
		return Acquiring
	case m.lost:
		return Lost
	}
	return Idle
}

func (q *request) waits() bool { return q.hold == nil }
func (q *request) holds() bool { return q.hold != nil && q.hold.ctx.Err() == nil }

// eventsOf returns the channel of a lock's events.
func (h *participant) eventsOf(l *lock) <-chan Event {
	if l.isClosed() {
		return endedEvents()
	}
	m := h.lockState(l)
	if m.events == nil {
		h.readers++
		m.events = make(chan Event, eventBuffer)
	}
	return m.events
}

// readers are the locks whose events are read, of those that a call concerns:
// its own one, or all if there is no call.
func (h *participant) eventReaders(call actor.Call) []*lockState {
	if h.readers == 0 {
		return nil
	}
	var all []*lockState
	for l, m := range h.locks {
		if m.events != nil && (call == nil || call.(*request).lock == l) {
			all = append(all, m)
		}
	}
	return all
}

// closeLock ends what one lock holds and waits for, and with the last one the
// participant. The participant goes on while it serves another Lock: the handle of
// that one may have been collected with its hold in use.
func (h *participant) closeLock(c closeLock, feed func(actor.Input)) {
	if c.last && !h.servesOthers(c.lock) {
		feed(actor.Close{})
		return
	}
	m := h.lockState(c.lock)
	m.closers = append(m.closers, c.left)
	if !isClosed(c.lock.closed) {
		close(c.lock.closed)
	}
	for _, q := range slices.Clone(m.requests) {
		feed(q.closing())
	}
	h.forgetIfDone(c.lock, m)
	if c.last {
		feed(actor.Unreferenced{})
	}
}

// servesOthers says whether a Lock holds or waits that is neither l nor closed. It
// does not ask whether that one's handle is known to be gone: the news may still be
// on its way.
func (h *participant) servesOthers(l *lock) bool {
	for other, m := range h.locks {
		if other != l && !other.isClosed() && len(m.requests) > 0 {
			return true
		}
	}
	return false
}

// closing is what ends a request of a lock that was closed. A grant that nobody
// has received was never one.
func (q *request) closing() actor.Input {
	if q.hold == nil {
		return actor.Cancel{Call: q, Cause: ErrClosed}
	}
	select {
	case <-q.result:
		return actor.Reclaimed{Call: q, Cause: ErrClosed}
	default:
		return actor.Release{Hold: q, Loss: ErrClosed}
	}
}

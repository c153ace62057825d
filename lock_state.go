package tether

import (
	"slices"

	"github.com/tetherlock/tether/actor"
)

// lockState is what a participant knows about one of the Locks that it serves.
type lockState struct {
	lock     *lock
	requests []*request // that wait, hold, or have not left yet, in order
	lost     bool       // the hold that ended last
	dropped  bool       // its handle is gone
	closers  []chan<- struct{}
	events   chan Event
	missed   int // of the events
}

// isClosed says whether a channel is closed, one on which nothing is sent.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// lockState returns the state of a lock, which begins here if there is none.
func (p *participant) lockState(l *lock) *lockState {
	if l.state == nil {
		l.state = &lockState{lock: l, dropped: l.once}
		p.locks = append(p.locks, l.state)
	}
	return l.state
}

// acquire passes an acquire to the machine.
func (p *participant) acquire(q *request, feed func(actor.Input)) {
	if q.lock.closed {
		q.unwatch()
		q.result <- Result{Err: ErrClosed}
		return
	}
	m := p.lockState(q.lock)
	m.requests, m.lost = append(m.requests, q), false
	feed(actor.Acquire{Call: q, Try: q.try})
}

// finish forgets a request that has ended.
func (p *participant) finish(q *request) {
	m := q.lock.state
	if m == nil {
		return
	}
	m.requests = slices.DeleteFunc(m.requests, func(other *request) bool { return other == q })
	p.forgetIfDone(q.lock, m)
}

// handleDropped notes that a lock's handle is gone. What it holds or waits for
// goes on.
func (p *participant) handleDropped(d lockDropped, feed func(actor.Input)) {
	if m := d.lock.state; m != nil {
		m.dropped = true
		p.forgetIfDone(d.lock, m)
	}
	if d.last {
		feed(actor.Unreferenced{})
	}
}

// forgetIfDone forgets a lock that is closed or dropped and has no request left.
func (p *participant) forgetIfDone(l *lock, m *lockState) {
	if l.state == m && len(m.requests) == 0 && (m.dropped || l.closed) {
		p.end(m)
		i := slices.Index(p.locks, m)
		p.locks, l.state = slices.Delete(p.locks, i, i+1), nil
	}
}

// end closes the events of a lock and answers its Close.
func (p *participant) end(m *lockState) {
	if m.events != nil {
		p.readers--
		close(m.events)
	}
	for _, left := range m.closers {
		close(left)
	}
	m.events, m.closers = nil, nil
}

// state is that of one lock.
func (p *participant) state(l *lock, s actor.State) State {
	m := l.state
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
func (p *participant) eventsOf(l *lock) <-chan Event {
	if l.closed {
		return endedEvents()
	}
	m := p.lockState(l)
	if m.events == nil {
		p.readers++
		m.events = make(chan Event, eventBuffer)
	}
	return m.events
}

// eventReaders are the locks whose events are read and that a call concerns. A nil
// call concerns all.
func (p *participant) eventReaders(call actor.Call) []*lockState {
	if p.readers == 0 {
		return nil
	}
	var all []*lockState
	for _, m := range p.locks {
		if m.events != nil && (call == nil || call.(*request).lock == m.lock) {
			all = append(all, m)
		}
	}
	return all
}

// closeLock ends what one lock holds and waits for, and with the last one the
// participant. The participant goes on while it serves another Lock: the handle of
// that one may have been collected with its hold in use.
func (p *participant) closeLock(c closeLock, feed func(actor.Input)) {
	if c.last && !p.servesOthers(c.lock) {
		feed(actor.Close{})
		return
	}
	m := p.lockState(c.lock)
	m.closers = append(m.closers, c.left)
	c.lock.closed = true
	for _, q := range slices.Clone(m.requests) {
		feed(q.closing())
	}
	p.forgetIfDone(c.lock, m)
	if c.last {
		feed(actor.Unreferenced{})
	}
}

// servesOthers says whether a Lock holds or waits that is neither l nor closed. It
// does not ask whether that one's handle is known to be gone: the news may still be
// on its way.
func (p *participant) servesOthers(l *lock) bool {
	for _, m := range p.locks {
		if m.lock != l && !m.lock.closed && len(m.requests) > 0 {
			return true
		}
	}
	return false
}

// closing is the input that ends a request of a lock that was closed. A grant that
// its caller has not received yet is taken back.
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

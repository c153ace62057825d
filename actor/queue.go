package actor

import (
	"slices"
	"time"

	"github.com/tetherlock/tether/protocol"
)

// remember notes who asks and waits, and returns its place. Who leaves
// remembers nobody: it tells at once.
func (m *Machine) enqueue(p protocol.Ping) int {
	if m.phase == leaving {
		return 0
	}
	self := protocol.Waiter{ID: p.ID, Want: p.Want}
	switch {
	case p.Want == 0:
	case p.First:
		m.prependQueue(append(protocol.Queue{self}, p.Queue...))
	default:
		m.queue = m.queue.Add(self)
	}
	return m.queue.Place(p.ID)
}

// precede puts a queue before the own one.
func (m *Machine) prependQueue(first protocol.Queue) {
	m.queue = m.queue.Before(first...)
	if m.queue.Place(m.link.id) > 0 {
		m.queue = m.queue.Without(m.link.id)
	}
}

// follow puts a queue behind the own one.
func (m *Machine) appendQueue(last protocol.Queue) {
	for _, w := range last {
		if w.ID != m.link.id {
			m.queue = m.queue.Add(w)
		}
	}
}

// question is what a ping says about the lock itself. A try does not wait, so
// there is nothing to remember of it.
func (m *Machine) newPing(response string) protocol.Ping {
	p := protocol.Ping{Response: response, ID: m.link.id}
	if m.calls[0].Try {
		return p
	}
	p.Want = m.want()
	if p.First = m.isElected || m.current.carriesWake; p.First && !m.current.queueDelivered {
		p.Queue = m.queue.Luggage()
	}
	return p
}

// carried is the queue that a record hands on: that of a contender which was
// woken, lest it be lost with it.
func (m *Machine) queueToHandOn() protocol.Queue {
	if m.current.carriesWake && m.phase.contending() {
		return m.queue.Luggage()
	}
	return nil
}

// woken takes a wake. It is never swallowed: whoever cannot use it sends it
// on.
func (m *Machine) woken(w protocol.Wake) {
	switch {
	case w.Readers:
		if m.cfg.Shared && m.phase == sleeping {
			m.current.readersWoken = true
			m.attempt()
		}
	case m.phase == holding:
		m.prependQueue(w.Queue)
	case m.phase == resting, m.phase == leaving && m.leave.final():
		m.link.queued = false
		m.passQueue(slices.Clone(w.Queue))
	default:
		m.prependQueue(w.Queue)
		m.current.carriesWake, m.current.queueDelivered = true, false
		m.probe.ping.First = false // it is under way without this queue
		m.useWake()
	}
}

// rouse makes use of a wake.
func (m *Machine) useWake() {
	switch m.phase {
	case sleeping:
		m.attempt()
	case elected:
		m.sendProbe(electing)
	case dialing, joining, electing, confirming, reconfirming, leaving:
		m.current.retryAtOnce = true
	case resting, holding:
	}
}

// pass wakes the first of a queue that listens, who gets the rest of it.
func (m *Machine) passQueue(q protocol.Queue) {
	q = slices.DeleteFunc(q, func(w protocol.Waiter) bool { return w.ID == m.link.id && !m.leave.keepsWakeChannel })
	if len(q) > 0 {
		m.wake(q, false)
	}
}

func (m *Machine) wake(q protocol.Queue, text bool) {
	m.link.wakes = append(m.link.wakes, q)
	m.send(Command{Op: Wake, Queue: q, Text: text})
}

// waked takes the end of the first wake that is under way.
func (m *Machine) wakeAnswered() protocol.Queue {
	q := m.link.wakes[0]
	m.link.wakes = m.link.wakes[1:]
	return q
}

// pollPause is the time between two looks of one of a number of sleepers. It
// grows with them, so that a lock costs the same however many wait for it. It
// varies less than other pauses: it is what a crashed holder's lock costs.
func (m *Machine) pollPause(sleepers int) time.Duration {
	pause := max(m.cfg.Poll, time.Duration(sleepers)*m.cfg.Poll/4)
	return time.Duration(float64(pause) * (0.75 + m.cfg.Jitter()/2))
}

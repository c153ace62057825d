package actor

import (
	"slices"
	"time"

	"github.com/tetherlock/tether/protocol"
)

// The queue rule:
//
//   - A participant appends to its queue the sender of each ping that says what
//     it waits for. A later ping keeps the place.
//   - A participant that leaves the channel after it held, or was elected, wakes
//     the first waiter that still sleeps. The rest of the queue travels with the
//     wake.
//   - The woken waiter attempts at once. If it meets a participant that came in
//     between, it passes the queue on with its ping, marked as first. That
//     participant's queue then is: the woken one, its luggage, those that were
//     queued there before.
//   - A lock that releases with a queue goes to the tail of it, and its next
//     call does not race the woken waiter; see handOverQueue and beginCall.
//   - A wake is never lost: a lock that cannot use it sends it on, with its
//     queue.
//
// All of this is a hint about order. No grant rests on it, and the polls of the
// sleepers make up for what gets lost.

// enqueue queues the sender of a ping if it waits, and returns its place, 0 for
// none. A lock that is leaving queues nobody: it wakes the sender at once, see
// answerPing.
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

// prependQueue puts a queue before the own one.
func (m *Machine) prependQueue(first protocol.Queue) {
	m.queue = m.queue.Before(first...)
	if m.queue.Place(m.link.id) > 0 {
		m.queue = m.queue.Without(m.link.id)
	}
}

// appendQueue puts a queue behind the own one.
func (m *Machine) appendQueue(last protocol.Queue) {
	for _, w := range last {
		if w.ID != m.link.id {
			m.queue = m.queue.Add(w)
		}
	}
}

// newPing is a ping of this lock. A try does not wait, so its ping does not ask
// to be queued.
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

// queueToHandOn is the queue that an answer passes on: that of a contender which
// was woken. If it crashed, the queue would be lost with it.
func (m *Machine) queueToHandOn() protocol.Queue {
	if m.current.carriesWake && m.phase.contending() {
		return m.queue.Luggage()
	}
	return nil
}

// woken takes a wake. A lock that cannot use it sends it on.
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
		m.probe.ping.First = false // the ping under way does not carry this queue
		m.useWake()
	}
}

// useWake attempts now, or as soon as the attempt under way is over.
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

// passQueue wakes the first of a queue that still sleeps, and gives it the rest.
// The lock leaves itself out if it could not receive the wake.
func (m *Machine) passQueue(q protocol.Queue) {
	q = slices.DeleteFunc(q, func(w protocol.Waiter) bool { return w.ID == m.link.id && !m.leave.keepsWakeChannel })
	if len(q) > 0 {
		m.wake(q, false)
	}
}

// wake sends a Wake. The queue is kept until the reply, in case that the server
// does not have the script.
func (m *Machine) wake(q protocol.Queue, text bool) {
	m.link.wakes = append(m.link.wakes, q)
	m.send(Command{Op: Wake, Queue: q, Text: text})
}

// wakeAnswered takes the reply to the oldest Wake, and returns its queue.
func (m *Machine) wakeAnswered() protocol.Queue {
	q := m.link.wakes[0]
	m.link.wakes = m.link.wakes[1:]
	return q
}

// pollPause is the time until a sleeper's next poll. It grows with the number of
// sleepers, so that the polls of a lock cost the same however many wait. Its
// jitter is smaller than that of other pauses, a factor of 0.75 to 1.25: the
// interval bounds how long a crashed holder's lock stands free.
func (m *Machine) pollPause(sleepers int) time.Duration {
	pause := max(m.cfg.Poll, time.Duration(sleepers)*m.cfg.Poll/4)
	return time.Duration(float64(pause) * (0.75 + m.cfg.Jitter()/2))
}

package actor

import (
	"time"

	"github.com/tetherlock/tether/protocol"
)

// departure is a lock on its way off the channel, and what comes behind.
type departure struct {
	within   time.Duration // until the socket is closed instead
	until    time.Time
	refusal  *Refusal // ends the served call, or the reclaimed one
	returned Call     // whose grant nobody received
	idle     bool     // nobody is served, and the socket goes
	pause    time.Duration
	look     bool
	ended    bool // a hold
	passes   bool // others may have gone to sleep in the belief that it stays
	stays    bool // on its wake channel
}

// hasten lets a departure take no longer than a duration from now on.
func (d *departure) hasten(now time.Time, within time.Duration) {
	if until := now.Add(within); until.Before(d.until) {
		d.until = until
	}
}

// last says that nobody behind the departure can use a wake.
func (d *departure) last() bool { return d.refusal != nil || d.ended || d.idle }

// depart leaves the channel. Until the server has confirmed it, pings come
// and are answered, as pending.
func (m *Machine) depart(d departure) {
	if d.within == 0 {
		d.within = departLimit
	}
	d.until = m.now.Add(d.within)
	d.ended = m.hold.ending
	d.passes = d.ended || m.chief
	d.stays = d.look || m.link.find(m.link.wake) != nil
	if d.last() {
		d.stays = d.ended && !m.closing && len(m.queue) > 0
	}
	if !d.stays {
		m.link.placed = false // deaf, it would miss its turn
	}
	m.withdraw()
	m.phase = leaving
	m.leave = d
	m.send(m.exit(make([]Command, 0, 4))...)
	m.handOver()
}

// exit lists what takes the lock off the channel. Only who is on the channel
// may bear its name, or peers take the socket for a participant that does not
// answer: so the name comes off first, and the channel last.
func (m *Machine) exit(list []Command) []Command {
	if m.leave.stays {
		list = append(list, Command{Op: Hello, Naming: IdleName})
		if m.link.find(m.link.wake) == nil {
			list = append(list, Command{Op: Subscribe, Channel: m.link.wake})
		}
	}
	return m.unsubscribes(list, func(channel string) bool {
		return m.leave.stays && (channel == m.link.wake || channel == m.cfg.Waiters && !m.leave.ended)
	})
}

// handOver wakes the next one, if there was a hold or an election to wait for,
// or a wake that is of no use any more. Who has held goes to the tail: on its
// warm socket it would be back before the woken one has read its push, every
// time.
func (m *Machine) handOver() {
	d := &m.leave
	switch {
	case d.ended:
		if len(m.queue) == 0 {
			break
		}
		q := append(m.queue[:min(len(m.queue), protocol.MaxLuggage-1)], protocol.Waiter{ID: m.link.id, Want: m.want()})
		m.link.placed = d.stays
		m.wake(q, false)
	case d.passes, d.last() && m.serve.woken:
		m.pass(m.queue)
	case m.serve.woken && !m.serve.handed:
		return // it goes on carrying it
	}
	m.queue, m.serve.woken = nil, false
}

// forsake takes back what a lock that leaves was to keep: its call has ended
// meanwhile.
func (m *Machine) forsake() {
	if !m.leave.stays {
		return
	}
	m.leave.stays, m.link.placed = false, false
	if list := m.unsubscribes(nil, func(string) bool { return false }); len(list) > 0 {
		m.send(list...)
	}
	m.handOver()
}

// left goes on behind a departure. Err says why it was not confirmed.
func (m *Machine) left(err error) {
	d := m.leave
	m.leave = departure{}
	switch {
	case m.hold.ending:
		m.returned(d, err)
	case d.refusal != nil:
		m.refuse(*d.refusal)
	case d.idle:
		m.phase = resting
		m.putAway(false)
		m.rest()
	case m.serve.again:
		m.attempt()
	default:
		m.sleep(d.pause, d.look)
	}
}

// returned ends a hold that was given back or closed.
func (m *Machine) returned(d departure, err error) {
	m.phase = resting
	if m.hold.loss == nil {
		for _, call := range m.hold.calls {
			m.tell(call, GaveBack{ID: m.hold.id, Err: err})
		}
	}
	m.tidy()
	for _, call := range m.hold.calls {
		if m.hold.loss == nil || m.hold.awaited {
			m.do(Released{Hold: call, Err: err})
		}
	}
	clear(m.hold.calls)
	m.hold = hold{calls: m.hold.calls[:0]}
	if d.refusal != nil {
		m.do(Refuse{d.returned, *d.refusal})
	}
	m.rest()
}

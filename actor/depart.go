package actor

import (
	"time"

	"github.com/tetherlock/tether/protocol"
)

// departure is a lock on its way off the channel, and what comes behind.
type departure struct {
	within           time.Duration // until the socket is closed instead
	until            time.Time
	refusal          *Refusal // ends the served call, or the reclaimed one
	reclaimed        Call     // whose grant nobody received
	idle             bool     // nobody is served, and the socket goes
	pause            time.Duration
	pollFirst        bool
	endsHold         bool // a hold
	mustPassQueue    bool // others may have gone to sleep in the belief that it stays
	keepsWakeChannel bool // on its wake channel
}

// hasten lets a departure take no longer than a duration from now on.
func (d *departure) shorten(now time.Time, within time.Duration) {
	if until := now.Add(within); until.Before(d.until) {
		d.until = until
	}
}

// last says that nobody behind the departure can use a wake.
func (d *departure) final() bool { return d.refusal != nil || d.endsHold || d.idle }

// depart leaves the channel. Until the server has confirmed it, pings come
// and are answered, as pending.
func (m *Machine) depart(d departure) {
	if d.within == 0 {
		d.within = departLimit
	}
	d.until = m.now.Add(d.within)
	d.endsHold = m.hold.ending
	d.mustPassQueue = d.endsHold || m.isElected
	d.keepsWakeChannel = d.pollFirst || m.link.find(m.link.wake) != nil
	if d.final() {
		d.keepsWakeChannel = d.endsHold && !m.closing && len(m.queue) > 0
	}
	if !d.keepsWakeChannel {
		m.link.queued = false // deaf, it would miss its turn
	}
	m.withdrawClaims()
	m.phase = leaving
	m.leave = d
	m.send(m.leaveCommands(make([]Command, 0, 4))...)
	m.handOverQueue()
}

// exit lists what takes the lock off the channel. Only who is on the channel
// may bear its name, or peers take the socket for a participant that does not
// answer: so the name comes off first, and the channel last.
func (m *Machine) leaveCommands(list []Command) []Command {
	if m.leave.keepsWakeChannel {
		list = append(list, Command{Op: Hello, Naming: IdleName})
		if m.link.find(m.link.wake) == nil {
			list = append(list, Command{Op: Subscribe, Channel: m.link.wake})
		}
	}
	return m.unsubscribes(list, func(channel string) bool {
		return m.leave.keepsWakeChannel && (channel == m.link.wake || channel == m.cfg.Waiters && !m.leave.endsHold)
	})
}

// handOver wakes the next one, if there was a hold or an election to wait for,
// or a wake that is of no use any more. Who has held goes to the tail: on its
// warm socket it would be back before the woken one has read its push, every
// time.
func (m *Machine) handOverQueue() {
	d := &m.leave
	switch {
	case d.endsHold:
		if len(m.queue) == 0 {
			break
		}
		q := append(m.queue[:min(len(m.queue), protocol.MaxLuggage-1)], protocol.Waiter{ID: m.link.id, Want: m.want()})
		m.link.queued = d.keepsWakeChannel
		m.wake(q, false)
	case d.mustPassQueue, d.final() && m.current.carriesWake:
		m.passQueue(m.queue)
	case m.current.carriesWake && !m.current.queueDelivered:
		return // it goes on carrying it
	}
	m.queue, m.current.carriesWake = nil, false
}

// forsake takes back what a lock that leaves was to keep: its call has ended
// meanwhile.
func (m *Machine) giveUpPlace() {
	if !m.leave.keepsWakeChannel {
		return
	}
	m.leave.keepsWakeChannel, m.link.queued = false, false
	if list := m.unsubscribes(nil, func(string) bool { return false }); len(list) > 0 {
		m.send(list...)
	}
	m.handOverQueue()
}

// left goes on behind a departure. Err says why it was not confirmed.
func (m *Machine) departed(err error) {
	d := m.leave
	m.leave = departure{}
	switch {
	case m.hold.ending:
		m.finishHold(d, err)
	case d.refusal != nil:
		m.refuse(*d.refusal)
	case d.idle:
		m.phase = resting
		m.parkOrClose(false)
		m.nextOrIdle()
	case m.current.retryAtOnce:
		m.attempt()
	default:
		m.sleep(d.pause, d.pollFirst)
	}
}

// returned ends a hold that was given back or closed.
func (m *Machine) finishHold(d departure, err error) {
	m.phase = resting
	if m.hold.loss == nil {
		for _, call := range m.hold.calls {
			m.notifyCall(call, GaveBack{ID: m.hold.id, Err: err})
		}
	}
	m.parkEarly()
	for _, call := range m.hold.calls {
		if m.hold.loss == nil || m.hold.awaited {
			m.do(Released{Hold: call, Err: err})
		}
	}
	clear(m.hold.calls)
	m.hold = hold{calls: m.hold.calls[:0]}
	if d.refusal != nil {
		m.do(Refuse{d.reclaimed, *d.refusal})
	}
	m.nextOrIdle()
}

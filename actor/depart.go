package actor

import (
	"time"

	"github.com/tetherlock/tether/protocol"
)

// departure is how a lock leaves the channel, and what follows: the end of a
// hold, a refusal, idling, or another attempt after a pause.
type departure struct {
	within           time.Duration // then the socket is closed instead; 0 for departLimit
	until            time.Time     // when that is
	refusal          *Refusal      // of the served call, or of the reclaimed one
	reclaimed        Call          // whose grant nobody received
	idle             bool          // no call is served; the socket is parked
	pause            time.Duration // before the next attempt or poll
	pollFirst        bool          // the pause ends with a poll
	endsHold         bool
	mustPassQueue    bool // it held or was elected: others went to sleep and count on its wake
	keepsWakeChannel bool // stays subscribed to its wake channel
}

// shorten lets a departure take no longer than within, from now on.
func (d *departure) shorten(now time.Time, within time.Duration) {
	if until := now.Add(within); until.Before(d.until) {
		d.until = until
	}
}

// final reports that no attempt follows the departure, so that a wake is of no
// use to this lock.
func (d *departure) final() bool { return d.refusal != nil || d.endsHold || d.idle }

// depart leaves the channel. Pings arrive until the server has confirmed it, and
// are answered with a record that claims nothing.
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
		m.link.queued = false // without its wake channel it would miss its turn
	}
	m.withdrawClaims()
	m.phase = leaving
	m.leave = d
	m.send(m.leaveCommands(make([]Command, 0, 4))...)
	m.handOverQueue()
}

// leaveCommands adds the commands that take the lock off the channel. A socket
// that stays subscribed to its wake channel gets another name first: peers would
// take one with the lock's name for a participant that does not answer. The
// lock's channel comes last.
func (m *Machine) leaveCommands(list []Command) []Command {
	if m.leave.keepsWakeChannel {
		if !m.cfg.Session {
			list = append(list, Command{Op: Hello, Naming: IdleName})
		}
		if m.link.find(m.link.wake) == nil {
			list = append(list, Command{Op: Subscribe, Channel: m.wakeChannel()})
		}
	}
	return m.unsubscribes(list, func(channel string) bool {
		return m.leave.keepsWakeChannel && (channel == m.link.wake || channel == m.link.waiters && !m.leave.endsHold)
	})
}

// handOverQueue wakes the next waiter if this lock held, was elected, or was
// woken and cannot use the wake. In the first case the lock itself goes to the
// tail of the queue. Without that it would race the woken waiter, and win every
// time: its socket is warm, and the waiter has yet to read its wake.
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
		return // the next attempt carries the queue on
	}
	m.queue, m.current.carriesWake = nil, false
}

// giveUpPlace lets a lock that is leaving drop its wake channel too, and with it
// its place in the queue: the call has ended that was to go on with them.
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

// departed does what follows a departure. err is why it was not confirmed, nil
// if it was.
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

// finishHold ends a hold that has left the channel: released, reclaimed or
// closed.
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
	m.setHold(hold{calls: m.hold.calls[:0]})
	if d.refusal != nil {
		m.do(Refuse{d.reclaimed, *d.refusal})
	}
	m.nextOrIdle()
}

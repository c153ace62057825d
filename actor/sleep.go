package actor

import "time"

// A sleeper is off the channel, subscribed to its wake channel. What ends its
// sleep is a wake, or a poll that finds nobody on the channel. (Behind an error
// it has no socket, and attempts after its pause.) The poll rule:
//
//   - A poll is one small command that counts the channel and the sleepers.
//     Nobody on the channel: attempt.
//   - The interval grows with the number of sleepers, see pollPause.
//   - Every pollsPerProbe-th poll is an attempt instead, with its probe. It
//     finds a holder that is frozen or was replaced by another, and queues this
//     waiter anew.

// sleep waits off the channel, for a pause or a wake. With pollFirst the pause
// ends with a poll, else with an attempt.
func (m *Machine) sleep(pause time.Duration, pollFirst bool) {
	m.phase = sleeping
	m.current.slept = true
	m.current.wake = m.now.Add(pause)
	m.current.pollFirst = pollFirst
	m.current.pollSent = time.Time{}
}

// poll counts the participants, and the sleepers: the subscribers of the waiters'
// channel, this lock included.
func (m *Machine) poll() {
	m.current.pollSent = m.now
	if m.link.find(m.waitersChannel()) == nil {
		m.send(Command{Op: Subscribe, Channel: m.link.waiters})
	}
	m.send(Command{Op: Poll})
}

// wakeUp ends a pause with a poll or an attempt.
func (m *Machine) wakeUp() {
	m.current.polls++
	if !m.current.pollFirst || !m.link.up || m.current.polls%pollsPerProbe == 0 {
		m.attempt()
		return
	}
	m.poll()
}

// polled takes the reply to a poll.
func (m *Machine) polled(in Polled) {
	if m.phase != sleeping || m.current.pollSent.IsZero() {
		return // a wake has ended the sleep meanwhile
	}
	m.current.pollSent = time.Time{}
	if in.N == 0 {
		m.attempt()
		return
	}
	m.current.wake = m.now.Add(m.pollPause(in.Sleepers))
}

// sleepTick takes the end of a pause, or a poll that was not answered in time.
func (m *Machine) sleepTick() {
	if m.current.pollSent.IsZero() {
		m.wakeUp()
		return
	}
	m.fail(late(Poll))
}

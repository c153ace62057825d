package actor

import "time"

// sleep waits off the channel. With look, waking up begins with a count.
func (m *Machine) sleep(pause time.Duration, look bool) {
	m.phase = sleeping
	m.current.slept = true
	m.current.wake = m.now.Add(pause)
	m.current.pollFirst = look
	m.current.pollSent = time.Time{}
}

// look counts who is on the channel and who sleeps, the lock itself included.
func (m *Machine) poll() {
	m.current.pollSent = m.now
	if m.link.find(m.cfg.Waiters) == nil {
		m.send(Command{Op: Subscribe, Channel: m.cfg.Waiters})
	}
	m.send(Command{Op: Poll})
}

// awake ends a sleep: with a look at the channel, or with an attempt.
func (m *Machine) wakeUp() {
	m.current.polls++
	if !m.current.pollFirst || !m.link.up || m.current.polls%pollsPerProbe == 0 {
		m.attempt()
		return
	}
	m.poll()
}

// looked is the answer to a sleeper's look.
func (m *Machine) polled(in Polled) {
	if m.phase != sleeping || m.current.pollSent.IsZero() {
		return // it was woken meanwhile
	}
	m.current.pollSent = time.Time{}
	if in.N == 0 {
		m.attempt()
		return
	}
	m.current.wake = m.now.Add(m.pollPause(in.Sleepers))
}

// sleepTick is the end of a pause, or of the patience for a look's answer.
func (m *Machine) sleepTick() {
	if m.current.pollSent.IsZero() {
		m.wakeUp()
		return
	}
	m.fail(late(Poll))
}

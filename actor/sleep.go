package actor

import "time"

// sleep waits off the channel. With look, waking up begins with a count.
func (m *Machine) sleep(pause time.Duration, look bool) {
	m.phase = sleeping
	m.serve.slept = true
	m.serve.wake = m.now.Add(pause)
	m.serve.look = look
	m.serve.asked = time.Time{}
}

// look counts who is on the channel and who sleeps, the lock itself included.
func (m *Machine) look() {
	m.serve.asked = m.now
	if m.link.find(m.cfg.Waiters) == nil {
		m.send(Command{Op: Subscribe, Channel: m.cfg.Waiters})
	}
	m.send(Command{Op: Look})
}

// awake ends a sleep: with a look at the channel, or with an attempt.
func (m *Machine) awake() {
	m.serve.looks++
	if !m.serve.look || !m.link.up || m.serve.looks%looks == 0 {
		m.attempt()
		return
	}
	m.look()
}

// looked is the answer to a sleeper's look.
func (m *Machine) looked(in Looked) {
	if m.phase != sleeping || m.serve.asked.IsZero() {
		return // it was woken meanwhile
	}
	m.serve.asked = time.Time{}
	if in.N == 0 {
		m.attempt()
		return
	}
	m.serve.wake = m.now.Add(m.pollPause(in.Sleepers))
}

// sleepTick is the end of a pause, or of the patience for a look's answer.
func (m *Machine) sleepTick() {
	if m.serve.asked.IsZero() {
		m.awake()
		return
	}
	m.fail(late(Look))
}

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

// lineUp is how a call begins on a socket whose id is queued: whoever was
// woken instead of it has yet to read so, and would find the lock taken each
// time. The name comes off first, for it is subscribed and not on the channel.
func (m *Machine) lineUp(until time.Time) {
	m.sleep(0, true)
	m.serve.polite = until
	m.send(Command{Op: Hello, Naming: IdleName}, Command{Op: Subscribe, Channel: m.link.wake})
	m.look()
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
	if !m.serve.look || !m.link.up || m.serve.looks%looks == 0 && m.serve.polite.IsZero() {
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
	polite := m.now.Before(m.serve.polite)
	switch {
	case in.N == 0 && polite && in.Sleepers > 1:
		// One of them is on its way.
		m.serve.wake = m.now.Add(m.quick())
	case in.N == 0, !m.serve.polite.IsZero():
		// With somebody there, the attempt finds out whether that one knows
		// of this lock.
		m.serve.polite = time.Time{}
		m.attempt()
	default:
		m.serve.wake = m.now.Add(m.pollPause(in.Sleepers))
	}
}

// sleepTick is the end of a pause, or of the patience for a look's answer.
func (m *Machine) sleepTick() {
	switch {
	case m.serve.asked.IsZero():
		m.awake()
	case m.link.doubtful():
		m.drop()
		m.attemptWith(true)
	default:
		m.fail(late(Look))
	}
}

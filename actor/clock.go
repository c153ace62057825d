package actor

import "time"

// Deadline returns when the machine wants a [Tick], the zero time for never. It
// follows from the state, so it is asked anew after each step.
func (m *Machine) Deadline() time.Time { return earlier(m.phaseDeadline(), m.callDeadline()) }

// earlier returns the earlier of two times. The zero time means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (m *Machine) phaseDeadline() time.Time {
	switch m.phase {
	case resting:
		if m.link.up {
			return m.link.idleUntil
		}
	case joining:
		return m.replyDue()
	case electing, confirming:
		return m.probeDue()
	case elected, reconfirming:
		return m.current.wake
	case sleeping:
		return m.sleepDue()
	case leaving:
		return m.leave.until
	case holding:
		return m.holdDeadline()
	case dialing:
	}
	return time.Time{}
}

// callDeadline is when the first call is refused for having waited too long. A
// call whose refusal only waits for the departure has none: the departure has a
// limit of its own.
func (m *Machine) callDeadline() time.Time {
	if len(m.calls) == 0 || m.served() && m.phase == leaving && m.leave.refusal != nil {
		return time.Time{}
	}
	return m.calls[0].deadline
}

// replyDue is when a reply is overdue. A socket that may be dead gets little
// time. The time runs anew with each frame: a server that sends frames is slow
// and not dead. It answers in order, and asking again on another socket would
// make it slower.
func (m *Machine) replyDue() time.Time {
	if m.phase == joining && m.link.maybeDead() {
		return m.probe.sent.Add(min(m.cfg.Reply, idleSocketLimit))
	}
	return later(m.probe.sent, m.link.lastFrame).Add(m.cfg.Reply)
}

// sleepDue is when a sleeper wakes up, or its poll is overdue.
func (m *Machine) sleepDue() time.Time {
	if m.current.pollSent.IsZero() {
		return m.current.wake
	}
	return m.current.pollSent.Add(m.cfg.Reply)
}

// probeDue is when a probe has something to do: recount, ping again, or give up.
func (m *Machine) probeDue() time.Time {
	if m.probe.n < 0 || !m.probe.greeted {
		return m.replyDue()
	}
	limit := m.silentAt()
	if !m.reaper.listSent.IsZero() {
		limit = m.listDue()
	}
	if r := m.probe.recount; !r.IsZero() && r.Before(limit) {
		return r
	}
	return limit
}

// listDue is when the reply to a CLIENT LIST is overdue.
func (m *Machine) listDue() time.Time {
	return later(m.reaper.listSent, m.link.lastFrame).Add(m.cfg.Reply)
}

// due reports whether a time has come. The zero time never comes.
func (m *Machine) due(t time.Time) bool { return !t.IsZero() && !m.now.Before(t) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// tick does what is due. Nothing may be due: the loop does not set its timer
// anew when the deadline moves to a later time.
func (m *Machine) tick() {
	if m.expire(); !m.due(m.phaseDeadline()) {
		return
	}
	switch m.phase {
	case resting:
		m.idleTick()
	case joining:
		m.joinTick()
	case electing, confirming:
		m.probeTick()
	case elected:
		m.sendProbe(electing)
	case reconfirming:
		m.sendProbe(confirming)
	case sleeping:
		m.sleepTick()
	case leaving:
		m.drop()
		m.departed(late(Unsubscribe))
	case holding:
		m.holdTick()
	case dialing:
	}
}

// idleTick parks the socket of an idle lock. One that is still subscribed to its
// wake channel leaves that first.
func (m *Machine) idleTick() {
	if len(m.link.subs) > 0 {
		m.depart(departure{idle: true})
		return
	}
	m.parkOrClose(false)
}

func (m *Machine) joinTick() {
	if m.link.maybeDead() {
		m.drop()
		m.attemptWith(true)
		return
	}
	m.fail(late(Count))
}

func (m *Machine) probeTick() {
	listing := !m.reaper.listSent.IsZero()
	switch {
	case m.probe.n < 0 || !m.probe.greeted:
		m.fail(late(Probe))
	case listing && m.due(m.listDue()):
		m.fail(late(List))
	case !listing && m.due(m.silentAt()):
		m.overdue()
	default:
		m.probe.recount = time.Time{}
		m.send(Command{Op: Count})
	}
}

// tryRefusal refuses a try whose time is up. It names the silent participants of
// the probe that is out.
func (m *Machine) tryRefusal() Refusal {
	r := m.refusal(Inconclusive, m.current.lastErr)
	if m.phase == dialing || m.phase == joining {
		r.Cause = late(Hello)
	}
	if m.phase.probing() && m.probe.n >= 0 {
		r.Silent = m.missingAnswers()
	}
	return r
}

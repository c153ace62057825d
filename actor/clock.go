package actor

import "time"

// Deadline is when the machine wants a [Tick], the zero time for never.
func (m *Machine) Deadline() time.Time {
	at := m.phaseDeadline()
	if limit := m.tryDeadline(); !limit.IsZero() && (at.IsZero() || limit.Before(at)) {
		return limit
	}
	return at
}

func (m *Machine) phaseDeadline() time.Time {
	switch m.phase {
	case resting:
		if m.link.up {
			return m.link.until
		}
	case joining:
		return m.replyDue()
	case electing, confirming:
		return m.probeDue()
	case elected, doubting:
		return m.serve.wake
	case sleeping:
		if !m.serve.asked.IsZero() {
			return m.serve.asked.Add(m.cfg.Reply)
		}
		return m.serve.wake
	case leaving:
		return m.leave.until
	case holding:
		if !m.hold.asked.IsZero() {
			return m.answerDue()
		}
		return m.hold.check
	case dialing:
	}
	return time.Time{}
}

// tryDeadline bounds a try wherever it stands; one that leaves is bounded
// already.
func (m *Machine) tryDeadline() time.Time {
	switch m.phase {
	case resting, holding, leaving:
		return time.Time{}
	case dialing, joining, electing, elected, confirming, doubting, sleeping:
	}
	if !m.calls[0].Try {
		return time.Time{}
	}
	return m.serve.began.Add(tryLimit)
}

// replyDue is when an answer is overdue. A doubtful socket gets little time.
func (m *Machine) replyDue() time.Time {
	if m.phase == joining && m.link.doubtful() {
		return m.probe.sent.Add(min(m.cfg.Reply, warmLimit))
	}
	return m.probe.sent.Add(m.cfg.Reply)
}

// probeDue is when a probe wants to recount, or gives up.
func (m *Machine) probeDue() time.Time {
	if m.probe.n < 0 || !m.probe.greeted {
		return m.replyDue()
	}
	if r := m.probe.recount; !r.IsZero() && r.Before(m.probe.limit) {
		return r
	}
	return m.probe.limit
}

func (m *Machine) due(t time.Time) bool { return !t.IsZero() && !m.now.Before(t) }

// tick does what is due.
func (m *Machine) tick() {
	if m.due(m.tryDeadline()) {
		m.giveUp(m.tryRefusal(), cancelLimit)
		return
	}
	if !m.due(m.phaseDeadline()) {
		return
	}
	switch m.phase {
	case resting:
		m.putAway()
	case joining:
		m.joinTick()
	case electing, confirming:
		m.probeTick()
	case elected:
		m.ask(electing)
	case doubting:
		m.ask(confirming)
	case sleeping:
		m.sleepTick()
	case leaving:
		m.drop()
		m.left(late(Unsubscribe))
	case holding:
		m.checkHealth()
	case dialing:
	}
}

func (m *Machine) joinTick() {
	if m.link.doubtful() {
		m.drop()
		m.attemptWith(true)
		return
	}
	m.fail(late(Count))
}

func (m *Machine) probeTick() {
	switch {
	case m.probe.n < 0 || !m.probe.greeted:
		m.fail(late(Probe))
	case m.due(m.probe.limit):
		m.silent()
	default:
		m.probe.recount = time.Time{}
		m.send(Command{Op: Count})
	}
}

func (m *Machine) sleepTick() {
	if !m.serve.asked.IsZero() {
		m.fail(late(Count))
		return
	}
	m.awake()
}

// tryRefusal is the end of a try that has taken its time.
func (m *Machine) tryRefusal() Refusal {
	r := m.refusal(Inconclusive, m.serve.trouble)
	if m.phase == dialing || m.phase == joining {
		r.Cause = late(Hello)
	}
	if p := m.probe; m.phase.probing() && p.n >= 0 {
		r.Silent = max(0, p.n-len(p.records)-1)
	}
	return r
}

package actor

import (
	"fmt"
	"strings"
	"time"
)

// drain ends a run. Faults stop, frozen processes thaw, and every grant is given
// back. Then every pending acquire must be granted, and in the end no lock may be
// subscribed to anything.
func (m *model) drain() {
	m.logf("drain: no more faults")
	m.noFaults, m.deniesCommands, m.writesPausedUntil = true, false, m.now
	m.unboundedDelay, m.maxDelay = m.unboundedDelay || m.maxDelay == 0, 5*time.Millisecond
	for num := range m.locks {
		if m.process(num).frozen {
			m.thaw(num)
		}
	}
	m.runUntil(func() bool { return !m.hasOpenCalls() }, "a call never ends")
	for _, l := range m.locks {
		if l != nil && !l.stopped && !m.noCrashes && m.chance(2) {
			l.feed(Close{})
		}
	}
	end := m.now.Add(2 * time.Second)
	m.runUntil(func() bool { return !m.now.Before(end) && !m.messagesInFlight() }, "messages never stop")
	m.checkQuiescent()
}

// drainSteps bounds the steps that a drain may take.
const drainSteps = 30_000

// runUntil makes random steps until a condition holds, and fails if that takes
// too many.
func (m *model) runUntil(over func() bool, failure string) {
	end := m.steps + drainSteps
	for tries := 0; !over(); tries++ {
		if m.steps > end || tries > 10*drainSteps {
			m.fail("%s: %s", failure, m.describeOpenCalls())
		}
		m.randomStep()
		if tries%16 == 0 {
			m.releaseAll()
		}
		if tries%64 == 0 && !m.messagesInFlight() {
			m.advanceTo(m.now.Add(50 * time.Millisecond))
		}
	}
}

// releaseAll releases every hold. A peer may also give up its acquire.
func (m *model) releaseAll() {
	for _, l := range m.locks {
		if l != nil && !l.stopped {
			l.readGrant()
			l.release()
		}
	}
	for _, p := range m.peers {
		if p != nil && (p.stage == peerHolding || m.chance(8)) {
			p.release()
		}
	}
}

func (m *model) hasOpenCalls() bool {
	for _, l := range m.locks {
		if l != nil && len(l.pending)+len(l.holds)+len(l.releasing)+len(l.ownedChecks) > 0 {
			return true
		}
	}
	for _, p := range m.peers {
		if p != nil && p.stage != peerIdle {
			return true
		}
	}
	return false
}

func (m *model) describeOpenCalls() string {
	var text strings.Builder
	for _, l := range m.locks {
		if l != nil {
			fmt.Fprintf(&text, "\nlock %d: pending %v, holds %v, releasing %v, owned checks %v, phase %v, due %v, connection %s", l.num, l.pending, l.holds,
				l.releasing, l.ownedChecks, l.machine.phase, l.machine.Deadline().Sub(m.now), formatValue(l.conn))
		}
	}
	for _, p := range m.peers {
		if p != nil {
			fmt.Fprintf(&text, "\npeer %d: stage %v", p.num, p.stage)
		}
	}
	return text.String()
}

// checkQuiescent requires that idle locks and idle sockets have no subscription
// left.
func (m *model) checkQuiescent() {
	for _, l := range m.locks {
		if l != nil && l.conn != nil && len(l.conn.subs) > 0 {
			m.fail("lock %d is idle and subscribed to %v", l.num, l.conn.subs)
		}
	}
	for _, c := range m.conns {
		if c.parked && len(c.subs) > 0 {
			m.fail("%s is idle and subscribed to %v", m.describeConn(c), c.subs)
		}
	}
}

package actor

import (
	"slices"
	"time"

	"github.com/tetherlock/tether/protocol"
)

// hold is one participation that was granted, from the grant until it has
// left. A reader's may be that of several calls.
type hold struct {
	calls       []Call
	id          string
	token       int64
	since       time.Time
	nextCheck   time.Time // of the next health check
	checks      []check   // under way
	selfCheck   selfCheck
	writerCheck writerCheck
	// strangers have asked who do not say whether they wait: peers of other
	// kinds, which nobody wakes.
	unknownWaiters bool
	ending         bool // given back or closed, on its way off the channel
	loss           error
	awaited        bool // its end off the channel, by whoever has ended it
}

// check is a question whether the hold still stands: a health check, or a
// caller's.
type check struct {
	sent time.Time
	hold Call
	call Call // nil for a health check
}

func (h *hold) has(call Call) bool { return slices.Contains(h.calls, call) }

// answerDue is when a check must be answered.
func (m *Machine) answerDue() time.Time {
	return m.hold.checks[0].sent.Add(min(m.cfg.Health, healthLimit))
}

// examine asks the node for its role: a subscription survives the node's
// demotion and answers pings there, beside a second owner on the new master.
func (m *Machine) sendCheck(hold, call Call) {
	m.hold.checks = append(m.hold.checks, check{m.now, hold, call})
	m.send(Command{Op: Hello})
}

// checkHealth checks now, or has waited too long for the answer.
func (m *Machine) checkHealth() {
	if len(m.hold.checks) > 0 && m.due(m.answerDue()) {
		m.lose(late(Hello))
		return
	}
	if m.due(m.hold.nextCheck) {
		m.hold.nextCheck = m.now.Add(m.cfg.Health)
		m.sendCheck(nil, nil)
	}
}

func (m *Machine) checkReplied(f *Fault) {
	if f != nil {
		m.lose(f)
		return
	}
	c := m.hold.checks[0]
	m.hold.checks = m.hold.checks[1:]
	if c.call != nil {
		m.do(OwnedAnswer{Call: c.call, Owned: m.hold.has(c.hold)})
		return
	}
	m.notify(Checked{RoundTrip: m.now.Sub(c.sent)})
}

// inquire answers a caller that wants to know whether its hold stands.
func (m *Machine) checkOwned(in CheckOwned) {
	if m.phase != holding || !m.hold.has(in.Hold) {
		m.do(OwnedAnswer{Call: in.Call})
		return
	}
	m.sendCheck(in.Hold, in.Call)
}

// endHold ends what the holders have. The rest is housekeeping.
func (m *Machine) endHold(loss error) {
	m.hold.ending = true
	m.hold.loss = loss
	m.state = Idle
	if loss != nil {
		m.state = HoldLost
	}
	for _, call := range m.hold.calls {
		m.endCall(call, loss)
	}
	for _, c := range m.hold.checks {
		if c.call != nil {
			m.do(OwnedAnswer{Call: c.call})
		}
	}
	m.hold.checks = nil
}

// endCall ends what one holder has.
func (m *Machine) endCall(call Call, loss error) {
	m.do(End{Hold: call, Loss: loss})
	if loss != nil {
		m.notifyCall(call, Lost{ID: m.hold.id, Err: loss})
	}
}

// holder describes the own hold to callers that wait for it.
func (m *Machine) ownHolder() protocol.Record {
	return protocol.Record{
		ID: m.hold.id, Mode: m.want(), Election: protocol.NotElected, Label: m.cfg.Label,
		Held: m.now.Sub(m.hold.since).Milliseconds(),
	}
}

// lose ends a hold that the server may have given to somebody else already.
func (m *Machine) lose(err error) {
	m.endHold(err)
	m.drop()
	m.hold, m.queue = hold{}, nil
	m.phase = resting
	m.nextOrIdle()
}

// release begins to give a hold back; whoever comes later joins in.
func (m *Machine) release(in Release) {
	if !m.hold.has(in.Hold) {
		return
	}
	if m.hold.ending {
		if in.Loss != nil {
			m.leave.shorten(m.now, departLimit)
		}
		return
	}
	if len(m.hold.calls) > 1 {
		m.endOneCall(in.Hold, in.Loss)
		m.do(Released{Hold: in.Hold})
		return
	}
	if m.handsToNextCall() {
		m.endOneCall(in.Hold, in.Loss)
		m.do(Released{Hold: in.Hold})
		m.hold.since, m.hold.unknownWaiters = m.now, false
		m.admit(0, m.now.Sub(m.calls[0].since))
		return
	}
	m.hold.awaited = true
	m.endHold(in.Loss)
	d := departure{within: leaveLimit}
	if in.Loss != nil {
		d.within = departLimit
	}
	m.depart(d)
}

// inherits says whether the next call of this lock takes the hold over where it
// stands, as nobody else is known to wait. A token cannot be handed on.
func (m *Machine) handsToNextCall() bool {
	return len(m.calls) > 0 && len(m.queue) == 0 && !m.hold.unknownWaiters && !m.cfg.Shared && !m.cfg.Fenced
}

// abandon closes the socket of a release that nobody waits for: the lock must
// not outlive its release.
func (m *Machine) abandon(in Abandon) {
	if !m.hold.ending || !m.hold.has(in.Hold) {
		return
	}
	m.drop()
	m.departed(in.Cause)
}

// reclaimed gives back a grant that nobody has received.
func (m *Machine) reclaimed(in Reclaimed) {
	r := Refusal{Reason: Cancelled, Cause: in.Cause}
	switch {
	case m.closing:
		m.do(Refuse{in.Call, Refusal{Reason: LockClosed, Cause: ErrClosed}})
	case m.phase != holding || !m.hold.has(in.Call):
		m.do(Refuse{in.Call, r})
	case len(m.hold.calls) > 1:
		m.endOneCall(in.Call, nil)
		m.do(Refuse{in.Call, r})
	default:
		m.endHold(nil)
		m.depart(departure{within: cancelLimit, reclaimed: in.Call, refusal: &r})
	}
}

// holdDeadline is when a hold has something to do.
func (m *Machine) holdDeadline() time.Time {
	at := m.hold.nextCheck
	for _, t := range []time.Time{m.selfCheckDue(), m.writerCheckDue()} {
		at = earlier(at, t)
	}
	if len(m.hold.checks) > 0 {
		at = earlier(at, m.answerDue())
	}
	return at
}

func (m *Machine) holdTick() {
	if m.checkHealth(); m.phase != holding {
		return
	}
	if m.runSelfCheck(); m.phase != holding {
		return
	}
	if m.due(m.writerCheckDue()) {
		m.checkWriters()
	}
}

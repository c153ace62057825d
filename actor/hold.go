package actor

import (
	"slices"
	"time"

	"github.com/tetherlock/tether/protocol"
)

// hold is one hold of the participant, from the grant until the channel is left.
// Several calls share a reader's hold.
type hold struct {
	calls     []Call
	id        string
	token     int64
	since     time.Time
	nextCheck time.Time // when the next health check is due, zero for never: a session checks for all its locks
	checks    []check   // under way, in the order of their replies
	// unknownWaiters says that a ping came without a holder id: from a peer of
	// another kind, which may wait and is woken by nobody.
	unknownWaiters bool
	ending         bool  // over for its callers, the channel is not left yet
	awaited        bool  // a Release waits for the departure
	loss           error // why it was lost, nil if it was given back
}

// check is a HELLO that asks whether the hold still stands: a health check, or
// one for a caller.
type check struct {
	sent time.Time
	hold Call
	call Call // nil for a health check
}

// setHold begins or ends a hold, without checks under way.
func (m *Machine) setHold(h hold) {
	m.hold, m.selfCheck, m.writerCheck = h, selfCheck{}, writerCheck{}
}

func (h *hold) has(call Call) bool { return slices.Contains(h.calls, call) }

// answerDue is when the oldest check must be answered.
func (m *Machine) answerDue() time.Time {
	return m.hold.checks[0].sent.Add(min(m.cfg.Health, healthLimit))
}

// sendCheck asks the node for its role. A PING would not do: a subscription
// survives the demotion of its node and is answered there, while the new master
// grants the lock to a second holder.
func (m *Machine) sendCheck(hold, call Call) {
	m.hold.checks = append(m.hold.checks, check{m.now, hold, call})
	m.send(Command{Op: Hello})
}

// checkHealth sends the health check that is due, or ends the hold if a check
// was not answered in time.
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

// checkReplied takes the reply to the oldest check. f is why the node must not be
// trusted, nil if it is still a master.
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

// checkOwned asks the server whether a hold still stands, for a caller.
func (m *Machine) checkOwned(in CheckOwned) {
	if m.phase != holding || !m.hold.has(in.Hold) {
		m.do(OwnedAnswer{Call: in.Call})
		return
	}
	m.sendCheck(in.Hold, in.Call)
}

// endHold ends the hold for its callers, before anything is written. loss is why
// it was lost, nil if it is given back.
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

// endCall ends the hold for one call.
func (m *Machine) endCall(call Call, loss error) {
	m.do(End{Hold: call, Loss: loss})
	if loss != nil {
		m.notifyCall(call, Lost{ID: m.hold.id, Err: loss})
	}
}

// ownHolder is the record of the own hold, for the refusals of calls that wait
// behind it.
func (m *Machine) ownHolder() protocol.Record {
	return protocol.Record{
		ID: m.hold.id, Mode: m.want(), Election: protocol.NotElected, Label: m.cfg.Label,
		Held: m.now.Sub(m.hold.since).Milliseconds(),
	}
}

// lose ends a hold because of an error, and closes the socket. The server may
// have granted the lock to somebody else already.
func (m *Machine) lose(err error) {
	m.endHold(err)
	m.drop()
	m.setHold(hold{})
	m.queue = nil
	m.phase = resting
	m.nextOrIdle()
}

// release begins to give a hold back. A second release of the same hold has
// nothing to do but to shorten the first one if it comes with a loss.
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
	d := departure{within: releaseLimit}
	if in.Loss != nil {
		d.within = departLimit
	}
	m.depart(d)
}

// handsToNextCall reports whether the next call of this lock takes the hold over
// without leaving the channel. That is so if nobody else is known to wait, and
// never with fencing: each hold needs a token of its own.
func (m *Machine) handsToNextCall() bool {
	return len(m.calls) > 0 && len(m.queue) == 0 && !m.hold.unknownWaiters && !m.cfg.Shared && !m.cfg.Fenced
}

// abandon closes the socket of a release that its caller no longer waits for.
// The caller is told that the hold is over, so the subscription must not last.
func (m *Machine) abandon(in Abandon) {
	if !m.hold.ending || !m.hold.has(in.Hold) {
		return
	}
	m.drop()
	m.departed(in.Cause)
}

// reclaimed refuses a call whose grant was taken back unreceived, and gives the
// hold back.
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

// holdDeadline is when the next check of a hold is due: of its health, of itself
// or of the writers that wait.
func (m *Machine) holdDeadline() time.Time {
	at := m.hold.nextCheck
	if m.work != nil {
		at = earlier(at, earlier(m.selfCheckDue(), m.writerCheckDue()))
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

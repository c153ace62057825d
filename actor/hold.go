package actor

import "time"

// hold is one grant of the lock, from the grant until it has left.
type hold struct {
	call   Call
	id     string
	since  time.Time
	check  time.Time // of the next health check
	asked  time.Time // when the last one was sent; zero when it is answered
	ending bool      // given back or closed, on its way off the channel
	loss   error
}

// answerDue is when a health check must be answered.
func (m *Machine) answerDue() time.Time {
	return m.hold.asked.Add(min(m.cfg.Health, healthLimit))
}

// checkHealth asks the node for its role: a subscription survives the node's
// demotion and answers pings there, beside a second owner on the new master.
func (m *Machine) checkHealth() {
	switch {
	case m.hold.asked.IsZero():
		m.hold.asked = m.now
		m.send(Command{Op: Hello})
	case !m.now.Before(m.answerDue()):
		m.lose(late(Hello))
	}
}

func (m *Machine) checked(f *Fault) {
	if f != nil {
		m.lose(f)
		return
	}
	m.notify(Checked{RoundTrip: m.now.Sub(m.hold.asked)})
	m.hold.asked = time.Time{}
	m.hold.check = m.now.Add(m.cfg.Health)
}

// endHold ends what the holder has. The rest is housekeeping.
func (m *Machine) endHold(loss error) {
	m.hold.ending = true
	m.hold.loss = loss
	m.state = Idle
	m.do(End{Loss: loss})
	if loss != nil {
		m.state = HoldLost
		m.notify(Lost{ID: m.hold.id, Err: loss})
	}
}

// lose ends a hold that the server may have given to somebody else already.
func (m *Machine) lose(err error) {
	m.endHold(err)
	m.drop()
	m.hold = hold{}
	m.phase = resting
	m.rest()
}

// release begins to give the hold back; whoever comes later joins in.
func (m *Machine) release(in Release) {
	if in.Hold != m.hold.call || m.hold.ending {
		return
	}
	m.endHold(nil)
	m.depart(departure{within: leaveLimit})
}

// abandon closes the socket of a release that nobody waits for: the lock must
// not outlive its release.
func (m *Machine) abandon(in Abandon) {
	if in.Hold != m.hold.call || !m.hold.ending {
		return
	}
	m.drop()
	m.left(in.Cause)
}

// reclaimed gives back a grant that nobody has received.
func (m *Machine) reclaimed(in Reclaimed) {
	r := Refusal{Why: Cancelled, Cause: in.Cause}
	if m.closing {
		m.do(Refuse{in.Call, Refusal{Why: Shut, Cause: ErrClosed}})
		return
	}
	if m.phase != holding || m.hold.call != in.Call {
		m.do(Refuse{in.Call, r})
		return
	}
	m.endHold(nil)
	m.depart(departure{within: cancelLimit, returned: in.Call, refusal: &r})
}

package actor

import (
	"time"

	"github.com/tetherlock/tether/protocol"
)

// selfCheck is a hold's ping to itself, through the channel and back. It shows
// more than a health check: that the subscription delivers, and that an answer
// arrives on its response channel.
type selfCheck struct {
	next     time.Time // zero for never
	response string    // response channel of the ping under way, empty for none
	sent     time.Time
}

// selfCheckDue is when the next self check begins, or the one under way must have
// ended.
func (m *Machine) selfCheckDue() time.Time {
	if s := m.selfCheck; s.response != "" {
		return s.sent.Add(min(m.cfg.SelfCheck, m.cfg.Unavailable))
	}
	return m.selfCheck.next
}

// runSelfCheck begins a self check that is due, or ends the hold if the one under
// way was not answered in time.
func (m *Machine) runSelfCheck() {
	if !m.due(m.selfCheckDue()) {
		return
	}
	if m.selfCheck.response != "" {
		m.lose(&Fault{Kind: Transient, Message: "the lock's own ping did not come back in time"})
		return
	}
	m.selfCheck = selfCheck{response: m.cfg.Response(), sent: m.now}
	response := m.selfCheck.response
	m.send(Command{Op: Subscribe, Channel: response},
		Command{Op: SelfPing, Ping: &protocol.Ping{Response: response, ID: m.link.id}})
}

// selfPingAnswered takes the own record, the answer to the ping under way.
func (m *Machine) selfPingAnswered() {
	s := &m.selfCheck
	m.notify(Checked{RoundTrip: m.now.Sub(s.sent)})
	m.send(Command{Op: Unsubscribe, Channel: s.response})
	*s = selfCheck{next: m.now.Add(m.cfg.SelfCheck)}
}

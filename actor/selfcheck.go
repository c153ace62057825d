package actor

import (
	"time"

	"github.com/tetherlock/tether/protocol"
)

// selfCheck is a hold's ping to itself, through the channel and back. It shows
// more than a health check: that the subscription delivers, and that an answer
// gets through.
type selfCheck struct {
	next     time.Time // zero for never
	response string    // of the ping under way
	sent     time.Time
}

// selfDue is when the hold pings itself, or when its ping must be back.
func (m *Machine) selfCheckDue() time.Time {
	if s := m.hold.selfCheck; s.response != "" {
		return s.sent.Add(min(m.cfg.SelfCheck, m.cfg.Unavailable))
	}
	return m.hold.selfCheck.next
}

func (m *Machine) runSelfCheck() {
	if !m.due(m.selfCheckDue()) {
		return
	}
	if m.hold.selfCheck.response != "" {
		m.lose(&Fault{Kind: Transient, Message: "the lock's own ping did not come back in time"})
		return
	}
	m.hold.selfCheck = selfCheck{response: m.cfg.Response(), sent: m.now}
	response := m.hold.selfCheck.response
	m.send(Command{Op: Subscribe, Channel: response},
		Command{Op: SelfPing, Ping: &protocol.Ping{Response: response, ID: m.link.id}})
}

// echoed takes the own record that has come back.
func (m *Machine) selfPingAnswered() {
	s := &m.hold.selfCheck
	m.notify(Checked{RoundTrip: m.now.Sub(s.sent)})
	m.send(Command{Op: Unsubscribe, Channel: s.response})
	*s = selfCheck{next: m.now.Add(m.cfg.SelfCheck)}
}

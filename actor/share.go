package actor

import (
	"slices"
	"time"

	"github.com/tetherlock/tether/protocol"
)

// guests is the look for writers that wait while other readers of the same
// lock want to join in: they would keep the writers out for ever. Whoever waits
// listens on its wake channel.
type writerCheck struct {
	asked protocol.Queue // nil when no look is under way
	next  time.Time
}

// shares says whether a reader that holds takes another one in at once.
func (m *Machine) canAdmitReader() bool {
	return m.cfg.Shared && m.phase == holding && len(m.calls) == 0 && len(m.writers()) == 0
}

// writers are the queued ones.
func (m *Machine) writers() protocol.Queue {
	return slices.DeleteFunc(slices.Clone(m.queue), func(w protocol.Waiter) bool { return w.Want == protocol.Shared })
}

// share takes one more reader in.
func (m *Machine) admitReader(call Call) {
	m.calls = append(m.calls, pendingCall{Acquire: Acquire{Call: call}})
	m.admit(0, 0)
}

// listen looks which of the queued writers still wait. One that has given up
// says nothing.
func (m *Machine) checkWriters() {
	g := &m.hold.writerCheck
	if !m.cfg.Shared || len(m.calls) == 0 || g.asked != nil {
		return
	}
	g.asked = m.writers().Luggage()
	m.send(Command{Op: CountWaiters, Queue: g.asked})
}

func (m *Machine) writersCounted(counts []int) {
	g := &m.hold.writerCheck
	if m.phase != holding || g.asked == nil {
		return
	}
	for i, w := range g.asked {
		if i < len(counts) && counts[i] == 0 {
			m.queue = m.queue.Without(w.ID)
		}
	}
	*g = writerCheck{next: m.now.Add(m.jittered(m.cfg.Poll))}
	if len(m.writers()) > 0 {
		return
	}
	for len(m.calls) > 0 {
		m.admit(0, 0)
	}
}

// guestsDue is when the next look is.
func (m *Machine) writerCheckDue() time.Time {
	if len(m.calls) == 0 || m.hold.writerCheck.asked != nil {
		return time.Time{}
	}
	return m.hold.writerCheck.next
}

// leaveOthers ends one of several holds of a participant, or one that another
// call takes over.
func (m *Machine) endOneCall(call Call, loss error) {
	m.hold.calls = slices.DeleteFunc(m.hold.calls, func(c Call) bool { return c == call })
	m.endCall(call, loss)
	if loss == nil {
		m.notifyCall(call, GaveBack{ID: m.hold.id})
	}
}

package actor

import (
	"slices"
	"time"

	"github.com/tetherlock/tether/protocol"
)

// writerCheck is the check for writers that wait for the readers of this lock.
// Readers of the same lock share a participant. If a new one were always
// admitted, the writers would wait for ever; so with a writer in the queue it
// has to wait, and the check finds out whether the writer still does. A waiter is
// subscribed to its wake channel, so a count of those tells.
type writerCheck struct {
	asked protocol.Queue // the writers that are counted, nil for no check under way
	next  time.Time      // when the next check is due
}

// canAdmitReader reports whether the hold of a reader is shared with another one
// at once.
func (m *Machine) canAdmitReader() bool {
	return m.cfg.Shared && m.phase == holding && len(m.calls) == 0 && len(m.writers()) == 0
}

// writers are the writers in the queue.
func (m *Machine) writers() protocol.Queue {
	return slices.DeleteFunc(slices.Clone(m.queue), func(w protocol.Waiter) bool { return w.Want == protocol.Shared })
}

// admitReader grants the hold to one more reader.
func (m *Machine) admitReader(call Call) {
	m.calls = append(m.calls, pendingCall{Acquire: Acquire{Call: call}})
	m.admit(0, 0)
}

// checkWriters counts which of the queued writers still wait. One that has given
// up sends no message.
func (m *Machine) checkWriters() {
	check := &m.writerCheck
	if !m.cfg.Shared || len(m.calls) == 0 || check.asked != nil {
		return
	}
	check.asked = m.writers().Luggage()
	m.send(Command{Op: CountWaiters, Queue: check.asked})
}

// waitersCounted removes the writers that have given up from the queue. Without
// any writer left, the waiting readers are admitted.
func (m *Machine) waitersCounted(counts []int) {
	check := &m.writerCheck
	if m.phase != holding || check.asked == nil {
		return
	}
	for i, w := range check.asked {
		if i < len(counts) && counts[i] == 0 {
			m.queue = m.queue.Without(w.ID)
		}
	}
	*check = writerCheck{next: m.now.Add(m.jittered(m.cfg.Poll))}
	if len(m.writers()) > 0 {
		return
	}
	for len(m.calls) > 0 {
		m.admit(0, 0)
	}
}

// writerCheckDue is when the next writer check is due, the zero time for never.
func (m *Machine) writerCheckDue() time.Time {
	if len(m.calls) == 0 || m.writerCheck.asked != nil {
		return time.Time{}
	}
	return m.writerCheck.next
}

// endOneCall ends the hold for one call, while others keep it or the next call
// takes it over.
func (m *Machine) endOneCall(call Call, loss error) {
	m.hold.calls = slices.DeleteFunc(m.hold.calls, func(c Call) bool { return c == call })
	m.endCall(call, loss)
	if loss == nil {
		m.notifyCall(call, GaveBack{ID: m.hold.id})
	}
}

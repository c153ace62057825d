package actor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTurns checks fairness. Every lock is acquired again as soon as it is
// released, and its warm socket makes it faster than the waiter that it has woken.
// Without a place in the queue for the releaser, one lock would have all grants.
func TestTurns(t *testing.T) {
	for _, locks := range []int{2, 3, 5} {
		m := newModel(1)
		m.noCrashes, m.noFaults = true, true
		for range locks {
			m.addLock(Config{
				Health: 10 * time.Second, Reply: 5 * time.Second, Unavailable: time.Second, Poll: 100 * time.Millisecond,
			}).pool = len(m.locks)
		}
		turns := make([]int, locks)
		for m.steps < 20_000 {
			m.raceStep(turns)
		}
		t.Logf("%d locks: turns %v", locks, turns)
		for num, n := range turns {
			require.Greater(t, n, m.grantCount/locks*9/10, "lock %d of %d", num, locks)
		}
	}
}

// raceStep makes a step in which the connection that was used last goes on for as
// long as it can: this favours the releaser.
func (m *model) raceStep(turns []int) {
	for num, l := range m.locks {
		if len(l.holds) > 0 {
			turns[num]++
			l.release()
		}
		if len(l.pending)+len(l.releasing) == 0 {
			l.acquire(false)
		}
		if l.dial != 0 {
			l.finishDial()
		}
	}
	m.steps++
	if !m.pickLast(m.canServe, m.serve) && !m.pickLast(m.canDeliver, m.deliver) && !m.messagesInFlight() {
		first := m.locks[0]
		for _, l := range m.locks[1:] {
			if l.machine.Deadline().Before(first.machine.Deadline()) {
				first = l
			}
		}
		m.advanceTo(first.machine.Deadline())
		first.tick()
	}
	m.checkInvariants()
}

// pickLast applies a function to the connection that was used last, or else to the
// first one that allows it.
func (m *model) pickLast(allowed func(*conn) bool, do func(*conn)) bool {
	for _, c := range m.conns {
		if c.num == m.lastConn && allowed(c) {
			do(c)
			return true
		}
	}
	for _, c := range m.conns {
		if allowed(c) {
			m.lastConn = c.num
			do(c)
			return true
		}
	}
	return false
}

package actor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTurns has locks that are asked for again as soon as they are released.
// Whoever has just released is always faster than the one that it has woken,
// and yet everybody has its turn.
func TestTurns(t *testing.T) {
	for _, locks := range []int{2, 3, 5} {
		w := newModel(1)
		w.full, w.calm = true, true
		for range locks {
			w.addLock(Config{
				Health: 10 * time.Second, Reply: 5 * time.Second, Unavailable: time.Second, Poll: 100 * time.Millisecond,
			}).pool = len(w.locks)
		}
		got := make([]int, locks)
		for w.steps < 20_000 {
			w.race(got)
		}
		t.Logf("%d locks: turns %v", locks, got)
		for num, turns := range got {
			require.Greater(t, turns, w.grants/locks*9/10, "lock %d of %d", num, locks)
		}
	}
}

// race makes a step in which the connection that was used last goes on for as
// long as it can.
func (w *model) race(got []int) {
	for num, l := range w.locks {
		if len(l.held) > 0 {
			got[num]++
			l.release()
		}
		if len(l.open)+len(l.leaving) == 0 {
			l.acquire(false)
		}
		if l.dial != 0 {
			l.connect()
		}
	}
	w.steps++
	if !w.pickLast(w.ready, w.serve) && !w.pickLast(w.deliverable, w.deliver) && !w.busy() {
		first := w.locks[0]
		for _, l := range w.locks[1:] {
			if l.m.Deadline().Before(first.m.Deadline()) {
				first = l
			}
		}
		w.pass(first.m.Deadline())
		first.tick()
	}
	w.judge()
}

// pickLast takes the connection that was used last, if it allows it.
func (w *model) pickLast(allowed func(*conn) bool, do func(*conn)) bool {
	for _, c := range w.conns {
		if c.num == w.last && allowed(c) {
			do(c)
			return true
		}
	}
	for _, c := range w.conns {
		if allowed(c) {
			w.last = c.num
			do(c)
			return true
		}
	}
	return false
}

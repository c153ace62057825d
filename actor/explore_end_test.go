package actor

import (
	"fmt"
	"strings"
	"time"
)

// finish lets the world come to its end: without further faults everybody who
// waits gets in, and in the end nothing is subscribed.
func (w *model) finish() {
	w.note("no more faults")
	w.calm, w.denies, w.held = true, false, w.now
	w.late, w.lag = w.late || w.lag == 0, 5*time.Millisecond
	for num := range w.locks {
		if w.bodyOf(num).frozen {
			w.thaw(num)
		}
	}
	w.until(func() bool { return !w.unfinished() }, "somebody waits for ever")
	for _, l := range w.locks {
		if l != nil && !l.stopped && !w.full && w.chance(2) {
			l.feed(Close{})
		}
	}
	end := w.now.Add(2 * time.Second)
	w.until(func() bool { return !w.now.Before(end) && !w.busy() }, "it does not come to rest")
	w.judgeRest()
}

// endSteps bounds how long a world takes to come to its end.
const endSteps = 30_000

func (w *model) until(over func() bool, otherwise string) {
	end := w.steps + endSteps
	for tries := 0; !over(); tries++ {
		if w.steps > end || tries > 10*endSteps {
			w.fail("%s: %s", otherwise, w.waiting())
		}
		w.move()
		if tries%16 == 0 {
			w.settle()
		}
		if tries%64 == 0 && !w.busy() {
			w.pass(w.now.Add(50 * time.Millisecond))
		}
	}
}

// settle gives back what was granted.
func (w *model) settle() {
	for _, l := range w.locks {
		if l != nil && !l.stopped {
			l.receive()
			l.release()
		}
	}
	for _, p := range w.ports {
		if p != nil && (p.stage == portHolding || w.chance(8)) {
			p.release()
		}
	}
}

func (w *model) unfinished() bool {
	for _, l := range w.locks {
		if l != nil && len(l.open)+len(l.held)+len(l.leaving)+len(l.asking) > 0 {
			return true
		}
	}
	for _, p := range w.ports {
		if p != nil && p.stage != portIdle {
			return true
		}
	}
	return false
}

func (w *model) waiting() string {
	var text strings.Builder
	for _, l := range w.locks {
		if l != nil {
			fmt.Fprintf(&text, "\nlock %d: open %v, held %v, leaving %v, asking %v, phase %v, due %v, connection %s", l.num, l.open, l.held,
				l.leaving, l.asking, l.m.phase, l.m.Deadline().Sub(w.now), clean(l.conn))
		}
	}
	for _, p := range w.ports {
		if p != nil {
			fmt.Fprintf(&text, "\nportalocker %d: stage %v", p.num, p.stage)
		}
	}
	return text.String()
}

// judgeRest looks whether the locks that have come to rest keep anything.
func (w *model) judgeRest() {
	for _, l := range w.locks {
		if l != nil && l.conn != nil && len(l.conn.subs) > 0 {
			w.fail("lock %d is at rest and subscribed to %v", l.num, l.conn.subs)
		}
	}
	for _, c := range w.conns {
		if c.parked && len(c.subs) > 0 {
			w.fail("%s is idle and subscribed to %v", w.title(c), c.subs)
		}
	}
}

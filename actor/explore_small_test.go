package actor

import (
	"fmt"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// small is what is left to happen in a world that is explored as a whole.
type small struct {
	order   []int // of the ids
	dials   []int
	calls   []int // of each participant
	ticks   []int
	kills   int
	freezes int
	brief   bool
}

func (s *small) clone() *small {
	if s == nil {
		return nil
	}
	c := *s
	c.order, c.dials = slices.Clone(s.order), slices.Clone(s.dials)
	c.calls, c.ticks = slices.Clone(s.calls), slices.Clone(s.ticks)
	return &c
}

// cast is a small world: who is in it, and what may happen.
type cast struct {
	name    string
	locks   []bool // one for each, true for a reader
	fenced  bool
	brief   bool  // a role is told at once, or the world is too large
	peer    int   // 41 or 42 for a portalocker, 0 for none
	order   []int // of the ids
	calls   int   // of each lock
	ticks   int   // of each participant
	kills   int
	freezes int
	most    int // states
	least   int
}

// TestSmallWorlds takes worlds of a few participants and goes through all that
// may happen in them, in every order: commands that the server runs, frames that
// are read, releases, pauses that end, a kill, a freeze. Where that is too much
// it stops at a number of states, and says so.
//
// A frame is read as soon as it is there unless the lock holds or pauses, or may
// freeze: all that a lock does depends on the order of what it reads, so it makes
// a difference only where something else may come first.
func TestSmallWorlds(t *testing.T) {
	for _, c := range casts {
		t.Run(c.name, func(t *testing.T) { c.explore(t) })
	}
}

func (c cast) build() *model {
	n := len(c.locks)
	w := &model{now: dawn, redis: redis{apart: mutant(countAndPingApart)}, full: true, late: true}
	if c.peer != 0 {
		n++
	}
	w.small = &small{
		order: c.order, dials: make([]int, n), calls: make([]int, n), ticks: make([]int, n), kills: c.kills, freezes: c.freezes, brief: c.brief,
	}
	for i := range n {
		w.small.ticks[i], w.small.calls[i] = c.ticks, c.calls
	}
	for i := range w.known {
		w.known[i] = true
	}
	for i, reader := range c.locks {
		w.addLock(Config{
			Shared: reader, Fenced: c.fenced, Health: 10 * time.Second, Reply: 5 * time.Second, Unavailable: 40 * time.Millisecond, Poll: 100 * time.Millisecond,
		}).pool = i
	}
	if c.peer != 0 {
		gen := v41
		if c.peer == 42 {
			gen = v42
		}
		w.addPort(gen, false, false, w.newID(n-1))
	}
	for i := range n {
		w.start(i)
	}
	return w
}

// start begins the next call of a participant.
func (w *model) start(num int) {
	if w.small.calls[num] == 0 {
		return
	}
	w.small.calls[num]--
	if l := w.locks[num]; l != nil {
		l.acquire(false)
		return
	}
	w.ports[num].acquire()
}

// action is something that can happen next.
type action struct {
	what string
	num  int64 // participant or connection
}

// actions lists what can happen. If something makes no difference to anybody
// else it happens first, alone.
func (w *model) actions() []action {
	var list []action
	for _, c := range w.conns {
		if w.ready(c) {
			if w.private(c.in[0].command) {
				return []action{{"serve", c.num}}
			}
			list = append(list, action{"serve", c.num})
		}
		if w.deliverable(c) {
			if w.prompt(c) {
				return []action{{"read", c.num}}
			}
			list = append(list, action{"read", c.num})
		}
		if w.small.kills > 0 && c.on(theChannel) {
			list = append(list, action{"kill", c.num})
		}
	}
	for num := range w.locks {
		if !w.bodyOf(num).frozen {
			list = append(list, w.own(num)...)
		}
	}
	return list
}

// private says whether a command concerns nobody but its sender. A response
// channel is known to others only behind the ping, and what comes on it once it
// is not wanted is not looked at.
func (w *model) private(c Command) bool {
	switch c.Op {
	case Login:
		return true
	case Hello:
		return w.small.brief // what is read before its reply is answered undecided
	case Subscribe, Unsubscribe:
		return c.Channel[0] == 'R' || c.Channel[0] == 'P'
	default:
		return false
	}
}

// prompt says whether it makes no difference that a frame is read at once.
func (w *model) prompt(c *conn) bool {
	l := w.locks[c.owner]
	if l == nil {
		return c == w.ports[c.owner].resp || c == w.ports[c.owner].ans
	}
	if w.small.freezes > 0 || !c.up {
		return false
	}
	if _, probed := c.out[0].frame.(Probed); probed && w.small.kills > 0 {
		return false // its connection may end first
	}
	if _, counted := c.out[0].frame.(Counted); counted && w.small.kills > 0 {
		return false
	}
	switch l.m.phase {
	case holding, elected, reconfirming, sleeping:
		switch c.out[0].frame.(type) {
		case Pinged, Woken, Polled, Disconnected:
			return false
		}
	default:
	}
	return true
}

// own lists what a participant itself can do.
func (w *model) own(num int) []action {
	var list []action
	at := int64(num)
	if w.small.freezes > 0 {
		list = append(list, action{"freeze", at})
	}
	if w.small.ticks[num] > 0 && !w.deadline(num).IsZero() && w.patient(num) {
		list = append(list, action{"tick", at})
	}
	if l := w.locks[num]; l != nil && len(l.held) > 0 && len(l.leaving) == 0 || l == nil && w.ports[num].stage == portHolding {
		list = append(list, action{"release", at})
	}
	return list
}

// patient says whether a participant may find that its time is up. While
// answers are there to be read, only a pause is over.
func (w *model) patient(num int) bool {
	l := w.locks[num]
	switch {
	case l == nil:
		return true
	case l.m.phase == holding || l.m.phase == resting:
		return false
	case l.m.phase.probing() || l.m.phase == joining || l.m.phase == leaving:
		return l.conn == nil || len(l.conn.in) == 0 && len(l.conn.out) == 0
	default:
		return true
	}
}

func (w *model) act(a action) {
	w.steps++
	switch a.what {
	case "serve":
		w.serve(w.connection(a.num))
	case "read":
		w.deliver(w.connection(a.num))
	case "kill":
		w.small.kills--
		w.note("kill %s", w.title(w.connection(a.num)))
		w.cut(w.connection(a.num))
	case "freeze":
		w.small.freezes--
		w.freeze(int(a.num))
	case "tick":
		w.wait(int(a.num))
	case "release":
		if l := w.locks[a.num]; l != nil {
			l.release()
		} else {
			w.ports[a.num].release()
		}
	}
	for num, l := range w.locks {
		switch {
		case l == nil && w.ports[num].stage == portIdle, l != nil && len(l.open)+len(l.held)+len(l.leaving) == 0:
			w.start(num)
		}
	}
	w.judge()
}

func (w *model) connection(num int64) *conn {
	return w.conns[slices.IndexFunc(w.conns, func(c *conn) bool { return c.num == num })]
}

// wait lets a participant's time pass to its deadline.
func (w *model) wait(num int) {
	w.small.ticks[num]--
	b := w.bodyOf(num)
	b.clock += max(0, w.deadline(num).Sub(b.now()))
	w.tick(num)
}

// step is one way on from a world, for the transcript.
type step struct {
	before *step
	action action
}

// explore goes through all states.
func (c cast) explore(t *testing.T) {
	switch {
	case raceEnabled:
		c.most, c.least = min(c.most, 4_000), 0
	case mutantRun():
		c.most, c.least = min(c.most, 30_000), 0
	}
	var s scribe
	first := c.build()
	seen := map[stateKey]bool{s.state(first): true}
	type place struct {
		w  *model
		by *step
	}
	stack := []place{{first, nil}}
	granted := 0
	for len(stack) > 0 && len(seen) < c.most {
		from := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		granted = max(granted, from.w.grants)
		for _, a := range from.w.actions() {
			next := from.w.clone()
			by := &step{from.by, a}
			if d := next.attempt(a); d != nil {
				c.tell(t, by, d)
			}
			if key := s.state(next); !seen[key] {
				seen[key] = true
				stack = append(stack, place{next, by})
			}
		}
	}
	extent := "all of them"
	if len(stack) > 0 {
		extent = "bounded"
	}
	t.Logf("%d states, %s", len(seen), extent)
	require.GreaterOrEqual(t, len(seen), max(c.least, 1_000))
	require.NotZero(t, granted)
}

// attempt makes a step and returns what is wrong with it.
func (w *model) attempt(a action) (found *defect) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case defect:
			found = &r
		default:
			found = &defect{fmt.Sprintf("panic: %v\n%s", r, debug.Stack())}
		}
	}()
	w.act(a)
	return nil
}

// tell plays the way to a defect once more, with a transcript.
func (c cast) tell(t *testing.T, by *step, d *defect) {
	t.Helper()
	var way []action
	for ; by != nil; by = by.before {
		way = append(way, by.action)
	}
	w := c.build()
	w.logging = true
	for _, a := range slices.Backward(way) {
		w.note("%s %d", a.what, a.num)
		_ = w.attempt(a)
	}
	for _, line := range w.log {
		t.Log(line)
	}
	t.Fatalf("%s (behind %d steps)", d.text, len(way))
}

package actor

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRandomSchedules lets several locks of one name meet on a model of Redis,
// in random order: streams that are slow, connections that are killed, calls
// that are cancelled, scripts that are forgotten. A failing seed is printed with
// what happened; TETHER_SEED plays it again, TETHER_STEPS sets the budget.
func TestRandomSchedules(t *testing.T) {
	steps := number(t, "TETHER_STEPS", 300_000)
	if seed := number(t, "TETHER_SEED", 0); seed != 0 {
		newModel(t, uint64(seed)).run(5_000)
		return
	}
	grants := 0
	for seed := uint64(1); steps > 0; seed++ {
		m := newModel(t, seed)
		m.run(5_000)
		steps -= m.steps
		grants += m.grants
	}
	require.Greater(t, grants, 100, "a world in which nobody ever holds shows nothing")
}

func number(t *testing.T, variable string, otherwise int) int {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, variable)
	return n
}

// pipe is one connection of the model: what the server has yet to read, and
// what the lock has yet to read, in order.
type pipe struct {
	id   string
	up   bool // at the server
	subs []string
	in   []Command
	out  []Input
}

func (p *pipe) subscribed(channel string) bool { return p.up && slices.Contains(p.subs, channel) }

// peer is one lock of the model, and what its callers know.
type peer struct {
	m       *Machine
	pipe    *pipe
	dial    int // that is asked for, 0 for none
	open    map[int]bool
	held    int // the call that holds, 0 for none
	leaving int // the call whose release is not over, 0 for none
}

type model struct {
	t      *testing.T
	rand   *rand.Rand
	now    time.Time
	peers  []*peer
	pipes  []*pipe
	known  bool // the script
	names  int
	calls  int
	steps  int
	grants int
	log    []string
	seed   uint64
}

func newModel(t *testing.T, seed uint64) *model {
	w := &model{t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 0)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	for range 2 + w.rand.IntN(3) {
		w.peers = append(w.peers, &peer{open: map[int]bool{}, m: NewMachine(Config{
			Channel: "C", Response: func() string { w.names++; return fmt.Sprintf("R%d", w.names) },
			Jitter: w.rand.Float64, Health: 10 * time.Second, Reply: 5 * time.Second,
		})})
	}
	return w
}

func (w *model) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
	if len(w.log) > 400 {
		w.log = w.log[200:]
	}
}

func (w *model) fail(format string, args ...any) {
	for _, line := range w.log {
		w.t.Log(line)
	}
	w.t.Fatalf("seed %d, step %d: %s", w.seed, w.steps, fmt.Sprintf(format, args...))
}

// run makes random steps, then lets everything come to its end.
func (w *model) run(steps int) {
	defer func() {
		if r := recover(); r != nil {
			w.fail("panic: %v", r)
		}
	}()
	for range steps {
		w.step(true)
	}
	// Without faults, everybody who waits gets in.
	for range 100_000 {
		if !w.unfinished() {
			break
		}
		w.step(false)
		for _, p := range w.peers {
			w.release(p)
		}
	}
	if w.unfinished() {
		w.fail("somebody waits for ever")
	}
	for _, p := range w.pipes {
		if p.subscribed("C") {
			w.fail("%s is still subscribed", p.id)
		}
	}
}

func (w *model) unfinished() bool {
	return slices.ContainsFunc(w.peers, func(p *peer) bool { return len(p.open) > 0 || p.held != 0 || p.leaving != 0 })
}

func (w *model) step(faults bool) {
	w.steps++
	p := w.peers[w.rand.IntN(len(w.peers))]
	switch n := w.rand.IntN(100); {
	case n < 40:
		w.serve()
	case n < 80:
		w.deliver(p)
	case n < 90:
		if faults || !w.busy() {
			w.tick(p)
		}
	case faults:
		w.meddle(p)
	}
	w.judge()
}

// meddle is what callers and the world do.
func (w *model) meddle(p *peer) {
	switch w.rand.IntN(12) {
	case 0, 1, 2:
		w.calls++
		p.open[w.calls] = true
		w.feed(p, Acquire{Call: w.calls, Try: w.rand.IntN(3) == 0})
	case 3, 4, 5:
		w.release(p)
	case 6:
		for call := range p.open {
			w.feed(p, Cancel{Call: call, Cause: errors.New("ended")})
			break
		}
	case 7:
		if p.leaving != 0 {
			w.feed(p, Abandon{Hold: p.leaving, Cause: errors.New("ended")})
		}
	case 8:
		if p.pipe != nil && w.rand.IntN(4) == 0 {
			w.note("kill %s", p.pipe.id)
			w.cut(p.pipe)
		}
	case 9:
		w.known = w.known && w.rand.IntN(4) != 0
	case 10:
		if p.dial != 0 && w.rand.IntN(4) == 0 {
			dial := p.dial
			p.dial = 0
			w.feed(p, DialFailed{Dial: dial, Err: errors.New("refused")})
		}
	}
}

func (w *model) release(p *peer) {
	if p.held != 0 {
		p.leaving = p.held
		w.feed(p, Release{Hold: p.held})
	}
}

// cut ends a connection at the server. The lock reads what was sent before.
func (w *model) cut(p *pipe) {
	if p.up {
		p.up, p.subs, p.in = false, nil, nil
		p.out = append(p.out, Disconnected{Err: errors.New("killed")})
	}
}

// tick lets time pass for one lock. It is late for the others, as time is.
func (w *model) tick(p *peer) {
	at := p.m.Deadline()
	if p.dial != 0 && w.rand.IntN(2) == 0 {
		w.connect(p)
		return
	}
	if at.IsZero() {
		return
	}
	if at.After(w.now) {
		// Far deadlines are rare among messages that are under way.
		if at.Sub(w.now) > 200*time.Millisecond && w.rand.IntN(20) != 0 && w.busy() {
			return
		}
		w.now = at
	}
	w.feed(p, Tick{})
	if again := p.m.Deadline(); !again.IsZero() && !again.After(w.now) && again.Equal(at) {
		w.fail("a tick leaves the deadline where it was")
	}
}

// busy says whether anything is under way.
func (w *model) busy() bool {
	return slices.ContainsFunc(w.pipes, func(p *pipe) bool { return len(p.in) > 0 || len(p.out) > 0 })
}

func (w *model) connect(p *peer) {
	w.names++
	id := fmt.Sprintf("%08x", w.rand.Uint32())
	p.pipe = &pipe{id: id, up: true}
	w.pipes = append(w.pipes, p.pipe)
	dial := p.dial
	p.dial = 0
	w.feed(p, Dialed{Dial: dial, ID: id, Fresh: true})
}

// deliver gives a lock the next of what it has yet to read.
func (w *model) deliver(p *peer) {
	if p.pipe == nil || len(p.pipe.out) == 0 {
		return
	}
	in := p.pipe.out[0]
	p.pipe.out = p.pipe.out[1:]
	if _, ended := in.(Disconnected); ended {
		p.pipe = nil
	}
	w.feed(p, in)
}

// serve runs one command of one connection.
func (w *model) serve() {
	w.pipes = slices.DeleteFunc(w.pipes, func(p *pipe) bool { return !p.up })
	waiting := slices.DeleteFunc(slices.Clone(w.pipes), func(p *pipe) bool { return len(p.in) == 0 })
	if len(waiting) == 0 {
		return
	}
	p := waiting[w.rand.IntN(len(waiting))]
	c := p.in[0]
	p.in = p.in[1:]
	w.note("server runs %s for %s", describeCommand(c), p.id)
	switch c.Op {
	case Login, Auth:
		p.out = append(p.out, Done{})
	case Hello:
		p.out = append(p.out, Greeted{Role: "master", Mode: "standalone"})
	case Subscribe:
		p.subs = append(p.subs, c.Channel)
		p.out = append(p.out, Subscribed{c.Channel})
	case Unsubscribe:
		p.subs = slices.DeleteFunc(p.subs, func(s string) bool { return s == c.Channel })
		p.out = append(p.out, Unsubscribed{c.Channel})
	case Count:
		p.out = append(p.out, Counted{len(w.subscribers("C"))})
	case Probe, LoadProbe:
		w.known = w.known || c.Op == LoadProbe
		if !w.known {
			p.out = append(p.out, Failed{Command: c.Op, Message: "NOSCRIPT No matching script."})
			return
		}
		for _, s := range w.subscribers("C") {
			s.out = append(s.out, Pinged{c.Channel})
		}
		p.out = append(p.out, Probed{len(w.subscribers("C"))})
	case Answer:
		for _, s := range w.subscribers(c.Channel) {
			s.out = append(s.out, Answered{c.Channel, c.Record})
		}
		p.out = append(p.out, Done{})
	}
}

func (w *model) subscribers(channel string) []*pipe {
	var list []*pipe
	for _, p := range w.pipes {
		if p.subscribed(channel) {
			list = append(list, p)
		}
	}
	return list
}

// feed gives a lock an input and performs its effects.
func (w *model) feed(p *peer, in Input) {
	i := slices.Index(w.peers, p)
	w.note("%d: %T %v", i, in, in)
	var results []Input
	for _, e := range p.m.Step(w.now, in) {
		for _, line := range describe(e) {
			w.note("%d:     %s", i, line)
		}
		if r := w.perform(p, e); r != nil {
			results = append(results, r)
		}
	}
	for _, r := range results {
		w.feed(p, r)
	}
}

func (w *model) perform(p *peer, e Effect) Input {
	switch e := e.(type) {
	case Dial:
		p.dial = e.Dial
	case CancelDial:
		p.dial = 0
	case Send:
		if p.pipe == nil {
			w.fail("it writes without a socket")
		}
		if p.pipe.up {
			p.pipe.in = append(p.pipe.in, e.Commands...)
		}
	case Drop:
		if p.pipe != nil {
			p.pipe.up, p.pipe.subs = false, nil
		}
		p.pipe = nil
	case Park:
		if len(p.pipe.in) > 0 || len(p.pipe.subs) > 0 || slices.ContainsFunc(p.pipe.out, func(in Input) bool {
			_, ended := in.(Disconnected)
			return !ended
		}) {
			w.fail("it parks a socket that is not clean")
		}
		p.pipe = nil
	case Grant:
		if p.held != 0 || !p.open[e.Call.(int)] {
			w.fail("a grant that nobody asked for")
		}
		delete(p.open, e.Call.(int))
		p.held = e.Call.(int)
		w.grants++
	case Refuse:
		if !p.open[e.Call.(int)] {
			w.fail("it refuses what it has answered")
		}
		delete(p.open, e.Call.(int))
	case End:
		if p.held == 0 {
			w.fail("an end without a hold")
		}
		p.held = 0
		if e.Loss != nil {
			p.leaving = 0
		}
	case Released:
		p.leaving = 0
	}
	return nil
}

// judge looks for two holds whose subscriptions are both alive.
func (w *model) judge() {
	var holders []string
	for _, p := range w.peers {
		if p.held != 0 && p.pipe != nil && p.pipe.subscribed("C") {
			holders = append(holders, p.pipe.id)
		}
	}
	if len(holders) > 1 {
		w.fail("two holders: %v", holders)
	}
}

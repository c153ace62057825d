package actor

import (
	"fmt"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// bounds are how many actions of a kind an exploration may still make. They are
// part of the state.
type bounds struct {
	idOrder    []int // by process: rank of its holder ids
	dials      []int // by process: dials so far
	calls      []int // by process: acquires left
	ticks      []int // by process: expired deadlines left
	kills      int
	freezes    int
	helloFirst bool
}

func (b *bounds) clone() *bounds {
	if b == nil {
		return nil
	}
	c := *b
	c.idOrder, c.dials = slices.Clone(b.idOrder), slices.Clone(b.dials)
	c.calls, c.ticks = slices.Clone(b.calls), slices.Clone(b.ticks)
	return &c
}

// scenario is a model of a few processes, with bounds on what may happen.
type scenario struct {
	name        string
	locks       []bool // an element for each lock, true for a reader
	fenced      bool
	helloFirst  bool  // HELLO is served before anything else: fewer orders, so fewer states
	peerVersion int   // 41 or 42: also a peer of that version; 0: none
	idOrder     []int // by process: rank of its holder ids
	calls       int   // acquires of each process
	ticks       int   // expired deadlines of each process
	kills       int
	freezes     int
	maxStates   int
	minStates   int
}

// TestSmallWorlds is a model checker. It explores each scenario exhaustively: every
// order in which the server runs commands, frames are read, holds are released and
// deadlines expire, with a kill or a freeze at every point where the bounds allow
// one. An exploration that reaches maxStates stops and logs that it was bounded.
//
// Orders that make no difference are left out (partial-order reduction). A lock's
// behaviour depends on nothing but the order of its inputs. So a frame is read as
// soon as it has arrived, except where another input may come first: while the
// lock holds, sleeps or pauses, and where a kill or a freeze is possible.
func TestSmallWorlds(t *testing.T) {
	for _, c := range scenarios {
		t.Run(c.name, func(t *testing.T) { c.explore(t) })
	}
}

// build returns the initial state. Every process has begun an acquire in it.
func (c scenario) build() *model {
	n := len(c.locks)
	m := &model{now: epoch, redis: redis{splitProbe: mutant(countAndPingSplit)}, noCrashes: true, unboundedDelay: true}
	if c.peerVersion != 0 {
		n++
	}
	m.bounds = &bounds{
		idOrder: c.idOrder, dials: make([]int, n), calls: make([]int, n), ticks: make([]int, n), kills: c.kills, freezes: c.freezes, helloFirst: c.helloFirst,
	}
	for i := range n {
		m.bounds.ticks[i], m.bounds.calls[i] = c.ticks, c.calls
	}
	for i := range m.loadedScripts {
		m.loadedScripts[i] = true
	}
	for i, reader := range c.locks {
		m.addLock(Config{
			Shared: reader, Fenced: c.fenced, Health: 10 * time.Second, Reply: 5 * time.Second, Unavailable: 40 * time.Millisecond, Poll: 100 * time.Millisecond,
		}).pool = i
	}
	if c.peerVersion != 0 {
		version := v41
		if c.peerVersion == 42 {
			version = v42
		}
		m.addPeer(version, false, false, m.newID(n-1))
	}
	for i := range n {
		m.startCall(i)
	}
	return m
}

// startCall begins the next acquire of a process, if one is left.
func (m *model) startCall(num int) {
	if m.bounds.calls[num] == 0 {
		return
	}
	m.bounds.calls[num]--
	if l := m.locks[num]; l != nil {
		l.acquire(false)
		return
	}
	m.peers[num].acquire()
}

// action is one transition of a model.
type action struct {
	kind string
	num  int64 // of a process or a connection
}

// actions lists the actions that are possible. An independent one is returned
// alone: the others commute with it.
func (m *model) actions() []action {
	var list []action
	for _, c := range m.conns {
		if m.canServe(c) {
			if m.independentCommand(c.requests[0].command) {
				return []action{{"serve", c.num}}
			}
			list = append(list, action{"serve", c.num})
		}
		if m.canDeliver(c) {
			if m.independentRead(c) {
				return []action{{"read", c.num}}
			}
			list = append(list, action{"read", c.num})
		}
		if m.bounds.kills > 0 && c.subscribedTo(lockChannel) {
			list = append(list, action{"kill", c.num})
		}
	}
	for num := range m.locks {
		if !m.process(num).frozen {
			list = append(list, m.processActions(num)...)
		}
	}
	return list
}

// independentCommand reports whether a command commutes with all actions of other
// processes. The subscription of a response channel does: others learn its name
// only from the ping that follows, and its owner ignores what arrives on it after
// the probe.
func (m *model) independentCommand(c Command) bool {
	switch c.Op {
	case Login:
		return true
	case Hello:
		return m.bounds.helloFirst // not quite: a ping read before its reply is answered as undecided
	case Subscribe, Unsubscribe:
		return c.Channel[0] == 'R' || c.Channel[0] == 'P'
	default:
		return false
	}
}

// independentRead reports whether reading a frame commutes with all other actions.
func (m *model) independentRead(c *conn) bool {
	l := m.locks[c.owner]
	if l == nil {
		return c == m.peers[c.owner].responseConn || c == m.peers[c.owner].answerConn
	}
	if m.bounds.freezes > 0 || !c.up {
		return false
	}
	if _, probed := c.deliveries[0].frame.(Probed); probed && m.bounds.kills > 0 {
		return false // the connection may be killed before it is read
	}
	if _, counted := c.deliveries[0].frame.(Counted); counted && m.bounds.kills > 0 {
		return false
	}
	switch l.machine.phase {
	case holding, elected, reconfirming, sleeping:
		switch c.deliveries[0].frame.(type) {
		case Pinged, Woken, Polled, Disconnected:
			return false
		}
	default:
	}
	return true
}

// processActions lists the actions that a process can take by itself.
func (m *model) processActions(num int) []action {
	var list []action
	at := int64(num)
	if m.bounds.freezes > 0 {
		list = append(list, action{"freeze", at})
	}
	if m.bounds.ticks[num] > 0 && !m.deadline(num).IsZero() && m.mayTimeOut(num) {
		list = append(list, action{"tick", at})
	}
	if l := m.locks[num]; l != nil && len(l.holds) > 0 && len(l.releasing) == 0 || l == nil && m.peers[num].stage == peerHolding {
		list = append(list, action{"release", at})
	}
	return list
}

// mayTimeOut reports whether the deadline of a process may expire. The deadline of
// a question may not while its answers are in flight: this keeps the number of
// states down.
func (m *model) mayTimeOut(num int) bool {
	l := m.locks[num]
	switch {
	case l == nil:
		return true
	case l.machine.phase == holding || l.machine.phase == resting:
		return false
	case l.machine.phase.probing() || l.machine.phase == joining || l.machine.phase == leaving:
		return l.conn == nil || len(l.conn.requests) == 0 && len(l.conn.deliveries) == 0
	default:
		return true
	}
}

// apply takes an action. A process without a call begins the next one.
func (m *model) apply(a action) {
	m.steps++
	switch a.kind {
	case "serve":
		m.serve(m.connection(a.num))
	case "read":
		m.deliver(m.connection(a.num))
	case "kill":
		m.bounds.kills--
		m.logf("kill %s", m.describeConn(m.connection(a.num)))
		m.disconnect(m.connection(a.num))
	case "freeze":
		m.bounds.freezes--
		m.freeze(int(a.num))
	case "tick":
		m.timeOut(int(a.num))
	case "release":
		if l := m.locks[a.num]; l != nil {
			l.release()
		} else {
			m.peers[a.num].release()
		}
	}
	for num, l := range m.locks {
		switch {
		case l == nil && m.peers[num].stage == peerIdle, l != nil && len(l.pending)+len(l.holds)+len(l.releasing) == 0:
			m.startCall(num)
		}
	}
	m.checkInvariants()
}

func (m *model) connection(num int64) *conn {
	return m.conns[slices.IndexFunc(m.conns, func(c *conn) bool { return c.num == num })]
}

// timeOut advances the clock of one process to its deadline.
func (m *model) timeOut(num int) {
	m.bounds.ticks[num]--
	p := m.process(num)
	p.clockOffset += max(0, m.deadline(num).Sub(p.now()))
	m.tick(num)
}

// pathStep is the last action of a path from the initial state.
type pathStep struct {
	before *pathStep
	action action
}

// explore makes a depth-first search through the states of a scenario.
func (c scenario) explore(t *testing.T) {
	switch {
	case raceEnabled:
		c.maxStates, c.minStates = min(c.maxStates, 4_000), 0
	case mutantRun():
		c.maxStates, c.minStates = min(c.maxStates, 30_000), 0
	}
	var encoder stateEncoder
	initial := c.build()
	visited := map[stateKey]bool{encoder.state(initial): true}
	type node struct {
		model *model
		path  *pathStep
	}
	stack := []node{{initial, nil}}
	grants := 0
	for len(stack) > 0 && len(visited) < c.maxStates {
		from := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		grants = max(grants, from.model.grantCount)
		for _, a := range from.model.actions() {
			next := from.model.clone()
			path := &pathStep{from.path, a}
			if found := next.applyChecked(a); found != nil {
				c.report(t, path, found)
			}
			if key := encoder.state(next); !visited[key] {
				visited[key] = true
				stack = append(stack, node{next, path})
			}
		}
	}
	extent := "all of them"
	if len(stack) > 0 {
		extent = "bounded"
	}
	t.Logf("%d states, %s", len(visited), extent)
	require.GreaterOrEqual(t, len(visited), max(c.minStates, 1_000))
	require.NotZero(t, grants)
}

// applyChecked takes an action and returns the violation it leads to, or nil.
func (m *model) applyChecked(a action) (found *violation) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case violation:
			found = &r
		default:
			found = &violation{fmt.Sprintf("panic: %v\n%s", r, debug.Stack())}
		}
	}()
	m.apply(a)
	return nil
}

// report fails the test with a counterexample: the log of the path that leads to a
// violation.
func (c scenario) report(t *testing.T, last *pathStep, found *violation) {
	t.Helper()
	var path []action
	for ; last != nil; last = last.before {
		path = append(path, last.action)
	}
	m := c.build()
	m.logging = true
	for _, a := range slices.Backward(path) {
		m.logf("%s %d", a.kind, a.num)
		_ = m.applyChecked(a)
	}
	for _, line := range m.log {
		t.Log(line)
	}
	t.Fatalf("%s (after %d steps)", found.text, len(path))
}

package actor

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tetherlock/tether/protocol"
)

// lock is a process that runs one Machine: the socket and the callers that the
// goroutine of a lock would have.
type lock struct {
	process
	machine        *Machine
	conn           *conn
	dial           int // number of the Dial under way, 0 for none
	freshDial      bool
	pool           int     // locks of the same pool reuse each other's idle sockets
	pending        []int   // acquires without an answer
	holds          []grant // grants that have not ended
	releasing      []int   // releases without an answer
	reclaimed      []int   // grants that were reclaimed before their caller read them
	ownedChecks    []int   // CheckOwned calls without an answer
	decidingSerial int     // serial of the last count or probe reply that was read
	stopped        bool
	inputs         []Input // inputs that effects have caused, still to be fed
	feeding        bool
	token          int64  // fencing token of the last grant
	responsePrefix string // of the names of its response channels
}

// grant is the hold of one call. It is unread until the caller has received it.
type grant struct {
	call   int
	unread bool
}

func (m *model) addLock(cfg Config) *lock {
	l := &lock{process: process{model: m, num: len(m.locks)}}
	l.machine = NewMachine(l.configure(cfg))
	m.locks, m.peers = append(m.locks, l), append(m.peers, nil)
	return l
}

// configure sets what the machines of a model have in common.
func (l *lock) configure(cfg Config) Config {
	cfg.Channel, cfg.Waiters, cfg.WakeChannel = lockChannel, func() string { return waitersChannel }, wakeChannel
	l.responsePrefix = fmt.Sprintf("R%d.", l.num)
	cfg.Response = func() string { return l.model.uniqueName(l.responsePrefix) }
	cfg.Jitter = func() float64 { return l.model.jitter() }
	return cfg
}

// holdsOnServer reports whether the lock holds and the server counts its
// subscription.
func (l *lock) holdsOnServer() bool {
	return len(l.holds) > 0 && l.conn != nil && l.conn.subscribedTo(lockChannel)
}

// feed feeds an input to the machine and performs the effects. Inputs that come of
// these are fed afterwards: Step must not be called while its effects are in use.
func (l *lock) feed(in Input) {
	l.inputs = append(l.inputs, in)
	if l.feeding {
		return
	}
	l.feeding = true
	for len(l.inputs) > 0 && !l.stopped {
		in := l.inputs[0]
		l.inputs = l.inputs[1:]
		l.step(in)
	}
	l.inputs, l.feeding = nil, false
	if l.model.bounds != nil && l.dial != 0 {
		l.finishDial()
	}
}

// step makes one step and checks what holds after every step.
func (l *lock) step(in Input) {
	l.model.logf("%d <- %s", l.num, l.model.format(in))
	l.machine.Shed() // what it frees must not matter
	effects := slices.Clone(l.machine.Step(l.now(), in))
	if p, ok := in.(Pinged); ok {
		l.checkPingAnswered(p.Ping, effects)
	}
	for _, e := range effects {
		l.model.logf("%d -> %s", l.num, l.model.format(e))
		l.perform(e)
	}
	if l.machine.phase == resting && l.conn != nil && l.conn.subscribedTo(lockChannel) {
		l.model.fail("lock %d is idle and subscribed to the channel", l.num)
	}
	if _, ok := in.(Disconnected); ok && len(l.holds) > 0 {
		l.model.fail("lock %d: its socket has ended, and its hold has not", l.num)
	}
}

// format formats a value for the log. Without a log it does nothing, because
// formatting would take most of a run's time.
func (m *model) format(v any) string {
	if !m.logging {
		return ""
	}
	return formatValue(v)
}

// checkPingAnswered requires that a ping is answered in the step that takes it: a
// participant that does not answer is reaped.
func (l *lock) checkPingAnswered(p protocol.Ping, effects []Effect) {
	own := strings.HasPrefix(p.Response, l.responsePrefix) && p.Response != l.machine.selfCheck.response
	for _, e := range effects {
		switch e := e.(type) {
		case Drop:
			return // who closes its socket is not counted any more
		case *Send:
			if slices.ContainsFunc(e.Commands, func(c Command) bool { return c.Op == Answer && c.Channel == p.Response }) {
				return
			}
		}
	}
	if !own {
		l.model.fail("lock %d leaves the ping %s without an answer", l.num, p.Response)
	}
}

func (l *lock) perform(e Effect) {
	switch e := e.(type) {
	case Dial:
		l.startDial(e)
	case CancelDial:
		l.dial = 0
	case *Send:
		if l.conn == nil {
			l.model.fail("lock %d writes without a socket", l.num)
		}
		l.model.send(l.conn, e.Commands...)
	case Drop:
		if l.conn != nil {
			l.model.closeConn(l.conn, l.model.chance(2))
		}
		l.conn = nil
	case Park:
		l.park()
	case Stop:
		l.onStop()
	default:
		l.performForCaller(e)
	}
}

// performForCaller performs an effect that is for callers.
func (l *lock) performForCaller(e Effect) {
	switch e := e.(type) {
	case Grant:
		l.onGrant(e)
	case Refuse:
		l.callAnswered(e.Call.(int))
	case Reclaim:
		i := slices.IndexFunc(l.holds, func(g grant) bool { return g.call == e.Call.(int) && g.unread })
		if i >= 0 {
			l.holds[i].unread = false
			l.pending, l.reclaimed = append(l.pending, e.Call.(int)), append(l.reclaimed, e.Call.(int))
			l.inputs = append(l.inputs, Reclaimed(e))
		}
	case End:
		l.onEnd(e)
	case Released:
		call := e.Hold.(int)
		if !slices.Contains(l.releasing, call) && !slices.Contains(l.reclaimed, call) {
			l.model.fail("lock %d: the release of %d has an answer, and was not called", l.num, call)
		}
		l.releasing = remove(l.releasing, call)
	case OwnedAnswer:
		if !slices.Contains(l.ownedChecks, e.Call.(int)) {
			l.model.fail("lock %d answers the owned check %v twice", l.num, e.Call)
		}
		l.ownedChecks = remove(l.ownedChecks, e.Call.(int))
	}
}

// remove returns a copy of a list without n.
func remove(list []int, n int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(o int) bool { return o == n })
}

func (l *lock) callAnswered(call int) {
	if !slices.Contains(l.pending, call) {
		l.model.fail("lock %d answers call %d, which is not pending", l.num, call)
	}
	l.pending = remove(l.pending, call)
}

func (l *lock) onGrant(e Grant) {
	m := l.model
	l.callAnswered(e.Call.(int))
	l.holds = append(l.holds, grant{call: e.Call.(int), unread: m.rand != nil && !m.noCrashes && m.chance(6)})
	m.grantCount++
	if l.conn == nil || e.ID != l.conn.id {
		m.fail("lock %d grants %v to the id of another socket", l.num, e.Call)
	}
	if l.conn.up && !l.conn.subscribedTo(lockChannel) {
		m.fail("lock %d is granted and was never subscribed", l.num)
	}
	if len(l.holds) > 1 && !l.machine.cfg.Shared {
		m.fail("lock %d grants two holds", l.num)
	}
	if node := l.conn.node; node < m.master && l.decidingSerial > m.demotedSerials[node] {
		m.fail("lock %d is granted by a replica", l.num)
	}
	l.checkToken(e.Token)
}

// checkToken checks that fencing tokens rise from grant to grant. A grant may come
// when the server has dropped its subscription already. Its hold is about to be
// lost, so its token may be low. It must not be higher than that of a standing
// hold.
func (l *lock) checkToken(token int64) {
	m := l.model
	if fenced := l.machine.cfg.Fenced && !l.machine.cfg.Shared; fenced != (token != 0) {
		m.fail("lock %d is granted with token %d, fenced: %v", l.num, token, fenced)
	}
	if token == 0 || l.conn.node != m.master {
		return
	}
	if !l.conn.subscribedTo(lockChannel) {
		for _, o := range m.locks {
			if o != nil && o.holdsOnServer() && o.token != 0 && o.token < token {
				m.fail("lock %d has lost its connection, and has a higher token than lock %d", l.num, o.num)
			}
		}
		return
	}
	if token <= m.highestToken {
		m.fail("lock %d is granted with token %d after %d", l.num, token, m.highestToken)
	}
	m.highestToken, l.token = token, token
}

func (l *lock) onEnd(e End) {
	call := e.Hold.(int)
	i := slices.IndexFunc(l.holds, func(g grant) bool { return g.call == call })
	if i < 0 {
		l.model.fail("lock %d ends a hold of call %d, which has none", l.num, call)
	}
	l.holds = slices.Delete(slices.Clone(l.holds), i, i+1)
	if e.Loss != nil && e.Loss != errLockClosed {
		l.releasing = remove(l.releasing, call)
	}
}

// startDial takes an idle socket of the same pool. Without one the dial stays
// under way until finishDial.
func (l *lock) startDial(d Dial) {
	m := l.model
	l.dial, l.freshDial = d.Dial, d.Fresh
	idle := slices.DeleteFunc(slices.Clone(m.conns), func(c *conn) bool { return !c.parked || c.pool != l.pool })
	if d.Fresh {
		for _, c := range idle {
			c.parked = false
			m.closeConn(c, false)
		}
		return
	}
	if len(idle) == 0 {
		return
	}
	c := idle[len(idle)-1]
	c.parked, c.owner = false, l.num
	l.attach(c, false)
}

// finishDial ends a dial with a new connection.
func (l *lock) finishDial() {
	id := l.model.newID(l.num)
	if mutant(idKeptAcrossDials) {
		id = fmt.Sprintf("%08x", l.num) + idTail
	}
	l.attach(l.model.openConn(l.num, id, ""), true)
}

func (l *lock) attach(c *conn, fresh bool) {
	dial := l.dial
	l.dial, l.conn = 0, c
	l.feed(Dialed{Dial: dial, ID: c.id, Fresh: fresh})
}

// halfOpen breaks the connection on this side only. The server does not notice: it
// counts the connection until somebody kills it.
func (l *lock) halfOpen() {
	c := l.conn
	l.model.logf("%s is half open", l.model.describeConn(c))
	c.owner, l.conn = nobody, nil // the server still reads what was written before
	l.feed(Disconnected{Err: errors.New("timeout")})
}

// park makes the socket idle. It must be clean: another lock may take it.
func (l *lock) park() {
	c := l.conn
	if l.conn = nil; c == nil {
		l.model.fail("lock %d parks a socket that it does not have", l.num)
	}
	if len(c.requests) > 0 || len(c.subs) > 0 || slices.ContainsFunc(c.deliveries, func(g delivery) bool { _, ended := g.frame.(Disconnected); return !ended }) {
		l.model.fail("lock %d parks a socket that is not clean: %s", l.num, formatValue(*c))
	}
	c.owner, c.parked, c.pool = nobody, true, l.pool
}

// onStop ends the machine. Every call must have its answer by then.
func (l *lock) onStop() {
	if len(l.pending)+len(l.holds)+len(l.releasing)+len(l.ownedChecks) > 0 {
		l.model.fail("lock %d stops with pending %v, holds %v, releasing %v, owned checks %v", l.num, l.pending, l.holds, l.releasing, l.ownedChecks)
	}
	if l.conn != nil {
		l.model.fail("lock %d stops and keeps its socket", l.num)
	}
	l.stopped = true
}

// restart replaces a machine that has stopped.
func (l *lock) restart() {
	l.machine = NewMachine(l.configure(l.machine.cfg))
	l.stopped, l.dial = false, 0
}

// read lets the lock read a frame of its connection.
func (l *lock) read(c *conn, g delivery) {
	switch g.frame.(type) {
	case Disconnected:
		if mutant(silentResubscribe) && len(l.holds) > 0 {
			l.resubscribe(c)
			return
		}
		c.owner, l.conn = nobody, nil
	case Counted:
		if l.machine.phase == joining {
			l.decidingSerial = g.serial
		}
	case Probed:
		l.decidingSerial = g.serial
	}
	if mutant(tokenOnOtherConn) {
		g.frame = l.model.withLateToken(g.frame)
	}
	l.feed(g.frame)
}

// withLateToken replaces the token of a reply by one that was drawn later, as on
// another connection.
func (m *model) withLateToken(in Input) Input {
	switch reply := in.(type) {
	case Counted:
		if reply.Token != 0 {
			reply.Token = m.drawToken()
		}
		return reply
	case Probed:
		if reply.Token != 0 {
			reply.Token = m.drawToken()
		}
		return reply
	default:
		return in
	}
}

// resubscribe replaces a killed connection and does not tell the machine.
func (l *lock) resubscribe(c *conn) {
	c.owner = nobody
	l.conn = l.model.openConn(l.num, c.id, c.name)
	l.conn.subs, l.conn.joinedSerial = []string{lockChannel}, l.model.serial
}

// tick feeds a Tick if the deadline has passed. A machine may need several ticks
// for all that is due, but not infinitely many: the loop would spin.
func (l *lock) tick() {
	for range 4 {
		at := l.machine.Deadline()
		if at.IsZero() || at.After(l.now()) {
			return
		}
		l.feed(Tick{})
		if l.stopped {
			return
		}
	}
	if at := l.machine.Deadline(); !at.IsZero() && !at.After(l.now()) {
		l.model.fail("lock %d: the deadline stays in the past in spite of ticks", l.num)
	}
}

// The callers' side.

var (
	errContextEnded = errors.New("context ended")
	errLockClosed   = errors.New("lock closed") // the loss of a Release: the lock of one call is closed
)

// acquire calls Acquire and returns the number of the call.
func (l *lock) acquire(try bool) int {
	l.model.callCount++
	l.pending = append(l.pending, l.model.callCount)
	l.feed(Acquire{Call: l.model.callCount, Try: try})
	return l.model.callCount
}

// release releases the first hold whose caller has received it.
func (l *lock) release() bool {
	for _, g := range l.holds {
		if !g.unread && !slices.Contains(l.releasing, g.call) && !slices.Contains(l.pending, g.call) {
			l.releasing = append(l.releasing, g.call)
			in := Release{Hold: g.call}
			if l.model.rand != nil && !l.model.noCrashes && l.model.chance(6) {
				in.Loss = errLockClosed
			}
			l.feed(in)
			return true
		}
	}
	return false
}

// readGrant lets a caller receive its grant.
func (l *lock) readGrant() bool {
	for i, g := range l.holds {
		if g.unread {
			l.holds[i].unread = false
			return true
		}
	}
	return false
}

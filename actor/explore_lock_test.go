package actor

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tetherlock/tether/protocol"
)

// lock is one of our machines, and what its callers and its host know.
type lock struct {
	body
	m       *Machine
	conn    *conn
	dial    int // that is asked for, 0 for none
	fresh   bool
	pool    int // locks of one client hand their sockets to each other
	open    []int
	held    []grant
	leaving []int // releases that are not over
	back    []int // grants that were taken back unread
	asking  []int // inquiries
	decided int   // serial of the last count or probe that was read
	stopped bool
	next    []Input
	feeding bool
	token   int64  // of the last grant
	prefix  string // of the response channels that it makes
}

// grant is a hold of one call. Unread is one that its caller has yet to see.
type grant struct {
	call   int
	unread bool
}

func (w *model) addLock(cfg Config) *lock {
	l := &lock{body: body{w: w, num: len(w.locks)}}
	l.m = NewMachine(l.configure(cfg))
	w.locks, w.ports = append(w.locks, l), append(w.ports, nil)
	return l
}

// configure fills in what all machines of a world have in common.
func (l *lock) configure(cfg Config) Config {
	cfg.Channel, cfg.Waiters, cfg.WakeChannel = theChannel, theWaiters, wakeChannel
	l.prefix = fmt.Sprintf("R%d.", l.num)
	cfg.Response = func() string { return l.w.name(l.prefix) }
	cfg.Jitter = func() float64 { return l.w.jitter() }
	return cfg
}

// alive says whether the server counts a hold of this lock.
func (l *lock) alive() bool { return len(l.held) > 0 && l.conn != nil && l.conn.on(theChannel) }

// feed gives the machine an input and performs its effects, and then what
// comes of them.
func (l *lock) feed(in Input) {
	l.next = append(l.next, in)
	if l.feeding {
		return
	}
	l.feeding = true
	for len(l.next) > 0 && !l.stopped {
		in := l.next[0]
		l.next = l.next[1:]
		l.step(in)
	}
	l.next, l.feeding = nil, false
	if l.w.small != nil && l.dial != 0 {
		l.connect()
	}
}

func (l *lock) step(in Input) {
	l.w.note("%d <- %s", l.num, l.w.text(in))
	effects := slices.Clone(l.m.Step(l.now(), in))
	if p, ok := in.(Pinged); ok {
		l.judgePing(p.Ping, effects)
	}
	for _, e := range effects {
		l.w.note("%d -> %s", l.num, l.w.text(e))
		l.perform(e)
	}
	if l.m.phase == resting && l.conn != nil && l.conn.on(theChannel) {
		l.w.fail("lock %d rests and is subscribed to the channel", l.num)
	}
	if _, ok := in.(Disconnected); ok && len(l.held) > 0 {
		l.w.fail("lock %d: its socket has ended, and a loss is not told", l.num)
	}
}

// text writes down what a transcript needs, and nothing when nobody reads it.
func (w *model) text(v any) string {
	if !w.logging {
		return ""
	}
	return clean(v)
}

// judgePing holds the machine to an answer in the same step.
func (l *lock) judgePing(p protocol.Ping, effects []Effect) {
	own := strings.HasPrefix(p.Response, l.prefix) && p.Response != l.m.hold.selfCheck.response
	for _, e := range effects {
		switch e := e.(type) {
		case Drop:
			return // to leave at once is an answer, too
		case *Send:
			if slices.ContainsFunc(e.Commands, func(c Command) bool { return c.Op == Answer && c.Channel == p.Response }) {
				return
			}
		}
	}
	if !own {
		l.w.fail("lock %d leaves the ping %s without an answer", l.num, p.Response)
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
			l.w.fail("lock %d writes without a socket", l.num)
		}
		l.w.write(l.conn, e.Commands...)
	case Drop:
		if l.conn != nil {
			l.w.hangUp(l.conn, l.w.chance(2))
		}
		l.conn = nil
	case Park:
		l.park()
	case Stop:
		l.stop()
	default:
		l.tell(e)
	}
}

// tell performs an effect for callers.
func (l *lock) tell(e Effect) {
	switch e := e.(type) {
	case Grant:
		l.granted(e)
	case Refuse:
		l.answered(e.Call.(int))
	case Reclaim:
		i := slices.IndexFunc(l.held, func(g grant) bool { return g.call == e.Call.(int) && g.unread })
		if i >= 0 {
			l.held[i].unread = false
			l.open, l.back = append(l.open, e.Call.(int)), append(l.back, e.Call.(int))
			l.next = append(l.next, Reclaimed(e))
		}
	case End:
		l.ended(e)
	case Released:
		call := e.Hold.(int)
		if !slices.Contains(l.leaving, call) && !slices.Contains(l.back, call) {
			l.w.fail("lock %d: release of %d is told, and was not asked for", l.num, call)
		}
		l.leaving = without(l.leaving, call)
	case OwnedAnswer:
		if !slices.Contains(l.asking, e.Call.(int)) {
			l.w.fail("lock %d answers inquiry %v twice", l.num, e.Call)
		}
		l.asking = without(l.asking, e.Call.(int))
	}
}

func without(list []int, n int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(o int) bool { return o == n })
}

func (l *lock) answered(call int) {
	if !slices.Contains(l.open, call) {
		l.w.fail("lock %d answers call %d, which is not open", l.num, call)
	}
	l.open = without(l.open, call)
}

func (l *lock) granted(e Grant) {
	w := l.w
	l.answered(e.Call.(int))
	l.held = append(l.held, grant{call: e.Call.(int), unread: w.rand != nil && !w.full && w.chance(6)})
	w.grants++
	if l.conn == nil || e.ID != l.conn.id {
		w.fail("lock %d grants %v to the id of another socket", l.num, e.Call)
	}
	if l.conn.up && !l.conn.on(theChannel) {
		w.fail("lock %d is granted and was never subscribed", l.num)
	}
	if len(l.held) > 1 && !l.m.cfg.Shared {
		w.fail("lock %d grants two holds", l.num)
	}
	if node := l.conn.node; node < w.master && l.decided > w.demoted[node] {
		w.fail("lock %d is granted by a replica", l.num)
	}
	l.judgeToken(e.Token)
}

// judgeToken holds fencing tokens to the order of the grants. A grant whose
// subscription has ended already is late, and about to be lost.
func (l *lock) judgeToken(token int64) {
	w := l.w
	if fenced := l.m.cfg.Fenced && !l.m.cfg.Shared; fenced != (token != 0) {
		w.fail("lock %d is granted with token %d, fenced: %v", l.num, token, fenced)
	}
	if token == 0 || l.conn.node != w.master {
		return
	}
	if !l.conn.on(theChannel) {
		for _, o := range w.locks {
			if o != nil && o.alive() && o.token != 0 && o.token < token {
				w.fail("lock %d has lost its connection, and a higher token than lock %d", l.num, o.num)
			}
		}
		return
	}
	if token <= w.token {
		w.fail("lock %d is granted with token %d behind %d", l.num, token, w.token)
	}
	w.token, l.token = token, token
}

func (l *lock) ended(e End) {
	call := e.Hold.(int)
	i := slices.IndexFunc(l.held, func(g grant) bool { return g.call == call })
	if i < 0 {
		l.w.fail("lock %d ends a hold of %d that is none", l.num, call)
	}
	l.held = slices.Delete(slices.Clone(l.held), i, i+1)
	if e.Loss != nil && e.Loss != errShut {
		l.leaving = without(l.leaving, call)
	}
}

// startDial looks for an idle socket of the same client.
func (l *lock) startDial(d Dial) {
	w := l.w
	l.dial, l.fresh = d.Dial, d.Fresh
	idle := slices.DeleteFunc(slices.Clone(w.conns), func(c *conn) bool { return !c.parked || c.pool != l.pool })
	if d.Fresh {
		for _, c := range idle {
			c.parked = false
			w.hangUp(c, false)
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

// connect is the end of a dial.
func (l *lock) connect() {
	id := l.w.newID(l.num)
	if mutant(idKeptAcrossDials) {
		id = fmt.Sprintf("%08x", l.num) + idTail
	}
	l.attach(l.w.dialTo(l.num, id, ""), true)
}

func (l *lock) attach(c *conn, fresh bool) {
	dial := l.dial
	l.dial, l.conn = 0, c
	l.feed(Dialed{Dial: dial, ID: c.id, Fresh: fresh})
}

// part breaks the link on this side only: the server does not notice, and goes
// on counting the connection until somebody ends it.
func (l *lock) part() {
	c := l.conn
	l.w.note("%s is half open", l.w.title(c))
	c.owner, l.conn = nobody, nil // what was written has arrived, as a whole
	l.feed(Disconnected{Err: errors.New("timeout")})
}

func (l *lock) park() {
	c := l.conn
	if l.conn = nil; c == nil {
		l.w.fail("lock %d parks no socket", l.num)
	}
	if len(c.in) > 0 || len(c.subs) > 0 || slices.ContainsFunc(c.out, func(g got) bool { _, ended := g.frame.(Disconnected); return !ended }) {
		l.w.fail("lock %d parks a socket that is not clean: %s", l.num, clean(*c))
	}
	c.owner, c.parked, c.pool = nobody, true, l.pool
}

// stop is the end of the machine. Another one takes its place.
func (l *lock) stop() {
	if len(l.open)+len(l.held)+len(l.leaving)+len(l.asking) > 0 {
		l.w.fail("lock %d stops with open %v, held %v, leaving %v, asking %v", l.num, l.open, l.held, l.leaving, l.asking)
	}
	if l.conn != nil {
		l.w.fail("lock %d stops and keeps its socket", l.num)
	}
	l.stopped = true
}

// renew replaces a machine that has stopped.
func (l *lock) renew() {
	l.m = NewMachine(l.configure(l.m.cfg))
	l.stopped, l.dial = false, 0
}

// take reads a frame.
func (l *lock) take(c *conn, g got) {
	switch g.frame.(type) {
	case Disconnected:
		if mutant(silentRevival) && len(l.held) > 0 {
			l.revive(c)
			return
		}
		c.owner, l.conn = nobody, nil
	case Counted:
		if l.m.phase == joining {
			l.decided = g.serial
		}
	case Probed:
		l.decided = g.serial
	}
	if mutant(tokenElsewhere) {
		g.frame = l.w.redrawn(g.frame)
	}
	l.feed(g.frame)
}

// redrawn is a reply whose token was drawn later, on a connection of its own.
func (w *model) redrawn(in Input) Input {
	switch reply := in.(type) {
	case Counted:
		if reply.Token != 0 {
			reply.Token = w.draw()
		}
		return reply
	case Probed:
		if reply.Token != 0 {
			reply.Token = w.draw()
		}
		return reply
	default:
		return in
	}
}

// revive subscribes anew what was killed, and tells the machine nothing.
func (l *lock) revive(c *conn) {
	c.owner = nobody
	l.conn = l.w.dialTo(l.num, c.id, c.name)
	l.conn.subs, l.conn.joined = []string{theChannel}, l.w.serial
}

// tick tells the machine that its deadline has passed. One tick may leave
// something that is due to the next, but not for ever.
func (l *lock) tick() {
	for range 4 {
		at := l.m.Deadline()
		if at.IsZero() || at.After(l.now()) {
			return
		}
		l.feed(Tick{})
		if l.stopped {
			return
		}
	}
	if at := l.m.Deadline(); !at.IsZero() && !at.After(l.now()) {
		l.w.fail("lock %d: ticks leave the deadline in the past", l.num)
	}
}

// The callers' side.

var (
	errGaveUp = errors.New("ended")
	errShut   = errors.New("shut") // ends a hold that is then released like any other
)

func (l *lock) acquire(try bool) int {
	l.w.calls++
	l.open = append(l.open, l.w.calls)
	l.feed(Acquire{Call: l.w.calls, Try: try})
	return l.w.calls
}

func (l *lock) release() bool {
	for _, g := range l.held {
		if !g.unread && !slices.Contains(l.leaving, g.call) && !slices.Contains(l.open, g.call) {
			l.leaving = append(l.leaving, g.call)
			in := Release{Hold: g.call}
			if l.w.rand != nil && !l.w.full && l.w.chance(6) {
				in.Loss = errShut
			}
			l.feed(in)
			return true
		}
	}
	return false
}

// receive lets a caller see its grant.
func (l *lock) receive() bool {
	for i, g := range l.held {
		if g.unread {
			l.held[i].unread = false
			return true
		}
	}
	return false
}

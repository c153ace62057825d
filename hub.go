package tether

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tetherlock/tether/actor"
	"github.com/tetherlock/tether/wire"
)

const (
	// maxIdle bounds the idle sockets of a client.
	maxIdle = 64
	// idleLimit is how long an idle socket is kept.
	idleLimit = 30 * time.Second
	// nameLimit is how long an idle socket keeps its lock's name: peers take
	// a silent connection of that name for a crashed holder.
	nameLimit = 400 * time.Millisecond
	// renameLimit bounds the answer to a renaming.
	renameLimit = time.Second
)

// hub is what the locks of one client share: the idle sockets, the list of
// locks, and the look for a new master. One goroutine owns it; it does no I/O
// of its own, so nobody who sends to it waits for long.
type hub struct {
	endpoint *endpoint
	inbox    chan any
	done     chan struct{}
	ending   context.Context // of what is done beside the goroutine
}

// Messages to the hub.
type (
	takeSocket struct{ reply chan<- *wire.Socket }
	// parkSocket is the last word of a lock, if there is one.
	parkSocket struct {
		socket *wire.Socket
		leaves *actor.Loop
	}
	discardIdle struct{}
	namedIdle   struct{ socket *wire.Socket }
	enterLock   struct {
		lock  *lock
		line  line
		reply chan<- entry
	}
	quitLock struct {
		lock  *lock
		reply chan<- bool
	}
	leaveLock   struct{ loop *actor.Loop }
	watchMaster struct {
		who   watcher
		moved chan<- error
	}
	unwatchMaster struct{ moved chan<- error }
	masterAt      struct{ addr string }
	// closeHub lets no lock in any more. The reply lists those that are left.
	closeHub struct{ reply chan<- []*actor.Loop }
	// orphanHub says that the client's handle is gone.
	orphanHub struct{}
)

// entry is what a lock begins with: the goroutine to be used, which is another
// lock's if there is one for the same line, and nil when the client is closed;
// and an idle socket for a one-shot lock's own one.
type entry struct {
	loop   *actor.Loop
	socket *wire.Socket
}

// idleSocket is a clean socket that nobody uses.
type idleSocket struct {
	socket *wire.Socket
	since  time.Time
	named  bool // it still bears a lock's name
}

func newHub(e *endpoint) *hub {
	ending, end := context.WithCancel(context.Background())
	h := &hub{endpoint: e, inbox: make(chan any), done: make(chan struct{}), ending: ending}
	k := &keeper{hub: h, end: end, crews: map[*actor.Loop]*crew{}, lines: map[line]*actor.Loop{}, masters: masters{watchers: map[chan<- error]watcher{}}}
	go k.run()
	return h
}

// send hands a message over; it returns false when the hub has ended.
func (h *hub) send(m any) bool {
	select {
	case h.inbox <- m:
		return true
	case <-h.done:
		return false
	}
}

// offer is send for those that the hub waits for at its end.
func (h *hub) offer(m any) bool {
	select {
	case h.inbox <- m:
		return true
	case <-h.ending.Done():
		return false
	}
}

// take returns a clean idle socket, or nil.
func (h *hub) take() *wire.Socket {
	reply := make(chan *wire.Socket, 1)
	if !h.send(takeSocket{reply}) {
		return nil
	}
	return <-reply
}

// discard closes the idle sockets: one of them has turned out to be dead, and
// whatever has killed it may have killed all.
func (h *hub) discard() { h.send(discardIdle{}) }

// park takes a clean socket back, of a lock that leaves unless that is nil.
func (h *hub) park(s *wire.Socket, leaves *actor.Loop) {
	if !h.send(parkSocket{s, leaves}) {
		s.Close()
	}
}

// closed says whether the client is closed.
func (h *hub) closed() bool { return over(h.done) }

// enter notes a lock that is to be closed with the client.
func (h *hub) enter(l *lock, where line) entry {
	reply := make(chan entry, 1)
	if !h.send(enterLock{l, where, reply}) {
		return entry{}
	}
	return <-reply
}

// quit notes that a lock needs its goroutine no longer, and tells whether no other
// lock does.
func (h *hub) quit(l *lock) bool {
	reply := make(chan bool, 1)
	return h.send(quitLock{l, reply}) && <-reply
}

func (h *hub) leave(l *actor.Loop) { h.send(leaveLock{l}) }

func (h *hub) watch(who watcher, moved chan<- error) {
	if h.endpoint.sentinel {
		h.send(watchMaster{who, moved})
	}
}

func (h *hub) unwatch(moved chan<- error) {
	if h.endpoint.sentinel {
		h.send(unwatchMaster{moved})
	}
}

// keeper is what the hub's goroutine owns.
type keeper struct {
	*hub
	end      context.CancelFunc
	renaming sync.WaitGroup
	idle     []idleSocket // the one that was parked last at the end
	crews    map[*actor.Loop]*crew
	lines    map[line]*actor.Loop
	masters  masters
	closing  bool
	orphaned bool
	stopped  bool
}

// crew are the locks that a goroutine serves, and the line that others find it
// by. One-shot locks are not listed: theirs ends by itself.
type crew struct {
	line  line
	locks map[*lock]struct{}
}

func (c *crew) add(l *lock) {
	if c.locks == nil {
		c.locks = map[*lock]struct{}{}
	}
	c.locks[l] = struct{}{}
}

func (k *keeper) run() {
	defer close(k.done)
	timer := time.NewTimer(idleLimit)
	defer timer.Stop()
	armed := time.Now().Add(idleLimit)
	for !k.stopped {
		select {
		case m := <-k.inbox:
			k.receive(m)
		case <-timer.C:
			armed = time.Time{}
		}
		now := time.Now()
		k.tidy(now)
		k.masters.look(now, k.hub)
		// One that is too early is left alone: most messages change nothing
		// about what is due next.
		if due := now.Add(k.next(now)); armed.IsZero() || due.Before(armed) {
			armed = due
			timer.Reset(due.Sub(now))
		}
	}
	k.end()
	k.forget(func(*wire.Socket) bool { return true })
	k.renaming.Wait()
}

// receive takes one message.
func (k *keeper) receive(m any) {
	switch m := m.(type) {
	case takeSocket:
		m.reply <- k.freshest()
	case parkSocket:
		k.keep(idleSocket{m.socket, time.Now(), true})
		k.leave(m.leaves)
	case discardIdle:
		k.forget(func(*wire.Socket) bool { return true })
	case namedIdle:
		k.keep(idleSocket{m.socket, time.Now(), false})
	case enterLock:
		m.reply <- k.enter(m)
	case quitLock:
		m.reply <- k.quit(m.lock)
	case leaveLock:
		k.leave(m.loop)
	case watchMaster:
		k.masters.add(m.moved, m.who)
	case unwatchMaster:
		delete(k.masters.watchers, m.moved)
	case masterAt:
		k.masters.found(m.addr)
		k.forget(func(s *wire.Socket) bool { return m.addr != "" && s.RemoteAddr() != m.addr })
	case closeHub:
		k.closing = true
		m.reply <- slices.Collect(maps.Keys(k.crews))
	case orphanHub:
		k.orphaned = true
	}
	k.stopped = (k.closing || k.orphaned) && len(k.crews) == 0
}

// enter lets a lock in, and names the goroutine that does the same already.
func (k *keeper) enter(m enterLock) (e entry) {
	if k.closing {
		return e
	}
	if e.loop = k.lines[m.line]; e.loop == nil {
		e.loop = m.lock.loop
		k.crews[e.loop] = &crew{line: m.line}
		if m.line != (line{}) {
			k.lines[m.line] = e.loop
		}
		if m.lock.once {
			e.socket = k.freshest()
		}
	}
	if !m.lock.once {
		k.crews[e.loop].add(m.lock)
	}
	return e
}

// leave is the end of a goroutine.
func (k *keeper) leave(loop *actor.Loop) {
	k.disperse(loop)
	delete(k.crews, loop)
}

// quit takes a lock out of its crew. A goroutine without one is about to end,
// and nobody finds it any more. A lock that has quit before is told the same: of
// several that close it at once, none may take it for one among others.
func (k *keeper) quit(l *lock) (needless bool) {
	c := k.crews[l.loop]
	if c == nil {
		return false
	}
	delete(c.locks, l)
	if len(c.locks) > 0 {
		return false
	}
	k.disperse(l.loop)
	return true
}

// disperse lets nobody join a goroutine any more.
func (k *keeper) disperse(loop *actor.Loop) {
	if c := k.crews[loop]; c != nil && k.lines[c.line] == loop {
		delete(k.lines, c.line)
	}
}

// freshest takes the socket that was used last. One on which the server has
// said anything, its end above all, is of no use.
func (k *keeper) freshest() *wire.Socket {
	for len(k.idle) > 0 {
		last := len(k.idle) - 1
		s := k.idle[last].socket
		k.idle = k.idle[:last]
		if s.Quiet() {
			return s
		}
		s.Close()
	}
	return nil
}

func (k *keeper) keep(i idleSocket) {
	if len(k.idle) >= maxIdle {
		i.socket.Close()
		return
	}
	k.idle = append(k.idle, i)
}

// forget closes the idle sockets that a condition holds for.
func (k *keeper) forget(condition func(*wire.Socket) bool) {
	k.idle = slices.DeleteFunc(k.idle, func(i idleSocket) bool {
		gone := condition(i.socket)
		if gone {
			i.socket.Close()
		}
		return gone
	})
}

// tidy takes lock names off and closes what has been idle for long.
func (k *keeper) tidy(now time.Time) {
	k.idle = slices.DeleteFunc(k.idle, func(i idleSocket) bool {
		switch idle := now.Sub(i.since); {
		case idle >= idleLimit:
			i.socket.Close()
			return true
		case i.named && idle >= nameLimit:
			k.renaming.Go(func() { rename(i.socket, k.hub) })
			return true
		}
		return false
	})
}

// rename names an idle socket as one, beside the hub.
func rename(s *wire.Socket, h *hub) {
	if s.Write(wire.AppendHello(nil, nil, wire.IdleName)) != nil {
		s.Close()
		return
	}
	select {
	case f := <-s.Frames():
		if f.Err == nil && len(f.Frames) == 1 && f.Frames[0].Kind == wire.Map && h.offer(namedIdle{s}) {
			return
		}
	case <-h.ending.Done():
	case <-time.After(renameLimit):
	}
	s.Close()
}

// next is when something is due.
func (k *keeper) next(now time.Time) time.Duration {
	wait := idleLimit
	for _, i := range k.idle {
		due := i.since.Add(idleLimit)
		if i.named {
			due = i.since.Add(nameLimit)
		}
		wait = min(wait, due.Sub(now))
	}
	return max(0, min(wait, k.masters.wait(now)))
}

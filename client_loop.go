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
type clientLoop struct {
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
		ended  *actor.Loop
	}
	closeIdleSockets struct{}
	renamedIdle      struct{ socket *wire.Socket }
	registerLock     struct {
		lock  *lock
		key   shareKey
		reply chan<- entry
	}
	unregisterLock struct {
		lock  *lock
		reply chan<- bool
	}
	participantEnded struct{ loop *actor.Loop }
	watchMaster      struct {
		who   watcher
		moved chan<- error
	}
	unwatchMaster struct{ moved chan<- error }
	masterAt      struct{ addr string }
	// closeHub lets no lock in any more. The reply lists those that are left.
	closeClient struct{ reply chan<- []*actor.Loop }
	// orphanHub says that the client's handle is gone.
	clientDropped struct{}
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

func newClientLoop(e *endpoint) *clientLoop {
	ending, end := context.WithCancel(context.Background())
	h := &clientLoop{endpoint: e, inbox: make(chan any), done: make(chan struct{}), ending: ending}
	k := &clientState{clientLoop: h, end: end, participants: map[*actor.Loop]*handles{}, sharing: map[shareKey]*actor.Loop{}, masters: masterWatch{watchers: map[chan<- error]watcher{}}}
	go k.run()
	return h
}

// send hands a message over; it returns false when the hub has ended.
func (h *clientLoop) send(m any) bool {
	select {
	case h.inbox <- m:
		return true
	case <-h.done:
		return false
	}
}

// offer is send for those that the hub waits for at its end.
func (h *clientLoop) offer(m any) bool {
	select {
	case h.inbox <- m:
		return true
	case <-h.ending.Done():
		return false
	}
}

// take returns a clean idle socket, or nil.
func (h *clientLoop) take() *wire.Socket {
	reply := make(chan *wire.Socket, 1)
	if !h.send(takeSocket{reply}) {
		return nil
	}
	return <-reply
}

// discard closes the idle sockets: one of them has turned out to be dead, and
// whatever has killed it may have killed all.
func (h *clientLoop) closeIdle() { h.send(closeIdleSockets{}) }

// park takes a clean socket back, of a lock that leaves unless that is nil.
func (h *clientLoop) park(s *wire.Socket, leaves *actor.Loop) {
	if !h.send(parkSocket{s, leaves}) {
		s.Close()
	}
}

// closed says whether the client is closed.
func (h *clientLoop) closed() bool { return isClosed(h.done) }

// enter notes a lock that is to be closed with the client.
func (h *clientLoop) register(l *lock, where shareKey) entry {
	reply := make(chan entry, 1)
	if !h.send(registerLock{l, where, reply}) {
		return entry{}
	}
	return <-reply
}

// quit notes that a lock needs its goroutine no longer, and tells whether no other
// lock does.
func (h *clientLoop) unregister(l *lock) bool {
	reply := make(chan bool, 1)
	return h.send(unregisterLock{l, reply}) && <-reply
}

func (h *clientLoop) participantEnded(l *actor.Loop) { h.send(participantEnded{l}) }

func (h *clientLoop) watch(who watcher, moved chan<- error) {
	if h.endpoint.sentinel {
		h.send(watchMaster{who, moved})
	}
}

func (h *clientLoop) unwatch(moved chan<- error) {
	if h.endpoint.sentinel {
		h.send(unwatchMaster{moved})
	}
}

// keeper is what the hub's goroutine owns.
type clientState struct {
	*clientLoop
	end          context.CancelFunc
	renames      sync.WaitGroup
	idle         []idleSocket // the one that was parked last at the end
	participants map[*actor.Loop]*handles
	sharing      map[shareKey]*actor.Loop
	masters      masterWatch
	closing      bool
	orphaned     bool
	stopped      bool
}

// crew are the locks that a goroutine serves, and the line that others find it
// by. One-shot locks are not listed: theirs ends by itself.
type handles struct {
	line  shareKey
	locks map[*lock]struct{}
}

func (c *handles) add(l *lock) {
	if c.locks == nil {
		c.locks = map[*lock]struct{}{}
	}
	c.locks[l] = struct{}{}
}

func (k *clientState) run() {
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
		k.expireIdle(now)
		k.masters.look(now, k.clientLoop)
		// One that is too early is left alone: most messages change nothing
		// about what is due next.
		if due := now.Add(k.next(now)); armed.IsZero() || due.Before(armed) {
			armed = due
			timer.Reset(due.Sub(now))
		}
	}
	k.end()
	k.closeIdle(func(*wire.Socket) bool { return true })
	k.renames.Wait()
}

// receive takes one message.
func (k *clientState) receive(m any) {
	switch m := m.(type) {
	case takeSocket:
		m.reply <- k.newestIdle()
	case parkSocket:
		k.addIdle(idleSocket{m.socket, time.Now(), true})
		k.participantEnded(m.ended)
	case closeIdleSockets:
		k.closeIdle(func(*wire.Socket) bool { return true })
	case renamedIdle:
		k.addIdle(idleSocket{m.socket, time.Now(), false})
	case registerLock:
		m.reply <- k.register(m)
	case unregisterLock:
		m.reply <- k.unregister(m.lock)
	case participantEnded:
		k.participantEnded(m.loop)
	case watchMaster:
		k.masters.add(m.moved, m.who)
	case unwatchMaster:
		delete(k.masters.watchers, m.moved)
	case masterAt:
		k.masters.found(m.addr)
		k.closeIdle(func(s *wire.Socket) bool { return m.addr != "" && s.RemoteAddr() != m.addr })
	case closeClient:
		k.closing = true
		m.reply <- slices.Collect(maps.Keys(k.participants))
	case clientDropped:
		k.orphaned = true
	}
	k.stopped = (k.closing || k.orphaned) && len(k.participants) == 0
}

// enter lets a lock in, and names the goroutine that does the same already.
func (k *clientState) register(m registerLock) (e entry) {
	if k.closing {
		return e
	}
	if e.loop = k.sharing[m.key]; e.loop == nil {
		e.loop = m.lock.loop
		k.participants[e.loop] = &handles{line: m.key}
		if m.key != (shareKey{}) {
			k.sharing[m.key] = e.loop
		}
		if m.lock.once {
			e.socket = k.newestIdle()
		}
	}
	if !m.lock.once {
		k.participants[e.loop].add(m.lock)
	}
	return e
}

// leave is the end of a goroutine.
func (k *clientState) participantEnded(loop *actor.Loop) {
	k.stopSharing(loop)
	delete(k.participants, loop)
}

// quit takes a lock out of its crew. A goroutine without one is about to end,
// and nobody finds it any more. A lock that has quit before is told the same: of
// several that close it at once, none may take it for one among others.
func (k *clientState) unregister(l *lock) (needless bool) {
	c := k.participants[l.loop]
	if c == nil {
		return false
	}
	delete(c.locks, l)
	if len(c.locks) > 0 {
		return false
	}
	k.stopSharing(l.loop)
	return true
}

// disperse lets nobody join a goroutine any more.
func (k *clientState) stopSharing(loop *actor.Loop) {
	if c := k.participants[loop]; c != nil && k.sharing[c.line] == loop {
		delete(k.sharing, c.line)
	}
}

// freshest takes the socket that was used last. One on which the server has
// said anything, its end above all, is of no use.
func (k *clientState) newestIdle() *wire.Socket {
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

func (k *clientState) addIdle(i idleSocket) {
	if len(k.idle) >= maxIdle {
		i.socket.Close()
		return
	}
	k.idle = append(k.idle, i)
}

// forget closes the idle sockets that a condition holds for.
func (k *clientState) closeIdle(condition func(*wire.Socket) bool) {
	k.idle = slices.DeleteFunc(k.idle, func(i idleSocket) bool {
		gone := condition(i.socket)
		if gone {
			i.socket.Close()
		}
		return gone
	})
}

// tidy takes lock names off and closes what has been idle for long.
func (k *clientState) expireIdle(now time.Time) {
	k.idle = slices.DeleteFunc(k.idle, func(i idleSocket) bool {
		switch idle := now.Sub(i.since); {
		case idle >= idleLimit:
			i.socket.Close()
			return true
		case i.named && idle >= nameLimit:
			k.renames.Go(func() { rename(i.socket, k.clientLoop) })
			return true
		}
		return false
	})
}

// rename names an idle socket as one, beside the hub.
func rename(s *wire.Socket, h *clientLoop) {
	if s.Write(wire.AppendHello(nil, nil, wire.IdleName)) != nil {
		s.Close()
		return
	}
	select {
	case f := <-s.Frames():
		if f.Err == nil && len(f.Frames) == 1 && f.Frames[0].Kind == wire.Map && h.offer(renamedIdle{s}) {
			return
		}
	case <-h.ending.Done():
	case <-time.After(renameLimit):
	}
	s.Close()
}

// next is when something is due.
func (k *clientState) next(now time.Time) time.Duration {
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

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Settings of the floors.
const (
	floorPing     = "ping"
	floorHello    = "hello"
	floorHandOver = "hand"
)

// rawPeer is the least that a lock by subscription can send: subscribe and count,
// then unsubscribe.
func rawPeer() *peer {
	return &peer{
		library: floorLibrary, about: "SUBSCRIBE with NUMSUB in one write, then UNSUBSCRIBE; no safety beyond that",
		open: openRaw(floorLibrary),
	}
}

// extraFloors are floors for single sections.
func extraFloors() []*peer {
	return []*peer{
		{library: floorLibrary, setting: floorPing, about: "one PING", open: openRaw(floorPing)},
		{
			library: floorLibrary, setting: floorHello, open: openRaw(floorHello),
			about: "the pair with HELLO, which names the connection and tells the node's role",
		},
		handOverFloor(),
	}
}

// handOverFloor is a hand-over without a library.
func handOverFloor() *peer {
	return &peer{
		library: floorLibrary, setting: floorHandOver, open: openRaw(floorHandOver),
		about: "UNSUBSCRIBE with PUBLISH in one write; the push; SUBSCRIBE with NUMSUB in one write",
	}
}

// rawLocker has a socket for each lock that is held, and a pool of idle sockets.
type rawLocker struct {
	addr string
	kind string
	side int // 0 or 1 in a hand-over
	idle chan *rawSocket

	mu       sync.Mutex
	commands map[string]*rawCommands
}

// rawCommands are the bytes that are sent for one name.
type rawCommands struct {
	join, leave, handOver []byte
	frames                int  // that join is answered with
	listening             bool // to the wake channel of this side
}

// maxIdleSockets is the size of the pool.
const maxIdleSockets = 16384

func openRaw(kind string) func(endpoints) (locker, error) {
	return func(at endpoints) (locker, error) {
		l := &rawLocker{
			addr: at.Redis, kind: kind, side: at.Side, idle: make(chan *rawSocket, maxIdleSockets), commands: map[string]*rawCommands{},
		}
		s, err := l.getSocket(context.Background())
		if err != nil {
			return nil, err
		}
		l.putSocket(s)
		return l, nil
	}
}

func (l *rawLocker) getSocket(ctx context.Context) (*rawSocket, error) {
	select {
	case s := <-l.idle:
		return s, nil
	default:
	}
	s, err := dialRaw(ctx, l.addr)
	if err != nil {
		return nil, err
	}
	_, err = s.exchange(command("HELLO", "3"), 1)
	return s, err
}

func (l *rawLocker) putSocket(s *rawSocket) {
	select {
	case l.idle <- s:
	default:
		_ = s.close() // the pool is full
	}
}

func (l *rawLocker) commandsFor(name string) *rawCommands {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.commands[name]
	if n == nil {
		n = l.newCommands(name)
		l.commands[name] = n
	}
	return n
}

func (l *rawLocker) newCommands(name string) *rawCommands {
	join := append(command("SUBSCRIBE", name), command("PUBSUB", "NUMSUB", name)...)
	n := &rawCommands{join: join, leave: command("UNSUBSCRIBE", name), frames: 2}
	switch l.kind {
	case floorPing:
		n.join, n.frames, n.leave = command("PING"), 1, nil
	case floorHello:
		holder := name + "-lock-0123456789abcdef0123456789abcdef"
		n.join, n.frames = append(n.join, command("HELLO", "3", "SETNAME", holder)...), 3
	case floorHandOver:
		n.handOver = append(command("UNSUBSCRIBE", name), command("PUBLISH", wakeOf(name, 1-l.side), "wake")...)
	}
	return n
}

func wakeOf(name string, side int) string { return fmt.Sprintf("%s-wake-%d", name, side) }

var errTaken = errors.New("the name is taken: the floor does not wait")

func (l *rawLocker) Acquire(ctx context.Context, name string) (func() error, error) {
	s, err := l.getSocket(ctx)
	if err != nil {
		return nil, err
	}
	n := l.commandsFor(name)
	if l.kind == floorHandOver {
		return l.acquireHandOver(s, name, n)
	}
	count, err := s.exchange(n.join, n.frames)
	if err != nil {
		return nil, err
	}
	if l.kind == floorLibrary && count != 1 {
		return nil, errTaken
	}
	return func() error {
		defer l.putSocket(s)
		if n.leave == nil {
			return nil
		}
		_, err := s.exchange(n.leave, 1)
		return err
	}, nil
}

// acquireHandOver joins, and waits for a wake if it is not alone.
func (l *rawLocker) acquireHandOver(s *rawSocket, name string, n *rawCommands) (func() error, error) {
	if !n.listening {
		n.listening = true
		if _, err := s.exchange(command("SUBSCRIBE", wakeOf(name, l.side)), 1); err != nil {
			return nil, err
		}
	}
	for {
		count, err := s.exchange(n.join, n.frames)
		if err != nil {
			return nil, err
		}
		if count == 1 {
			break
		}
		// Two frames: the reply to leave, and the wake.
		if _, err := s.exchange(n.leave, 2); err != nil {
			return nil, err
		}
	}
	return func() error {
		defer l.putSocket(s)
		_, err := s.exchange(n.handOver, 2)
		return err
	}, nil
}

func (l *rawLocker) Close() error {
	for {
		select {
		case s := <-l.idle:
			_ = s.close() // it has no unread data
		default:
			return nil
		}
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// The floors: what no library can do without, and what any could do with it.
const (
	floorPing  = "ping"
	floorHello = "hello"
	floorHand  = "hand"
)

// rawPeer is the least that a lock by subscription can do: subscribe and count,
// then unsubscribe.
func rawPeer() *peer {
	return &peer{
		library: floor, about: "SUBSCRIBE with NUMSUB in one write, then UNSUBSCRIBE; no safety beyond that",
		open: openRaw(floor),
	}
}

// floors are those that belong to single sections.
func floors() []*peer {
	return []*peer{
		{library: floor, setting: floorPing, about: "one PING", open: openRaw(floorPing)},
		{
			library: floor, setting: floorHello, open: openRaw(floorHello),
			about: "the pair with HELLO, which names the connection and tells the node's role",
		},
		handFloor(),
	}
}

// handFloor is a hand-over without a library.
func handFloor() *peer {
	return &peer{
		library: floor, setting: floorHand, open: openRaw(floorHand),
		about: "UNSUBSCRIBE with PUBLISH in one write; the push; SUBSCRIBE with NUMSUB in one write",
	}
}

// rawLocker has a socket for each lock that is held. It keeps those that are
// not.
type rawLocker struct {
	addr string
	kind string
	side int // of a hand-over
	idle chan *rawSocket

	mu    sync.Mutex
	names map[string]*rawName
}

// rawName is what is sent for one name.
type rawName struct {
	join, leave, hand []byte
	frames            int  // that answer a join
	listening         bool // on the own wake channel
}

// rawSockets are kept at most.
const rawSockets = 16384

func openRaw(kind string) func(place) (locker, error) {
	return func(at place) (locker, error) {
		l := &rawLocker{
			addr: at.Redis, kind: kind, side: at.Side, idle: make(chan *rawSocket, rawSockets), names: map[string]*rawName{},
		}
		s, err := l.socket(context.Background())
		if err != nil {
			return nil, err
		}
		l.keep(s)
		return l, nil
	}
}

func (l *rawLocker) socket(ctx context.Context) (*rawSocket, error) {
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

func (l *rawLocker) keep(s *rawSocket) {
	select {
	case l.idle <- s:
	default:
		_ = s.close() // there are more than anybody needs
	}
}

func (l *rawLocker) name(name string) *rawName {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.names[name]
	if n == nil {
		n = l.prepare(name)
		l.names[name] = n
	}
	return n
}

func (l *rawLocker) prepare(name string) *rawName {
	join := append(command("SUBSCRIBE", name), command("PUBSUB", "NUMSUB", name)...)
	n := &rawName{join: join, leave: command("UNSUBSCRIBE", name), frames: 2}
	switch l.kind {
	case floorPing:
		n.join, n.frames, n.leave = command("PING"), 1, nil
	case floorHello:
		holder := name + "-lock-0123456789abcdef0123456789abcdef"
		n.join, n.frames = append(n.join, command("HELLO", "3", "SETNAME", holder)...), 3
	case floorHand:
		n.hand = append(command("UNSUBSCRIBE", name), command("PUBLISH", wakeOf(name, 1-l.side), "wake")...)
	}
	return n
}

func wakeOf(name string, side int) string { return fmt.Sprintf("%s-wake-%d", name, side) }

var errTaken = errors.New("the name is taken: the floor does not wait")

func (l *rawLocker) Acquire(ctx context.Context, name string) (func() error, error) {
	s, err := l.socket(ctx)
	if err != nil {
		return nil, err
	}
	n := l.name(name)
	if l.kind == floorHand {
		return l.acquireByHand(s, name, n)
	}
	count, err := s.exchange(n.join, n.frames)
	if err != nil {
		return nil, err
	}
	if l.kind == floor && count != 1 {
		return nil, errTaken
	}
	return func() error {
		defer l.keep(s)
		if n.leave == nil {
			return nil
		}
		_, err := s.exchange(n.leave, 1)
		return err
	}, nil
}

// acquireByHand joins, and waits for a wake if somebody is there.
func (l *rawLocker) acquireByHand(s *rawSocket, name string, n *rawName) (func() error, error) {
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
		// What leaves is answered, and then a wake comes.
		if _, err := s.exchange(n.leave, 2); err != nil {
			return nil, err
		}
	}
	return func() error {
		defer l.keep(s)
		_, err := s.exchange(n.hand, 2)
		return err
	}, nil
}

func (l *rawLocker) Close() error {
	for {
		select {
		case s := <-l.idle:
			_ = s.close() // nothing depends on it
		default:
			return nil
		}
	}
}

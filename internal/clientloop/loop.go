// Package clientloop is the goroutine of a client. It owns what the locks of the
// client share: the connection pool, the registry of participants, and the watch
// over Sentinel's master. It does no I/O itself, so a message to it never waits
// long.
package clientloop

import (
	"context"
	"time"

	"github.com/tetherlock/tether/actor"
	"github.com/tetherlock/tether/internal/endpoint"
	"github.com/tetherlock/tether/wire"
)

// Loop is the goroutine, seen from outside. Key and Handle are those of
// [localqueue.Registry].
type Loop[Key, Handle comparable] struct {
	Endpoint *endpoint.Endpoint

	inbox  chan any
	done   chan struct{}
	ending context.Context // of what runs beside the goroutine, which waits for it
}

// New starts the goroutine of a client.
func New[Key, Handle comparable](e *endpoint.Endpoint) *Loop[Key, Handle] {
	ending, end := context.WithCancel(context.Background())
	l := &Loop[Key, Handle]{Endpoint: e, inbox: make(chan any), done: make(chan struct{}), ending: ending}
	go newState(l, end).run()
	return l
}

// The messages.
type (
	takeSocket struct{ reply chan<- *wire.Socket }
	// putSocket returns a socket to the pool, and says that a participant has
	// ended unless ended is nil.
	putSocket struct {
		socket *wire.Socket
		ended  *actor.Loop
	}
	closeIdle     struct{}
	socketRenamed struct{ socket *wire.Socket }

	register[Key, Handle any] struct {
		key    Key
		handle Handle
		loop   *actor.Loop
		reply  chan<- *actor.Loop
	}
	startOnce[Key any] struct {
		key       Key
		loop      *actor.Loop
		first     any
		elsewhere chan<- *actor.Loop
	}
	unregister[Handle any] struct {
		loop   *actor.Loop
		handle Handle
		last   chan<- bool
	}
	ended   struct{ loop *actor.Loop }
	barrier struct{ reply chan<- struct{} }

	watchMaster struct {
		addr  string
		every time.Duration
		moved chan error
	}
	unwatchMaster struct{ moved <-chan error }
	masterFound   struct{ addr string }

	// closeClient lets nothing register any more. The reply is the participants.
	closeClient struct{ reply chan<- []*actor.Loop }
	// dropped says that the handle of the client is gone.
	dropped struct{}
)

// send returns false when the goroutine has ended.
func (l *Loop[Key, Handle]) send(m any) bool {
	select {
	case l.inbox <- m:
		return true
	case <-l.done:
		return false
	}
}

// Done is closed when the client has ended.
func (l *Loop[Key, Handle]) Done() <-chan struct{} { return l.done }

// Take returns a clean idle socket, or nil.
func (l *Loop[Key, Handle]) Take() *wire.Socket {
	reply := make(chan *wire.Socket, 1)
	if !l.send(takeSocket{reply}) {
		return nil
	}
	return <-reply
}

// Put returns a clean socket to the pool. With a participant, that one has ended.
func (l *Loop[Key, Handle]) Put(s *wire.Socket, participant *actor.Loop) {
	if !l.send(putSocket{s, participant}) {
		s.Close()
	}
}

// CloseIdle closes the idle sockets. One of them was dead, and its cause may have
// ended all.
func (l *Loop[Key, Handle]) CloseIdle() { l.send(closeIdle{}) }

// Register adds a Lock to the participant of its key. It returns loop, which the
// caller starts, unless there was another one, and nil when the client is closed.
func (l *Loop[Key, Handle]) Register(key Key, h Handle, loop *actor.Loop) *actor.Loop {
	reply := make(chan *actor.Loop, 1)
	if !l.send(register[Key, Handle]{key, h, loop, reply}) {
		return nil
	}
	return <-reply
}

// StartOnce starts the participant of a one-shot call, whose first message is
// first, with an idle socket if there is one. Otherwise it delivers on elsewhere,
// which must have room, the participant that serves key already, or nil when the
// client is closed. It does not wait for either: a caller that waits for the answer
// to first is woken once and not twice.
func (l *Loop[Key, Handle]) StartOnce(key Key, loop *actor.Loop, first any, elsewhere chan<- *actor.Loop) {
	if !l.send(startOnce[Key]{key, loop, first, elsewhere}) {
		elsewhere <- nil
	}
}

// Barrier returns when all earlier messages of the caller have been handled.
func (l *Loop[Key, Handle]) Barrier() {
	reply := make(chan struct{}, 1)
	if l.send(barrier{reply}) {
		<-reply
	}
}

// Unregister removes a Lock, and says whether it was the last one of its
// participant.
func (l *Loop[Key, Handle]) Unregister(loop *actor.Loop, h Handle) (last bool) {
	reply := make(chan bool, 1)
	return l.send(unregister[Handle]{loop, h, reply}) && <-reply
}

// Ended says that a participant has ended.
func (l *Loop[Key, Handle]) Ended(loop *actor.Loop) { l.send(ended{loop}) }

// Watch returns a channel that tells when new connections reach another master than
// addr. It looks at the interval every. Without Sentinel it returns nil.
func (l *Loop[Key, Handle]) Watch(addr string, every time.Duration) (moved <-chan error) {
	if !l.Endpoint.Sentinel {
		return nil
	}
	m := watchMaster{addr, every, make(chan error, 1)}
	l.send(m)
	return m.moved
}

// Unwatch ends what Watch began.
func (l *Loop[Key, Handle]) Unwatch(moved <-chan error) { l.send(unwatchMaster{moved}) }

// Close lets nothing register any more, closes all participants and waits for the
// end of the goroutine. It returns false when that has ended before.
func (l *Loop[Key, Handle]) Close() bool {
	reply := make(chan []*actor.Loop, 1)
	if !l.send(closeClient{reply}) {
		return false
	}
	for _, participant := range <-reply {
		participant.Send(actor.Close{})
	}
	<-l.done
	return true
}

// Drop says that the handle of the client is gone: the goroutine ends with the last
// participant.
func (l *Loop[Key, Handle]) Drop() { l.send(dropped{}) }

package clientloop

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tetherlock/tether/actor"
	"github.com/tetherlock/tether/internal/localqueue"
	"github.com/tetherlock/tether/internal/pool"
	"github.com/tetherlock/tether/internal/sentinel"
	"github.com/tetherlock/tether/wire"
)

// state is what the goroutine owns.
type state[Key, Handle comparable] struct {
	*Loop[Key, Handle]
	end      context.CancelFunc
	renames  sync.WaitGroup
	pool     pool.Pool
	registry *localqueue.Registry[Key, Handle]
	master   sentinel.Watch
	closing  bool
	dropped  bool
	armed    time.Time // when the timer fires, zero if it does not
	timer    *time.Timer
}

func newState[Key, Handle comparable](l *Loop[Key, Handle], end context.CancelFunc) *state[Key, Handle] {
	return &state[Key, Handle]{
		Loop: l, end: end, registry: localqueue.NewRegistry[Key, Handle](),
		timer: time.NewTimer(pool.IdleLimit), armed: time.Now().Add(pool.IdleLimit),
	}
}

func (s *state[Key, Handle]) run() {
	defer close(s.done)
	defer s.timer.Stop()
	for !s.over() {
		select {
		case m := <-s.inbox:
			s.receive(m)
		case <-s.timer.C:
			s.armed = time.Time{}
		}
		s.tick(time.Now())
	}
	s.end()
	s.pool.CloseIf(pool.Any)
	s.renames.Wait()
}

// over says whether the client is closed or dropped and has no participant left.
func (s *state[Key, Handle]) over() bool { return (s.closing || s.dropped) && s.registry.Empty() }

// receive takes one message.
func (s *state[Key, Handle]) receive(m any) {
	switch m := m.(type) {
	case takeSocket:
		m.reply <- s.pool.Take()
	case putSocket:
		s.pool.Put(m.socket, time.Now(), true)
		s.registry.Ended(m.ended)
	case closeIdle:
		s.pool.CloseIf(pool.Any)
	case socketRenamed:
		s.pool.Put(m.socket, time.Now(), false)
	case register[Key, Handle]:
		m.reply <- s.register(m)
	case startOnce[Key]:
		s.startOnce(m)
	case unregister[Handle]:
		m.last <- s.registry.Remove(m.loop, m.handle)
	case ended:
		s.registry.Ended(m.loop)
	case barrier:
		m.reply <- struct{}{}
	case watchMaster:
		s.master.Add(time.Now(), m.addr, m.every, m.moved)
	case unwatchMaster:
		s.master.Remove(m.moved)
	case masterFound:
		s.master.Found(m.addr, actor.ErrMasterChanged)
		s.pool.CloseIf(func(k *wire.Socket) bool { return m.addr != "" && k.RemoteAddr() != m.addr })
	case closeClient:
		s.closing = true
		m.reply <- slices.Collect(s.registry.All())
	case dropped:
		s.dropped = true
	}
}

func (s *state[Key, Handle]) register(m register[Key, Handle]) *actor.Loop {
	if s.closing {
		return nil
	}
	loop := s.registry.Join(m.key, m.loop)
	s.registry.Add(loop, m.handle)
	return loop
}

func (s *state[Key, Handle]) startOnce(m startOnce[Key]) {
	if s.closing {
		m.elsewhere <- nil
		return
	}
	if loop := s.registry.Join(m.key, m.loop); loop != m.loop {
		m.elsewhere <- loop
		return
	}
	m.loop.Start(m.first, s.pool.Take())
}

// tick does what is due, and sets the timer. A timer that is too early stays: most
// messages change nothing about what is due next.
func (s *state[Key, Handle]) tick(now time.Time) {
	for _, k := range s.pool.Expire(now) {
		s.renames.Go(func() { s.rename(k) })
	}
	if s.master.Begin(now) {
		go func() { s.send(masterFound{s.Endpoint.Address(s.ending)}) }()
	}
	due := now.Add(max(0, min(s.pool.Wait(now), s.master.Wait(now))))
	if s.armed.IsZero() || due.Before(s.armed) {
		s.armed = due
		s.timer.Reset(due.Sub(now))
	}
}

// rename takes a lock's name off an idle socket, and returns it to the pool. The
// goroutine waits for it at its end, so it does not wait for the goroutine then.
func (s *state[Key, Handle]) rename(k *wire.Socket) {
	if !pool.Rename(k, s.ending.Done()) {
		k.Close()
		return
	}
	select {
	case s.inbox <- socketRenamed{k}:
	case <-s.ending.Done():
		k.Close()
	}
}

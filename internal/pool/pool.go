// Package pool is the connection pool of a client: clean sockets that no lock uses.
// Dialling for each attempt would make one-shot use and waiting expensive.
package pool

import (
	"slices"
	"time"

	"github.com/tetherlock/tether/wire"
)

const (
	// maxIdle bounds the pool.
	maxIdle = 64
	// IdleLimit is how long an idle socket is kept.
	IdleLimit = 30 * time.Second
	// nameLimit is how long an idle socket keeps its lock's name. It must be
	// short: peers reap a connection of that name that does not answer.
	nameLimit = 400 * time.Millisecond
	// renameLimit bounds the answer to a renaming.
	renameLimit = time.Second
)

// Pool is the idle sockets, the one used last at the end. It belongs to one
// goroutine.
type Pool struct{ idle []idleSocket }

type idleSocket struct {
	*wire.Socket
	since time.Time
	named bool // it still has a lock's name
}

// Take returns the socket that was used last, or nil. A socket on which the server
// has sent anything, its end above all, is closed instead.
func (p *Pool) Take() *wire.Socket {
	for len(p.idle) > 0 {
		last := len(p.idle) - 1
		s := p.idle[last].Socket
		p.idle = p.idle[:last]
		if s.Quiet() {
			return s
		}
		s.Close()
	}
	return nil
}

// Put takes a clean socket. Named says that it still has a lock's name. A full
// pool closes it.
func (p *Pool) Put(s *wire.Socket, now time.Time, named bool) {
	if len(p.idle) >= maxIdle {
		s.Close()
		return
	}
	p.idle = append(p.idle, idleSocket{s, now, named})
}

// CloseIf closes the sockets that the condition holds for.
func (p *Pool) CloseIf(condition func(*wire.Socket) bool) {
	p.idle = slices.DeleteFunc(p.idle, func(i idleSocket) bool {
		gone := condition(i.Socket)
		if gone {
			i.Close()
		}
		return gone
	})
}

// Any is the condition of [Pool.CloseIf] that holds for all sockets.
func Any(*wire.Socket) bool { return true }

// Expire closes the sockets that have been idle for too long. It removes those
// whose name must go, which the caller hands to [Rename], beside its goroutine.
func (p *Pool) Expire(now time.Time) (rename []*wire.Socket) {
	p.idle = slices.DeleteFunc(p.idle, func(i idleSocket) bool {
		switch idle := now.Sub(i.since); {
		case idle >= IdleLimit:
			i.Close()
			return true
		case i.named && idle >= nameLimit:
			rename = append(rename, i.Socket)
			return true
		}
		return false
	})
	return rename
}

// Wait is the time until Expire has something to do.
func (p *Pool) Wait(now time.Time) time.Duration {
	wait := IdleLimit
	for _, i := range p.idle {
		due := i.since.Add(IdleLimit)
		if i.named {
			due = i.since.Add(nameLimit)
		}
		wait = min(wait, due.Sub(now))
	}
	return wait
}

// Rename takes the lock's name off a socket and waits for the answer, for a second
// at most. It returns false for a socket that is of no use, or when done is closed:
// then the caller closes it.
func Rename(s *wire.Socket, done <-chan struct{}) bool {
	if s.Write(wire.AppendHello(nil, nil, wire.IdleName)) != nil {
		return false
	}
	select {
	case f := <-s.Frames():
		return f.Err == nil && len(f.Frames) == 1 && f.Frames[0].Kind == wire.Map
	case <-done:
	case <-time.After(renameLimit):
	}
	return false
}

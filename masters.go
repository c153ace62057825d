package tether

import (
	"context"
	"time"

	"github.com/tetherlock/tether/wire"
)

// masters compares, for clients that ask Sentinel, where a fresh connection
// ends up with where the locks are: the old master's connections are cut only
// long after a new one serves.
type masterWatch struct {
	watchers map[chan<- error]watcher
	last     time.Time
	dialing  bool
}

// watcher is a lock with a socket.
type watcher struct {
	addr  string        // of the master that it stands on
	every time.Duration // its health interval
}

func (w *masterWatch) add(moved chan<- error, who watcher) {
	if len(w.watchers) == 0 {
		w.last = time.Now() // the lock itself has just been there
	}
	w.watchers[moved] = who
}

func (w *masterWatch) wait(now time.Time) time.Duration {
	wait := idleLimit
	if w.dialing {
		return wait
	}
	for _, who := range w.watchers {
		wait = min(wait, w.last.Add(who.every).Sub(now))
	}
	return wait
}

// look dials, beside the hub, when the last look is an interval ago.
func (w *masterWatch) look(now time.Time, h *clientLoop) {
	if w.wait(now) > 0 {
		return
	}
	w.dialing, w.last = true, now
	go func() {
		ctx, cancel := context.WithTimeout(h.ending, h.endpoint.dialLimit)
		defer cancel()
		addr := ""
		if conn, err := h.endpoint.dial(ctx); err == nil {
			addr = wire.RemoteAddr(conn)
			_ = conn.Close() // it was only to see where it leads
		}
		h.send(masterAt{addr})
	}()
}

// found tells the locks that stand elsewhere. No answer tells nothing.
func (w *masterWatch) found(addr string) {
	w.dialing = false
	if addr == "" {
		return
	}
	for moved, who := range w.watchers {
		if who.addr != addr {
			select {
			case moved <- ErrMasterChanged:
			default: // told already
			}
		}
	}
}

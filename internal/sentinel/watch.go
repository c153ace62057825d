// Package sentinel notices that Sentinel has moved the master: it compares where a
// new connection ends up with where the locks are. The old master keeps its
// connections for about ten seconds after the new one serves, so the locks on it
// see no error.
package sentinel

import "time"

// Never is how long Wait returns when nothing is due.
const Never = time.Duration(1<<63 - 1)

// Watch is the locks that have a connection, and when the next look is due. It
// belongs to one goroutine, which dials.
type Watch struct {
	locks  map[<-chan error]lock
	last   time.Time // when the last look began
	asking bool
}

type lock struct {
	addr  string        // of the master that its connection leads to
	every time.Duration // its health interval
	since time.Time
	moved chan<- error
}

// Add watches for a lock whose connection leads to addr. A move is told on moved,
// which must have room for one error, within about the interval every.
func (w *Watch) Add(now time.Time, addr string, every time.Duration, moved chan error) {
	if len(w.locks) == 0 {
		w.locks = map[<-chan error]lock{}
		w.last = now // the lock itself has just dialled
	}
	w.locks[moved] = lock{addr, every, now, moved}
}

// Remove ends what Add began.
func (w *Watch) Remove(moved <-chan error) { delete(w.locks, moved) }

// Wait is the time until the next look is due.
func (w *Watch) Wait(now time.Time) time.Duration {
	wait := Never
	if w.asking {
		return wait
	}
	for _, l := range w.locks {
		wait = min(wait, w.last.Add(l.every).Sub(now))
	}
	return wait
}

// Begin says whether to look now. The outcome goes to Found; until then none
// further begins.
func (w *Watch) Begin(now time.Time) bool {
	if w.Wait(now) > 0 {
		return false
	}
	w.asking, w.last = true, now
	return true
}

// Found tells the locks that are connected elsewhere of the move, as err. An empty
// address, for a dial that failed, tells nothing.
func (w *Watch) Found(addr string, err error) {
	w.asking = false
	if addr == "" {
		return
	}
	for _, l := range w.locks {
		// A lock that dialled after the look began may be on a newer master.
		if l.addr != addr && !l.since.After(w.last) {
			select {
			case l.moved <- err:
			default: // told already
			}
		}
	}
}

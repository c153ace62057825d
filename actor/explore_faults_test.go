package actor

import (
	"errors"
	"time"

	"github.com/tetherlock/tether/protocol"
)

// meddle is what callers and the world do.
func (w *model) meddle() bool {
	num := w.rand.IntN(len(w.locks))
	if b := w.bodyOf(num); b.frozen {
		if !w.chance(w.winter) {
			return false
		}
		w.thaw(num)
		return true
	}
	if p := w.ports[num]; p != nil {
		return w.meddlePort(p)
	}
	l := w.locks[num]
	if l.stopped {
		l.renew()
	}
	if len(l.held) > 0 && w.chance(w.patience) {
		l.receive()
		return l.release()
	}
	n := w.rand.IntN(16)
	switch {
	case w.full || w.mood == traffic:
		return w.call(l, []int{0, 1, 2, 3, 4, 5, 7}[n%7])
	case w.mood == ice && w.chance(2):
		n = []int{10, 11, 13}[w.rand.IntN(3)]
	case w.mood == pauses && w.chance(2):
		return w.holdWrites()
	}
	if n < 10 {
		return w.call(l, n)
	}
	return w.disturb(l, n)
}

// mood is what mostly happens in a world.
type mood int

const (
	mixed   mood = iota
	traffic      // calls only: everybody comes and goes
	ice          // participants freeze, and links break
	pauses       // the server holds writes
)

// holdWrites begins a pause of writes, not close behind another one: two of
// them could hold the answers to both pings of a search for the silent.
func (w *model) holdWrites() bool {
	if w.now.Before(w.held.Add(3 * time.Second)) {
		return false
	}
	w.held = w.now.Add(time.Duration(w.rand.IntN(3000)) * time.Millisecond)
	w.note("writes wait until %v", w.held.Sub(dawn))
	return true
}

// call is what the callers of a lock do.
func (w *model) call(l *lock, n int) bool {
	switch {
	case n < 3:
		if len(l.open) > 3 || l.m.cfg.Once && len(l.open)+len(l.held)+len(l.leaving) > 0 {
			return false
		}
		l.acquire(w.chance(3))
		return true
	case n < 6:
		return l.release()
	case n == 6:
		return l.receive()
	case n == 7:
		return w.giveUp(l)
	case n == 8 && len(l.held) > 0:
		w.calls++
		l.asking = append(l.asking, w.calls)
		l.feed(CheckOwned{Hold: l.held[0].call, Call: w.calls})
		return true
	case n == 9 && !w.full && w.chance(8):
		l.feed([]Input{Close{}, Unreferenced{}}[w.rand.IntN(2)])
		return true
	default:
		return false
	}
}

// giveUp ends the context of a call, before or behind its grant.
func (w *model) giveUp(l *lock) bool {
	switch {
	case len(l.leaving) > 0 && w.chance(2) && !w.full:
		l.feed(Abandon{Hold: l.leaving[0], Cause: errGaveUp})
	case len(l.open) > 0:
		l.feed(Cancel{Call: l.open[w.rand.IntN(len(l.open))], Cause: errGaveUp})
	case len(l.held) > 0:
		l.feed(Cancel{Call: l.held[0].call, Cause: errGaveUp})
	default:
		return false
	}
	return true
}

// disturb is what else happens to a lock.
func (w *model) disturb(l *lock, n int) bool {
	switch {
	case n == 10 && l.conn != nil && w.chance(4):
		w.note("kill %s", w.title(l.conn))
		w.cut(l.conn)
	case n == 11 && l.conn != nil && w.chance(4):
		l.part()
	case n == 12 && l.dial != 0 && w.chance(4):
		dial := l.dial
		l.dial = 0
		l.feed(DialFailed{Dial: dial, Err: errors.New("refused")})
	case n == 12:
		return w.shake()
	case n == 13 && w.chance(2):
		w.freeze(l.num)
	case n == 14 && w.chance(4):
		w.junk()
	case n == 15 && l.conn != nil && l.conn.node != w.master:
		l.feed(MasterMoved{Err: errors.New("moved")})
	case n == 15 && l.conn != nil && w.chance(4):
		l.feed(Rotated{})
	default:
		return false
	}
	return true
}

func (w *model) meddlePort(p *port) bool {
	switch n := w.rand.IntN(12); {
	case n < 4 && p.stage == portIdle:
		p.acquire()
	case n < 8 && (p.stage == portHolding || p.stage != portIdle && w.chance(8)):
		p.release()
	case w.mood == traffic:
		return false
	case n == 8 && p.sub != nil && w.chance(4):
		w.note("kill %s", w.title(p.sub))
		w.cut(p.sub)
	case n > 8 && w.chance(2):
		w.freeze(p.num)
	default:
		return false
	}
	return true
}

func (w *model) freeze(num int) {
	w.note("freeze %d", num)
	w.bodyOf(num).frozen = true
}

func (w *model) thaw(num int) {
	w.note("thaw %d", num)
	b := w.bodyOf(num)
	b.frozen, b.thawed, b.iced = false, w.now, w.serial
}

// shake is what happens at the server.
func (w *model) shake() bool {
	switch n := w.rand.IntN(8); {
	case n == 0:
		w.note("the scripts are forgotten")
		w.known = [increment]bool{}
	case n == 1 && w.chance(4):
		w.note("the data is gone")
		w.fence = 0
	case n == 2:
		return w.holdWrites()
	case n == 3 && w.alone() && w.chance(8):
		// portalocker's four connections would part, which its users must
		// avoid.
		w.note("failover")
		w.failover()
	case n > 3 && len(w.conns) > 0:
		c := w.conns[w.rand.IntN(len(w.conns))]
		if !c.parked || !c.up {
			return false
		}
		w.note("kill %s", w.title(c))
		w.cut(c)
	default:
		return false
	}
	return true
}

// junk is what strangers publish. They may know the protocol.
func (w *model) junk() {
	stranger := protocol.Waiter{ID: "stranger", Want: protocol.Exclusive}
	for _, c := range w.conns {
		for _, channel := range c.subs {
			if !w.chance(4) {
				continue
			}
			switch {
			case channel == theChannel:
				w.push(c, Pinged{protocol.Ping{Response: "junk", ID: "stranger", Want: protocol.Exclusive, First: w.chance(2)}}, nobody)
			case channel == theWaiters:
				w.push(c, Woken{protocol.Wake{Readers: true}}, nobody)
			case channel == wakeChannel(c.id):
				w.push(c, Woken{protocol.Wake{Queue: protocol.Queue{stranger}}}, nobody)
			default:
				w.push(c, Answered{Response: channel, Record: protocol.Record{Mode: protocol.Exclusive, Legacy: true}}, nobody)
			}
		}
	}
}

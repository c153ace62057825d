package actor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// model is several locks of one name, peers of other kinds, and a Redis
// between them. Nothing happens in it by itself: whoever explores it chooses
// which connection is served or read next, and how time passes.
type model struct {
	redis
	rand     *rand.Rand
	now      time.Time
	lag      time.Duration // how long a healthy connection may take, 0 for no bound
	mood     mood
	late     bool    // healthy ones may be late for long
	locks    []*lock // by number of the participant, nil for a peer
	ports    []*port // by number of the participant, nil for a lock
	patience int     // of a holder, before it releases
	winter   int     // how long somebody stays frozen
	names    int
	calls    int
	steps    int
	small    *small // what is left of a world that is explored as a whole
	grants   int
	token    int64 // the highest that was granted
	reaped   int
	calm     bool // no more faults
	full     bool // no crashes, and the poll is off

	last int64 // connection that was used last

	logging bool
	log     []string
}

// body is what all participants have.
type body struct {
	w      *model
	num    int
	clock  time.Duration // how far it is ahead, in a world without common time
	frozen bool
	thawed time.Time
	iced   int // serial of the last moment at which it was frozen
}

// now is the time of a participant.
func (b *body) now() time.Time { return b.w.now.Add(b.clock) }

// defect is a promise that was broken.
type defect struct{ text string }

func (w *model) fail(format string, args ...any) {
	panic(defect{fmt.Sprintf(format, args...)})
}

func (w *model) note(format string, args ...any) {
	if w.logging {
		w.log = append(w.log, fmt.Sprintf("%6d %9v  ", w.steps, w.now.Sub(dawn))+fmt.Sprintf(format, args...))
	}
}

var dawn = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// idTail makes a holder id of its first eight digits.
var idTail = strings.Repeat("0", 24)

func short(id string) string { return strings.TrimSuffix(id, idTail) }

func (w *model) title(c *conn) string {
	return fmt.Sprintf("connection %d of %d (%s)", c.num, c.owner, short(c.id))
}

func (w *model) chance(oneIn int) bool { return w.rand != nil && w.rand.IntN(oneIn) == 0 }

func (w *model) jitter() float64 {
	if w.rand == nil {
		return 0.5
	}
	return w.rand.Float64()
}

func (w *model) name(prefix string) string {
	w.names++
	return fmt.Sprintf("%s%d", prefix, w.names)
}

func (w *model) newID(num int) string {
	if w.small != nil {
		w.small.dials[num]++
		return fmt.Sprintf("%04x%04x", w.small.order[num], w.small.dials[num]) + idTail
	}
	return fmt.Sprintf("%08x", w.rand.Uint32()) + idTail
}

func (w *model) bodyOf(num int) *body {
	switch {
	case num < 0:
		return nil
	case w.locks[num] != nil:
		return &w.locks[num].body
	default:
		return &w.ports[num].body
	}
}

// deliverable says whether a participant can read from a connection.
func (w *model) deliverable(c *conn) bool {
	return len(c.out) > 0 && c.owner >= 0 && !w.bodyOf(c.owner).frozen
}

// deliver gives a participant the next of what it has yet to read.
func (w *model) deliver(c *conn) {
	g := c.out[0]
	c.out = c.out[1:]
	if l := w.locks[c.owner]; l != nil {
		l.take(c, g)
		return
	}
	w.ports[c.owner].take(c, g)
}

func (w *model) deadline(num int) time.Time {
	if l := w.locks[num]; l != nil {
		return l.m.Deadline()
	}
	return w.ports[num].wake
}

func (w *model) tick(num int) {
	if l := w.locks[num]; l != nil {
		l.tick()
		return
	}
	w.ports[num].tick()
}

// horizon is how far time may go on while everybody who is healthy is served
// in time. The zero time is no bound.
func (w *model) horizon() time.Time {
	var at time.Time
	until := func(t time.Time) {
		if t = t.Add(w.lag); at.IsZero() || t.Before(at) {
			at = t
		}
	}
	for _, c := range w.conns {
		if len(c.in) > 0 && c.up {
			t := c.in[0].at
			if writes(c.in[0].command.Op) && t.Before(w.held) {
				t = w.held
			}
			until(t)
		}
		if w.deliverable(c) {
			t := c.out[0].at
			if thawed := w.bodyOf(c.owner).thawed; t.Before(thawed) {
				t = thawed
			}
			until(t)
		}
	}
	for num := range w.locks {
		if b := w.bodyOf(num); !b.frozen {
			if t := w.deadline(num); !t.IsZero() {
				if t.Before(b.thawed) {
					t = b.thawed
				}
				until(t)
			}
		}
	}
	return at
}

// pass lets time go on, as far as that is possible.
func (w *model) pass(to time.Time) {
	if w.lag > 0 {
		if at := w.horizon(); !at.IsZero() && at.Before(to) {
			to = at
		}
	}
	if to.After(w.now) {
		w.now = to
	}
}

// busy says whether anything is under way.
func (w *model) busy() bool {
	return slices.ContainsFunc(w.conns, func(c *conn) bool { return w.ready(c) || w.deliverable(c) })
}

// alone says whether there are no peers of another kind.
func (w *model) alone() bool {
	return !slices.ContainsFunc(w.ports, func(p *port) bool { return p != nil })
}

// Package dispatch delivers a client's events to its observer and logger on a
// goroutine of its own. Either may take its time, and a lock waits for neither.
package dispatch

import "time"

const (
	// buffer is how many events wait before the next ones are dropped.
	buffer = 1024
	// reserve is room beyond it for what a lock that ends has to tell: how many
	// of its events were dropped.
	reserve = 1024
	// waitLimit bounds Wait.
	waitLimit = time.Second
)

// Dispatcher delivers events in order, one at a time.
type Dispatcher[Event any] struct {
	deliver func(Event)
	events  chan Event
	ending  <-chan struct{} // no further event comes
	done    chan struct{}
}

// New starts a dispatcher. It ends when ending is closed and all events are
// delivered. Deliver may block and may call runtime.Goexit, as a failing test
// does, but must not panic.
func New[Event any](deliver func(Event), ending <-chan struct{}) *Dispatcher[Event] {
	d := &Dispatcher[Event]{deliver, make(chan Event, buffer+reserve), ending, make(chan struct{})}
	go d.run()
	return d
}

// Offer takes an event without waiting. It returns false when there is no room.
func (d *Dispatcher[Event]) Offer(e Event) bool { return len(d.events) < buffer && d.OfferReserved(e) }

// OfferReserved is Offer that may use the reserve.
func (d *Dispatcher[Event]) OfferReserved(e Event) bool {
	select {
	case d.events <- e:
		return true
	default:
		return false
	}
}

// Wait waits until all is delivered, for a second at most: deliver may block, and
// may be who waits here.
func (d *Dispatcher[Event]) Wait() {
	select {
	case <-d.done:
	case <-time.After(waitLimit):
	}
}

func (d *Dispatcher[Event]) run() {
	finished := false
	defer func() {
		if finished {
			close(d.done)
			return
		}
		go d.run() // deliver has called runtime.Goexit
	}()
	for e, ok := d.next(); ok; e, ok = d.next() {
		d.deliver(e)
	}
	finished = true
}

// next returns false when all is delivered.
func (d *Dispatcher[Event]) next() (e Event, ok bool) {
	select {
	case e = <-d.events:
		return e, true
	case <-d.ending:
	}
	select {
	case e = <-d.events:
		return e, true
	default:
		return e, false
	}
}

package actor

import "time"

// departure is a lock on its way off the channel, and what comes behind.
type departure struct {
	within   time.Duration // until the socket is closed instead
	until    time.Time
	refusal  *Refusal // ends the served call, or the reclaimed one
	returned Call     // whose grant nobody received
	pause    time.Duration
	look     bool
}

// hasten lets a departure take no longer than a duration from now on.
func (d *departure) hasten(now time.Time, within time.Duration) {
	if until := now.Add(within); until.Before(d.until) {
		d.until = until
	}
}

// depart leaves the channel. Until the server has confirmed it, pings come
// and are answered, as pending.
func (m *Machine) depart(d departure) {
	m.withdraw()
	m.phase = leaving
	if d.within == 0 {
		d.within = unavailable
	}
	d.until = m.now.Add(d.within)
	m.leave = d
	list := m.unsubscribes("")
	if d.look {
		// A sleeper keeps its socket for longer than its name may stay.
		list = append(list, Command{Op: Hello, Naming: IdleName})
	}
	m.send(list...)
}

// left goes on behind a departure. Err says why it was not confirmed.
func (m *Machine) left(err error) {
	d := m.leave
	m.leave = departure{}
	if m.hold.ending {
		m.returned(d, err)
		return
	}
	switch {
	case d.refusal != nil:
		m.refuse(*d.refusal)
	default:
		m.sleep(d.pause, d.look)
	}
}

// returned ends a hold that was given back or closed.
func (m *Machine) returned(d departure, err error) {
	m.phase = resting
	m.tidy()
	if m.hold.loss == nil {
		m.notify(GaveBack{ID: m.hold.id, Err: err})
		m.do(Released{Hold: m.hold.call, Err: err})
	}
	m.hold = hold{}
	if d.refusal != nil {
		m.do(Refuse{d.returned, *d.refusal})
	}
	m.rest()
}

// Package actor is one lock: a pure state machine and the goroutine that
// feeds it.
//
// [Machine] owns all state of a lock. [Machine.Step] takes one input and the
// time, and returns the effects to perform, in order; [Machine.Deadline] says
// when it wants a [Tick]. It does no I/O and reads no clock, so every run can
// be written down and replayed (see testdata).
//
// [Loop] is the goroutine: it turns messages, frames and the passing of time
// into inputs and performs the effects.
package actor

import (
	"slices"
	"time"

	"github.com/tetherlock/tether/protocol"
)

// State is where a lock is in its life, as its users see it.
type State uint8

const (
	// Idle holds nothing and wants nothing.
	Idle State = iota
	// Acquiring wants the lock.
	Acquiring
	// Held holds it.
	Held
	// HoldLost is idle after a hold that ended without a release.
	HoldLost
)

// String returns the state's name.
func (s State) String() string {
	switch s {
	case Idle:
		return "idle"
	case Acquiring:
		return "acquiring"
	case Held:
		return "held"
	case HoldLost:
		return "lost"
	default:
		return "unknown"
	}
}

// Config is what a machine is born with.
type Config struct {
	// Channel is the lock's name and channel.
	Channel string
	// Response makes the name of a response channel that was never used.
	Response func() string
	// Jitter returns a random number in [0, 1).
	Jitter func() float64
	// Health is the time between two health checks of a hold.
	Health time.Duration
	// Reply is how long a reply may take, outside a hold.
	Reply time.Duration
	// Renewable says that a login can be tried again with fresh credentials.
	Renewable bool
	// Once ends the lock when its first acquire and what comes of it are over.
	Once bool
}

const (
	// unavailable is how long a participant may take to answer a ping before
	// it counts as silent; portalocker peers have the same default.
	unavailable = time.Second
	// recount is the time between two counts while records are missing: a
	// participant that got the ping and left will not answer any more.
	recount = 20 * time.Millisecond
	// poll is the time between two looks of a waiter, before jitter.
	poll = 100 * time.Millisecond
	// looks is how many polls it takes until one is a whole attempt, which
	// sees what a count cannot: who holds, and whether it still answers.
	looks = 8
	// tryLimit bounds a try, also one without a deadline.
	tryLimit = 3 * unavailable
	// healthLimit bounds the answer to a health check.
	healthLimit = 5 * time.Second
	// leaveLimit bounds how long leaving waits for its confirmation before
	// the socket is closed, which leaves just as well.
	leaveLimit = 5 * time.Second
	// warmLimit bounds the first answer on a socket that was idle.
	warmLimit = 500 * time.Millisecond
	// cancelLimit is the same as leaveLimit for a caller whose context has ended already.
	cancelLimit = 100 * time.Millisecond
	// linger is how long an idle lock keeps its socket, and with it the name:
	// peers take a silent socket of that name for a crashed holder.
	linger = 250 * time.Millisecond
)

type phase uint8

const (
	resting    phase = iota // no call is served
	dialing                 // waits for a socket
	joining                 // has sent SUBSCRIBE and the count
	electing                // probes while pending
	elected                 // stays on the channel, probes again later
	confirming              // probes while exclusive
	doubting                // exclusive, probes again in a moment
	leaving                 // waits for the confirmation that it has left
	sleeping                // off the channel, tries again later
	holding                 // has granted
)

// Machine is the state of one lock. It is not safe for concurrent use: one
// goroutine owns it.
type Machine struct {
	cfg   Config
	now   time.Time
	out   []Effect
	phase phase
	state State

	link  link
	mode  protocol.Mode // of the own record
	chief bool          // the own record says elected
	calls []Acquire     // in order of arrival; the first is served
	serve service
	probe probe
	leave departure
	hold  hold

	orphan  bool
	closing bool
}

// service is what is known about the acquire being served.
type service struct {
	began   time.Time
	trips   int               // round trips of the attempt under way
	failed  int               // attempts in a row that ended with an error
	renewed bool              // fresh credentials have been tried
	trouble error             // of the last failed attempt
	holders []protocol.Record // seen last
	silent  int
	looks   int
	wake    time.Time // when sleeping or elected ends
	look    bool      // waking up begins with a count
	asked   time.Time // when the count was sent; zero when none is out
}

// NewMachine returns an idle machine.
func NewMachine(cfg Config) *Machine {
	return &Machine{cfg: cfg, mode: protocol.Pending, orphan: cfg.Once}
}

// State returns where the lock is.
func (m *Machine) State() State { return m.state }

// Step takes one input at a time that never goes back, and returns what is to
// be done. The slice is valid until the next call.
func (m *Machine) Step(now time.Time, in Input) []Effect {
	m.now = now
	m.out = m.out[:0]
	switch in := in.(type) {
	case Acquire, Cancel, Reclaimed, Release, Abandon, Close, Orphan:
		m.asked(in)
	case Tick:
		m.tick()
	default:
		m.heard(in)
	}
	return m.out
}

// asked takes what callers want.
func (m *Machine) asked(in Input) {
	switch in := in.(type) {
	case Acquire:
		m.acquire(in)
	case Cancel:
		m.cancel(in)
	case Reclaimed:
		m.reclaimed(in)
	case Release:
		m.release(in)
	case Abandon:
		m.abandon(in)
	case Close:
		m.close()
	case Orphan:
		m.orphan = true
		m.rest()
	}
}

// do adds an effect.
func (m *Machine) do(e Effect) { m.out = append(m.out, e) }

// notify adds an event.
func (m *Machine) notify(e Event) { m.do(Notify{e}) }

// jittered scales a duration to between one half and one and a half of it, so
// that those who started together do not go on together.
func (m *Machine) jittered(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.5 + m.cfg.Jitter()))
}

func (m *Machine) acquire(in Acquire) {
	switch {
	case m.closing:
		m.do(Refuse{in.Call, Refusal{Why: Shut, Cause: ErrClosed}})
	case in.Try && (m.phase == holding || len(m.calls) > 0 || m.hold.ending):
		m.do(Refuse{in.Call, m.refusal(Contended, nil)})
	default:
		m.calls = append(m.calls, in)
		if m.phase == resting {
			m.begin()
		}
	}
}

// refusal describes the present view of who is in the way.
func (m *Machine) refusal(why Why, cause error) Refusal {
	r := Refusal{Why: why, Cause: cause, Self: m.phase == holding || m.hold.ending}
	if !r.Self {
		r.Holders = m.serve.holders
		r.Trouble, r.Silent = m.serve.trouble, m.serve.silent
	}
	return r
}

// begin serves the first call.
func (m *Machine) begin() {
	m.state = Acquiring
	m.serve = service{began: m.now}
	m.attempt()
}

// rest is where every call ends: the next one is served, or the lock idles.
func (m *Machine) rest() {
	if m.phase != resting {
		return
	}
	switch {
	case m.closing:
		m.stop()
	case len(m.calls) > 0:
		m.begin()
	case m.orphan:
		m.stop()
	default:
		if m.state == Acquiring {
			m.state = Idle
		}
		m.link.until = m.now.Add(linger)
	}
}

// stop ends the loop. Whoever has come last is answered first.
func (m *Machine) stop() {
	for _, call := range m.calls {
		m.do(Refuse{call.Call, Refusal{Why: Shut, Cause: ErrClosed}})
	}
	m.calls = nil
	if m.state != HoldLost {
		m.state = Idle
	}
	m.putAway()
	m.do(Stop{})
}

// refuse ends the served call with an error. The lock is off the channel.
func (m *Machine) refuse(r Refusal) {
	call := m.answer()
	m.phase = resting
	m.tidy()
	m.do(Refuse{call, r})
	m.rest()
}

// answer takes the served call, which is about to be answered.
func (m *Machine) answer() Call {
	call := m.calls[0].Call
	m.calls = slices.Delete(m.calls, 0, 1)
	return call
}

// tidy puts the socket away before the last caller is answered: whoever asks
// for the lock again right then is to find it.
func (m *Machine) tidy() {
	if m.orphan && len(m.calls) == 0 {
		m.putAway()
	}
}

func (m *Machine) cancel(in Cancel) {
	if m.hold.call == in.Call && m.phase == holding {
		m.do(Reclaim(in))
		return
	}
	i := slices.IndexFunc(m.calls, func(a Acquire) bool { return a.Call == in.Call })
	switch {
	case i < 0: // answered already
	case i > 0 || m.phase == holding || m.hold.ending:
		m.calls = slices.Delete(m.calls, i, i+1)
		m.do(Refuse{in.Call, m.refusal(Cancelled, in.Cause)})
	default:
		m.giveUp(m.refusal(Cancelled, in.Cause), cancelLimit)
	}
}

// giveUp ends the served call wherever it stands.
func (m *Machine) giveUp(r Refusal, within time.Duration) {
	switch m.phase {
	case dialing:
		m.do(CancelDial{})
		m.refuse(r)
	case sleeping:
		m.refuse(r)
	case joining, electing, elected, confirming, doubting:
		m.depart(departure{within: within, refusal: &r})
	case leaving:
		m.leave.refusal = &r
		m.leave.hasten(m.now, within)
	case resting, holding:
	}
}

func (m *Machine) close() {
	if m.closing {
		return
	}
	m.closing = true
	served := m.phase != resting && m.phase != holding && !m.hold.ending
	waiting := m.calls
	if served {
		waiting = waiting[1:]
	}
	for _, call := range waiting {
		m.do(Refuse{call.Call, Refusal{Why: Shut, Cause: ErrClosed}})
	}
	m.calls = m.calls[:len(m.calls)-len(waiting)]
	switch {
	case m.phase == holding:
		m.do(Reclaim{m.hold.call, ErrClosed})
		m.endHold(ErrClosed)
		m.depart(departure{within: unavailable})
	case served:
		m.giveUp(Refusal{Why: Shut, Cause: ErrClosed}, unavailable)
	case m.hold.ending:
		m.leave.hasten(m.now, unavailable)
	default:
		m.rest()
	}
}

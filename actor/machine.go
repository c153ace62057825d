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
	// Waiters is the channel that sleepers are subscribed to.
	Waiters string
	// WakeChannel is the name of the channel on which the socket of a holder
	// id is woken.
	WakeChannel func(id string) string
	// Response makes the name of a response channel that was never used.
	Response func() string
	// Jitter returns a random number in [0, 1).
	Jitter func() float64

	// Shared takes the lock as a reader.
	Shared bool
	// Fenced draws a token for every hold, from the counter in database DB.
	Fenced bool
	DB     int
	// Label is what the record calls the lock's user.
	Label string

	// Health is the time between two health checks of a hold.
	Health time.Duration
	// SelfCheck is the time between two pings of a hold to itself, 0 for none.
	SelfCheck time.Duration
	// Unavailable is how long a participant may take to answer a ping before
	// it counts as silent.
	Unavailable time.Duration
	// Poll is the time between two looks of a single waiter.
	Poll time.Duration
	// MaxWait bounds how long an acquire waits, 0 for no bound.
	MaxWait time.Duration
	// Reply is how long a reply may take, outside a hold.
	Reply time.Duration
	// Renewable says that a login can be tried again with fresh credentials.
	Renewable bool
	// Observed says whether anybody listens to events now, nil for always.
	Observed func() bool
	// Once ends the lock when its first acquire and what comes of it are over.
	Once bool
}

const (
	// recount is the time between two counts while records are missing: a
	// participant that got the ping and left will not answer any more.
	recount = 20 * time.Millisecond
	// looks is how many polls it takes until one is a whole attempt, which
	// sees what a count cannot: who holds, and whether it still answers.
	pollsPerProbe = 8
	// tryTimeouts bounds a try, also one without a deadline, in times that a
	// participant may take to answer.
	tryTimeouts = 3
	// healthLimit bounds the answer to a health check.
	healthLimit = 5 * time.Second
	// departLimit bounds how long leaving waits for its confirmation before
	// the socket is closed, which leaves just as well.
	departLimit = time.Second
	// leaveLimit is the same for a release.
	leaveLimit = 5 * time.Second
	// cancelLimit is the same for a caller whose context has ended already.
	cancelLimit = 100 * time.Millisecond
	// warmLimit bounds the first answer on a socket that was idle.
	warmLimit = 500 * time.Millisecond
	// linger is how long an idle lock keeps its socket, and with it the name:
	// peers take a silent socket of that name for a crashed holder.
	parkDelay = 250 * time.Millisecond
)

type phase uint8

const (
	resting      phase = iota // no call is served
	dialing                   // waits for a socket
	joining                   // has sent SUBSCRIBE and the count
	electing                  // probes while pending, or as a joining reader
	elected                   // stays on the channel, probes again later
	confirming                // probes while exclusive
	reconfirming              // exclusive, probes again in a moment
	leaving                   // waits for the confirmation that it has left
	sleeping                  // off the channel, tries again later
	holding                   // has granted
)

// Machine is the state of one lock. It is not safe for concurrent use: one
// goroutine owns it.
type Machine struct {
	cfg       Config
	now       time.Time
	crowdSize int // on the channel are too many to ask at once
	out       []Effect
	phase     phase
	state     State

	link      link
	mode      protocol.Mode // of the own record
	joining   bool          // the own record is a reader's that does not hold
	isElected bool          // the own record says elected
	calls     callQueue     // the first is served
	current   currentCall
	probe     probe
	reaper    reaper
	queue     protocol.Queue // of those who wait for this lock to leave
	leave     departure
	hold      hold

	unreferenced bool
	closing      bool
}

// service is what is known about the acquire being served.
type currentCall struct {
	began          time.Time
	roundTrips     int               // round trips of the attempt under way
	failures       int               // attempts in a row that ended with an error
	renewed        bool              // fresh credentials have been tried
	lastErr        error             // of the last failed attempt
	holders        []protocol.Record // seen last
	place          int               // in their queue
	silence        silence
	polls          int
	wake           time.Time // when sleeping or elected ends
	pollFirst      bool      // waking up begins with a count
	pollSent       time.Time // when the count was sent; zero when none is out
	slept          bool
	carriesWake    bool // it carries a wake, and the queue with it
	queueDelivered bool // whoever is in the way has the queue
	retryAtOnce    bool // a wake has come in the middle of an attempt
	readersWoken   bool // all readers were woken
	crowdBackoffs  int  // how often it has made room for a crowd
}

// silence is what is known about participants that do not answer.
type silence struct {
	count   int
	conns   []Connection
	tried   ReapState
	reapErr error     // why they could not be ended
	askedAt time.Time // when they were asked, the first time if they are searched for
}

// NewMachine returns an idle machine.
func NewMachine(cfg Config) *Machine {
	m := &Machine{cfg: cfg, crowdSize: defaultCrowdSize, unreferenced: cfg.Once}
	m.withdrawClaims()
	return m
}

// State returns where the lock is.
func (m *Machine) State() State { return m.state }

// Step takes one input at a time that never goes back, and returns what is to
// be done. The slice is valid until the next call.
func (m *Machine) Step(now time.Time, in Input) []Effect {
	m.now = now
	m.out = m.out[:0]
	switch in := in.(type) {
	case Acquire, Cancel, Reclaimed, Release, Abandon, CheckOwned, Close, Unreferenced:
		m.callerInput(in)
	case Tick:
		m.tick()
	default:
		m.socketInput(in)
	}
	return m.out
}

// asked takes what callers want.
func (m *Machine) callerInput(in Input) {
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
	case CheckOwned:
		m.checkOwned(in)
	case Close:
		m.close()
	case Unreferenced:
		m.unreferenced = true
		m.rest()
	}
}

// do adds an effect.
func (m *Machine) do(e Effect) { m.out = append(m.out, e) }

// notify adds an event of the call that is served, or of the hold.
func (m *Machine) notify(e Event) { m.tell(m.subject(), e) }

// tell adds an event of a call.
func (m *Machine) tell(call Call, e Event) {
	if m.cfg.Observed == nil || m.cfg.Observed() {
		m.do(Notify{e, call})
	}
}

// subject is the call that all is about, nil if there is no single one.
func (m *Machine) subject() Call {
	switch {
	case m.phase == holding && len(m.hold.calls) == 1:
		return m.hold.calls[0]
	case m.served():
		return m.calls[0].Call
	}
	return nil
}

// want is what the lock is taken for.
func (m *Machine) want() protocol.Mode {
	if m.cfg.Shared {
		return protocol.Shared
	}
	return protocol.Exclusive
}

func (m *Machine) acquire(in Acquire) {
	switch {
	case m.closing:
		m.do(Refuse{in.Call, Refusal{Reason: LockClosed, Cause: ErrClosed}})
	case m.canAdmitReader():
		m.admitReader(in.Call)
	case in.Try && (m.phase == holding || len(m.calls) > 0 || m.hold.ending):
		m.noteUnheard()
		m.do(Refuse{in.Call, m.refusal(Contended, nil)})
	default:
		m.calls = append(m.calls, pendingCall{in, m.now, limit(m.now, in, m.cfg.MaxWait, tryTimeouts*m.cfg.Unavailable)})
		switch m.phase {
		case resting:
			m.begin()
		case holding:
			m.checkWriters()
		case dialing, joining, electing, elected, confirming, reconfirming, leaving, sleeping:
		}
	}
}

// refusal describes the present view of who is in the way.
func (m *Machine) refusal(why Reason, cause error) Refusal {
	r := Refusal{Reason: why, Cause: cause, OwnHold: m.phase == holding || m.hold.ending}
	if r.OwnHold {
		r.Holders = []protocol.Record{m.holder()}
	} else {
		r.Holders, r.LastErr = m.current.holders, m.current.lastErr
		s := m.current.silence
		r.Silent, r.SilentConns, r.ReapState, r.ReapErr = s.count, s.conns, s.tried, s.reapErr
		if s.count > 0 {
			r.SilentFor, r.Unavailable = m.now.Sub(s.askedAt), m.unavailable()
		}
		if s.tried == Searching && m.reaper.pings == 0 {
			r.ReapState = NotSearched // the attempt failed in the middle of it
		}
	}
	return r
}

// noteUnheard keeps who has not answered the probe that is under way, before a
// call ends in the middle of it.
func (m *Machine) noteUnheard() {
	r := &m.reaper
	searching := r.pings > 0 && !r.done
	switch {
	case !m.phase.probing(), m.probe.n < 0, m.missingAnswers() == 0:
	case r.err != nil:
		m.noteSilent(ReapRefused)
	case searching:
		m.noteSilent(Searching)
	case m.now.Before(m.probe.lastAnswer.Add(m.unavailable() / 10)): // nobody is late yet
	default:
		m.noteSilent(NotSearched)
	}
}

// begin serves the first call.
func (m *Machine) begin() {
	m.state = Acquiring
	m.current = currentCall{began: m.now, polls: int(m.cfg.Jitter() * pollsPerProbe)}
	if m.link.queued && !m.calls[0].Try {
		// Its place in the queue is older than this call. Whoever was woken
		// instead has yet to read so, and would find the lock taken each time.
		m.link.queued = false
		m.tell(m.calls[0].Call, Waiting{})
		m.sleep(m.pollPause(1), true)
		return
	}
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
	case m.unreferenced && !m.link.queued:
		m.stop()
	default:
		// With a place in the queue it is worth while to wait for the next
		// call a little, also for a lock that nobody has a handle of.
		if m.state == Acquiring {
			m.state = Idle
		}
		m.link.idleUntil = m.now.Add(parkDelay)
	}
}

// stop ends the loop. Whoever has come last is answered first.
func (m *Machine) stop() {
	for _, call := range m.calls {
		m.do(Refuse{call.Call, Refusal{Reason: LockClosed, Cause: ErrClosed}})
	}
	m.calls = nil
	if m.state != HoldLost {
		m.state = Idle
	}
	m.parkOrClose(false)
	m.do(Stop{})
}

// refuse ends the served call with an error. The lock is off the channel.
func (m *Machine) refuse(r Refusal) {
	call := m.calls.take(0)
	m.phase = resting
	m.current, m.queue = currentCall{}, nil
	m.parkEarly()
	m.do(Refuse{call, r})
	m.rest()
}

// tidy puts the socket away before the last caller is answered: whoever asks
// for the lock again right then is to find it.
func (m *Machine) parkEarly() {
	if m.unreferenced && len(m.calls) == 0 && !m.link.queued {
		m.parkOrClose(true)
	}
}

// served says whether the first call is being served.
func (m *Machine) served() bool {
	return len(m.calls) > 0 && m.phase != resting && m.phase != holding && !m.hold.ending
}

func (m *Machine) cancel(in Cancel) {
	if m.phase == holding && m.hold.of(in.Call) {
		m.do(Reclaim(in))
		return
	}
	m.noteUnheard()
	switch i := m.calls.find(in.Call); {
	case i < 0: // answered already
	case i == 0 && m.served():
		m.giveUp(m.refusal(Cancelled, in.Cause), cancelLimit)
	default:
		m.do(Refuse{m.calls.take(i), m.refusal(Cancelled, in.Cause)})
	}
}

// expire ends calls that have waited for as long as they may.
func (m *Machine) expire() {
	for len(m.calls) > 0 && m.due(m.expiry()) {
		m.noteUnheard()
		r := m.refusal(Expired, nil)
		if m.calls[0].Try {
			r = m.tryRefusal()
		}
		if m.served() {
			m.giveUp(r, cancelLimit)
			return
		}
		m.do(Refuse{m.calls.take(0), r})
	}
}

// giveUp ends the served call wherever it stands.
func (m *Machine) giveUp(r Refusal, within time.Duration) {
	switch m.phase {
	case dialing:
		m.do(CancelDial{})
		m.refuse(r)
	case sleeping:
		if !m.link.up {
			m.refuse(r)
			return
		}
		m.depart(departure{within: within, refusal: &r})
	case joining, electing, elected, confirming, reconfirming:
		m.depart(departure{within: within, refusal: &r})
	case leaving:
		m.leave.refusal = &r
		m.leave.shorten(m.now, within)
		m.giveUpPlace()
	case resting, holding:
	}
}

func (m *Machine) close() {
	if m.closing {
		return
	}
	m.closing = true
	served := m.served()
	var kept callQueue
	for i, call := range m.calls {
		if i == 0 && served {
			kept = m.calls[:1]
			continue
		}
		m.do(Refuse{call.Call, Refusal{Reason: LockClosed, Cause: ErrClosed}})
	}
	m.calls = kept
	switch {
	case m.phase == holding:
		for _, call := range m.hold.calls {
			m.do(Reclaim{call, ErrClosed})
		}
		m.endHold(ErrClosed)
		m.depart(departure{within: departLimit})
	case served:
		m.giveUp(Refusal{Reason: LockClosed, Cause: ErrClosed}, departLimit)
	case m.phase == leaving:
		m.leave.shorten(m.now, departLimit)
		m.giveUpPlace()
	default:
		m.rest()
	}
}

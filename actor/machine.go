// Package actor is one lock: a pure state machine and the goroutine that
// feeds it.
//
// [Machine] owns all state of a presence lock. [Machine.Step] takes one input
// and the time, and returns the effects to perform, in order;
// [Machine.Deadline] is when it wants a [Tick]. It does no I/O and reads no
// clock, so every run can be written down and replayed (see testdata). [Lease]
// is the same for a lock that is a key with an expiry.
//
// [Loop] is the goroutine: it turns messages, frames and the passing of time
// into inputs and performs the effects.
//
// The rules of a presence lock stand beside the code that enforces them:
//
//   - attempt.go: the grant rule; pauses between attempts
//   - probe.go: the answer rule; election and confirmation
//   - queue.go: the queue rule: who is remembered, and who is woken
//   - sleep.go: the polls of a sleeper
//   - reaper.go: the reaping rule
//   - depart.go: how a lock leaves the channel and passes its queue on
//   - hold.go: health checks, loss and release
//   - share.go: readers of one process on one participant
//   - link.go: the socket: what is subscribed and which replies are due
//
// Those of a lease are in lease.go (getting the key), lease_hold.go (keeping
// it) and lease_end.go (giving it back).
//
// Most inputs are handled by the method of the same name: [Probed] by
// Machine.probed.
package actor

import (
	"time"

	"github.com/tetherlock/tether/protocol"
)

// State is the state of a lock as its users see it.
type State uint8

const (
	// Idle is a lock without a hold and without an acquire under way. A lock
	// is idle from the beginning of its release.
	Idle State = iota
	// Acquiring is a lock that serves an acquire.
	Acquiring
	// Held is a lock with a hold.
	Held
	// HoldLost is an idle lock whose last hold ended without a release.
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

// Config are the settings of a [Machine]. It has no defaults.
type Config struct {
	// Channel is the lock's name and channel.
	Channel string
	// Waiters is the channel that sleepers are subscribed to.
	Waiters func() string
	// WakeChannel returns the wake channel of a holder id.
	WakeChannel func(id string) string
	// Response returns the name of a response channel that was never used.
	Response func() string
	// Jitter returns a random number in [0, 1).
	Jitter func() float64

	// Session says that the socket is a session's: other locks are on it, it is
	// logged in and keeps its name, and the session checks its health. [Drop] then
	// takes only this lock off it.
	Session bool
	// Renewable says that a refused login is tried once more, with fresh
	// credentials.
	Renewable bool
	// Once ends the lock when its first acquire, the hold that came of it and
	// the calls that arrived meanwhile have ended.
	Once bool
	// Shared takes the lock as a reader.
	Shared bool
	// Fenced draws a fencing token for every hold, from the counter in
	// database DB.
	Fenced bool
	DB     int
	// Label is the label in the lock's record, empty for none.
	Label string

	// Health is the time between two health checks of a hold.
	Health time.Duration
	// SelfCheck is the time between two self checks of a hold, 0 for none.
	SelfCheck time.Duration
	// Unavailable is the unavailable timeout: how long a participant may take
	// to answer a ping before it counts as silent.
	Unavailable time.Duration
	// Poll is the time between two polls of a single sleeper.
	Poll time.Duration
	// MaxWait bounds how long an acquire waits, 0 for no bound.
	MaxWait time.Duration
	// Reply is how long a reply may take, outside a hold.
	Reply time.Duration
	// Observed reports whether anybody receives events now. If not, there are
	// no [Notify] effects. nil means always.
	Observed func() bool
}

const (
	// recountInterval is the time between two counts while records are
	// missing: a participant that got the ping and left will not answer any
	// more, and only a count shows that.
	recountInterval = 20 * time.Millisecond
	// pollsPerProbe is how many polls it takes until one is a whole attempt.
	// Its probe shows what a count cannot: who holds, and whether it still
	// answers.
	pollsPerProbe = 8
	// tryTimeouts bounds a try, also one without a deadline, in unavailable
	// timeouts.
	tryTimeouts = 3
	// healthLimit bounds the answer to a health check.
	healthLimit = 5 * time.Second
	// departLimit bounds how long leaving waits for the server's confirmation.
	// Then the socket is closed, which leaves the channel as well.
	departLimit = time.Second
	// releaseLimit is the same for a release.
	releaseLimit = 5 * time.Second
	// cancelLimit is the same for a caller whose context has ended already.
	cancelLimit = 100 * time.Millisecond
	// idleSocketLimit bounds the first answer on a socket that was idle.
	idleSocketLimit = 500 * time.Millisecond
	// parkDelay is how long an idle lock keeps its socket for the next call.
	// It is short because the socket may still bear the lock's name, and peers
	// take a silent socket of that name for a crashed holder's.
	parkDelay = 250 * time.Millisecond
)

type phase uint8

const (
	resting      phase = iota // no call is served
	dialing                   // waits for a socket
	joining                   // SUBSCRIBE and the first count are sent
	electing                  // a probe is out, own record pending or a joining reader's
	elected                   // won the election, stays on the channel, probes again later
	confirming                // a probe is out, own record exclusive
	reconfirming              // own record exclusive, probes again in a moment
	leaving                   // UNSUBSCRIBE is sent, not confirmed yet
	sleeping                  // off the channel, until a wake, a poll or the next attempt
	holding                   // a hold is granted
)

// Machine is the state of one lock. It is not safe for concurrent use: one
// goroutine owns it.
type Machine struct {
	cfg          Config
	crowdSize    uint8 // with more subscribers than this a contender gives way to others
	phase        phase
	state        State
	mode         protocol.Mode // of the own record
	joining      bool          // the own record is a reader's that does not hold
	isElected    bool          // the own record says elected
	unreferenced bool          // ends when idle: nobody has a handle
	closing      bool

	link  link
	calls callQueue      // the first is served
	queue protocol.Queue // those that wait for this participant to leave
	hold  hold

	*work
}

// work is what a machine needs on its way to a hold and back. A machine that rests or
// holds for long is half as large without it.
type work struct {
	now     time.Time
	out     []Effect // of the step under way
	outbox  outbox
	current currentCall
	probe   probe
	reaper  reaper
	leave   departure // in phase leaving

	// Checks of a hold that few holds have.
	selfCheck   selfCheck
	writerCheck writerCheck
}

// needed reports whether a hold has such checks.
func (w *work) needed() bool {
	return w.selfCheck != (selfCheck{}) || w.writerCheck.asked != nil || !w.writerCheck.next.IsZero()
}

// currentCall is what is known about the acquire being served.
type currentCall struct {
	began          time.Time
	roundTrips     int               // of the attempt under way
	failures       int               // attempts in a row that ended with an error
	renewed        bool              // fresh credentials have been tried
	lastErr        error             // of the last failed attempt
	holders        []protocol.Record // seen last
	place          int               // in their queue, 0 for none
	silence        silence           // of participants, seen last
	reapErr        error             // the last refusal of a List or Kill
	polls          int               // counted from a random start, see pollsPerProbe
	wake           time.Time         // when sleeping, elected or reconfirming ends
	pollFirst      bool              // waking up begins with a poll
	pollSent       time.Time         // zero when no poll is out
	slept          bool
	carriesWake    bool // it was woken, and the queue travelled with the wake
	queueDelivered bool // a participant that is in the way has got that queue
	retryAtOnce    bool // a wake has come in the middle of an attempt
	readersWoken   bool // the wake was for all readers
	crowdBackoffs  int  // how often it has left because of a crowd
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
	m := &Machine{cfg: cfg, crowdSize: defaultCrowdSize, unreferenced: cfg.Once, work: &work{}}
	m.withdrawClaims()
	return m
}

// State returns where the lock is.
func (m *Machine) State() State { return m.state }

// Step takes one input and returns the effects to perform, in order. now must
// not go back from one call to the next. The effects are valid until the next
// call.
func (m *Machine) Step(now time.Time, in Input) []Effect {
	if m.work == nil {
		m.work = &work{}
	}
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

// Shed frees the memory that only a machine at work needs: the effects of the last
// step, and what is empty while it rests or holds.
func (m *Machine) Shed() {
	if m.phase != holding && m.phase != resting {
		return
	}
	if m.work != nil && !m.work.needed() {
		m.work = nil
	}
	if len(m.calls) == 0 {
		m.calls = nil
	}
}

// callerInput takes an input from a caller.
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
		m.nextOrIdle()
	}
}

// do adds an effect.
func (m *Machine) do(e Effect) { m.out = append(m.out, e) }

// notify adds an event of the call being served, or of the hold.
func (m *Machine) notify(e Event) { m.notifyCall(m.soleCall(), e) }

// notifyCall adds an event of a call; nil stands for all calls of the lock.
func (m *Machine) notifyCall(call Call, e Event) {
	if m.cfg.Observed == nil || m.cfg.Observed() {
		m.do(Notify{e, call})
	}
}

// soleCall is the call that holds or is served, nil if several hold or none.
func (m *Machine) soleCall() Call {
	switch {
	case m.phase == holding && len(m.hold.calls) == 1:
		return m.hold.calls[0]
	case m.served():
		return m.calls[0].Call
	}
	return nil
}

// want is the mode that the lock is acquired in.
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
		m.noteUnanswered()
		m.do(Refuse{in.Call, m.refusal(Contended, nil)})
	default:
		m.calls = append(m.calls, pendingCall{in, m.now, waitDeadline(m.now, in, m.cfg.MaxWait, tryTimeouts*m.cfg.Unavailable)})
		switch m.phase {
		case resting:
			m.beginCall()
		case holding:
			m.checkWriters()
		case dialing, joining, electing, elected, confirming, reconfirming, leaving, sleeping:
		}
	}
}

// refusal is a refusal with what is known now about who is in the way.
func (m *Machine) refusal(why Reason, cause error) Refusal {
	r := Refusal{Reason: why, Cause: cause, OwnHold: m.phase == holding || m.hold.ending}
	if r.OwnHold {
		r.Holders = []protocol.Record{m.ownHolder()}
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

// noteUnanswered notes the participants that have not answered the probe under way,
// before a call ends in the middle of it.
func (m *Machine) noteUnanswered() {
	r := &m.reaper
	searching := r.pings > 0 && !r.done
	switch {
	case !m.phase.probing(), m.probe.n < 0, m.missingAnswers() == 0:
	case r.err != nil:
		m.noteSilent(ReapRefused)
	case searching:
		m.noteSilent(Searching)
	case m.now.Before(m.probe.lastAnswer.Add(m.unavailable() / 10)): // no answer is late yet
	default:
		m.noteSilent(NotSearched)
	}
}

// beginCall begins to serve the first call.
func (m *Machine) beginCall() {
	m.state = Acquiring
	m.current = currentCall{began: m.now, polls: int(m.cfg.Jitter() * pollsPerProbe)}
	if m.link.queued && !m.calls[0].Try {
		// The last release put this socket at the tail of the queue that it
		// woke. An attempt now would be quicker than the woken waiter, which
		// has yet to read its wake, and would find the lock taken every time.
		m.link.queued = false
		m.notifyCall(m.calls[0].Call, Waiting{})
		m.sleep(m.pollPause(1), true)
		return
	}
	m.attempt()
}

// nextOrIdle serves the next call, idles, or ends the lock. Every call ends
// here.
func (m *Machine) nextOrIdle() {
	if m.phase != resting {
		return
	}
	switch {
	case m.closing:
		m.stop()
	case len(m.calls) > 0:
		m.beginCall()
	case m.unreferenced && !m.link.queued:
		m.stop()
	default:
		// A lock that nobody has a handle of idles too while its socket has a
		// place in the queue: parking the socket would lose that place for a
		// call that comes right behind.
		if m.state == Acquiring {
			m.state = Idle
		}
		m.link.idleUntil = m.now.Add(parkDelay)
	}
}

// stop ends the loop. Calls that were not served are refused before.
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
	call := m.calls.remove(0)
	m.phase = resting
	m.current, m.queue = currentCall{}, nil
	m.parkEarly()
	m.do(Refuse{call, r})
	m.nextOrIdle()
}

// parkEarly parks the socket of a lock that is about to end before the last
// caller is answered. A caller that acquires again at once then finds it.
func (m *Machine) parkEarly() {
	if m.unreferenced && len(m.calls) == 0 && !m.link.queued {
		m.parkOrClose(true)
	}
}

// served reports whether the first call is being served.
func (m *Machine) served() bool {
	return len(m.calls) > 0 && m.phase != resting && m.phase != holding && !m.hold.ending
}

func (m *Machine) cancel(in Cancel) {
	if m.phase == holding && m.hold.has(in.Call) {
		m.do(Reclaim(in))
		return
	}
	m.noteUnanswered()
	switch i := m.calls.find(in.Call); {
	case i < 0: // answered already
	case i == 0 && m.served():
		m.giveUp(m.refusal(Cancelled, in.Cause), cancelLimit)
	default:
		m.do(Refuse{m.calls.remove(i), m.refusal(Cancelled, in.Cause)})
	}
}

// expire ends calls whose deadline has passed.
func (m *Machine) expire() {
	for len(m.calls) > 0 && m.due(m.callDeadline()) {
		m.noteUnanswered()
		r := m.refusal(Expired, nil)
		if m.calls[0].Try {
			r = m.tryRefusal()
		}
		if m.served() {
			m.giveUp(r, cancelLimit)
			return
		}
		m.do(Refuse{m.calls.remove(0), r})
	}
}

// giveUp refuses the served call, in whatever phase it is. Leaving the channel
// for that takes no longer than within.
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
		m.nextOrIdle()
	}
}

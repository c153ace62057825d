package actor

import (
	"slices"
	"time"

	"github.com/tetherlock/tether/protocol"
)

// LeaseConfig are the settings of a [Lease]. It has no defaults.
type LeaseConfig struct {
	// ID returns a holder id that was never used. It is the value of the key.
	ID func() string
	// Jitter returns a random number in [0, 1).
	Jitter func() float64
	// TTL is how long the key lives without a renewal.
	TTL time.Duration
	// Renew is the time between two renewals.
	Renew time.Duration
	// Poll is the time between two attempts of a waiter, on average. A release
	// and the expiry of the key shorten it.
	Poll time.Duration
	// MaxWait bounds how long an acquire waits, 0 for no bound.
	MaxWait time.Duration
}

const (
	// leaseTryLimit bounds a try, also one without a deadline.
	leaseTryLimit = 3 * time.Second
	// leaseReplyLimit is how long the reply to a command is waited for. The
	// user's client usually has shorter time-outs of its own. If they are
	// switched off, this is the limit for a dead connection.
	leaseReplyLimit = 15 * time.Second
)

type leasePhase uint8

const (
	leaseResting  leasePhase = iota // no call is served
	leaseAsking                     // a TakeKey is under way
	leaseSleeping                   // tries again later
	leaseHolding                    // a hold is granted
	leaseEnding                     // gives the key back
)

// Lease is the state of one lock that is a key with an expiry, renewed while it
// is held. Like [Machine] it is pure, and not safe for concurrent use.
//
// The validity rule: a hold is valid for the TTL, less a margin for clocks, from
// the moment when the last command was sent that has set or renewed the key. Not
// from its reply: a reply may be late, and the expiry in Redis runs from when the
// command ran.
//
// The clean-up rule: a command whose outcome is not known may have been run, or
// may still run. A key that it may have set is deleted after the call is refused
// and, unless that takes too long, after the command's outcome is in.
type Lease struct {
	cfg   LeaseConfig
	now   time.Time
	out   []Effect
	phase leasePhase
	state State

	num     int       // of the last command
	calls   callQueue // the first is served
	current leaseCall
	hold    leaseHold
	end     ending // in phase leaseEnding
	// abandonedTakes are those that nobody waits for, and that may yet set the
	// key.
	abandonedTakes []abandonedTake

	unreferenced bool // ends when idle: nobody has a handle
	closing      bool
}

// leaseCall is what is known about the acquire being served.
type leaseCall struct {
	began             time.Time
	id                string
	num               int       // of the TakeKey under way, 0 for none
	sent              time.Time // when the last TakeKey was
	maybeSet          bool      // an earlier TakeKey may have set the key
	roundTrips        int
	failures          int // commands in a row that ended with an error
	lastErr           error
	holders           []protocol.Record // the one seen last
	wake              time.Time         // when sleeping ends
	listening         bool              // releases of the key are listened for
	releasedMeanwhile bool              // one was reported while TakeKey was under way
}

// abandonedTake is a TakeKey whose outcome is not waited for any longer.
type abandonedTake struct {
	num int
	id  string
}

// NewLease returns an idle lease.
func NewLease(cfg LeaseConfig) *Lease { return &Lease{cfg: cfg} }

// State returns where the lock is.
func (l *Lease) State() State { return l.state }

// Step takes one input and returns the effects to perform, in order. now must
// not go back from one call to the next. The effects are valid until the next
// call.
func (l *Lease) Step(now time.Time, in Input) []Effect {
	l.now = now
	l.out = l.out[:0]
	switch in := in.(type) {
	case Acquire:
		l.acquire(in)
	case Cancel:
		l.cancel(in)
	case Reclaimed:
		l.reclaimed(in)
	case Release:
		l.release(in)
	case Abandon:
		l.abandon(in)
	case CheckOwned:
		l.checkOwned(in)
	case Close:
		l.close()
	case Unreferenced:
		l.unreferenced = true
		l.nextOrIdle()
	case Ran:
		l.ran(in)
	case KeyReleased:
		l.keyReleased()
	case Slept:
		l.slept(in.For)
	case Tick:
		l.tick()
	}
	return l.out
}

// Shed frees the effects of the last step.
func (l *Lease) Shed() { l.out = nil }

func (l *Lease) do(e Effect) { l.out = append(l.out, e) }

func (l *Lease) notify(e Event) { l.do(Notify{Event: e}) }

// run runs a command on the key, and returns its number.
func (l *Lease) run(op LeaseOp, id string) int {
	l.num++
	l.do(Run{Num: l.num, Op: op, ID: id})
	return l.num
}

// validUntil is how long a key is valid that was set or renewed by a command
// sent at that time: the TTL, less 1% because clocks drift and 2 ms because
// Redis rounds expiries.
func (l *Lease) validUntil(sent time.Time) time.Time {
	return sent.Add(l.cfg.TTL - l.cfg.TTL/100 - 2*time.Millisecond)
}

func (l *Lease) acquire(in Acquire) {
	switch {
	case l.closing:
		l.do(Refuse{in.Call, Refusal{Reason: LockClosed, Cause: ErrClosed}})
	case in.Try && (l.holds() || len(l.calls) > 0):
		l.do(Refuse{in.Call, l.refusal(Contended, nil)})
	default:
		l.calls = append(l.calls, pendingCall{in, l.now, waitDeadline(l.now, in, l.cfg.MaxWait, leaseTryLimit)})
		switch {
		case l.phase == leaseResting:
			l.beginCall()
		case l.phase == leaseEnding && l.end.isPausing():
			l.deleteKey() // do not let the caller wait for the end of a backoff
		}
	}
}

func (l *Lease) refusal(why Reason, cause error) Refusal {
	r := Refusal{Reason: why, Cause: cause, OwnHold: l.holds()}
	switch {
	case r.OwnHold:
	case l.phase == leaseEnding:
		r.LastErr = l.end.lastErr
	default:
		r.Holders, r.LastErr = l.current.holders, l.current.lastErr
	}
	return r
}

// holds reports whether this lock itself holds, as its callers see it: a grant
// that was not lost, and whose release was not answered yet.
func (l *Lease) holds() bool {
	h := &l.hold
	return l.phase == leaseHolding || h.ending && h.loss == nil && !h.unawaited && h.call != nil
}

// beginCall begins to serve the first call.
func (l *Lease) beginCall() {
	l.state = Acquiring
	l.current = leaseCall{began: l.now, id: l.cfg.ID()}
	l.notify(Attempting{})
	l.takeKey()
}

// takeKey sets the key if it is not set. The id stays the same for as long as
// the call is served. With a new one, a command that was run and whose reply was
// lost would lock the call out until its own key expires.
func (l *Lease) takeKey() {
	l.phase = leaseAsking
	l.current.roundTrips++
	l.current.sent, l.current.releasedMeanwhile = l.now, false
	l.current.num = l.run(TakeKey, l.current.id)
}

// takeReplied takes the outcome of TakeKey.
func (l *Lease) takeReplied(in Ran) {
	l.current.num = 0
	switch {
	case in.Err != nil:
		l.current.maybeSet = true
		l.fail(in.Err)
	case !in.Reply.OK:
		l.current.failures, l.current.lastErr = 0, nil
		l.waitForHolder(in.Reply)
	case !l.now.Before(l.validUntil(l.current.sent)):
		// The reply took so long that the key may have expired.
		l.current.maybeSet = true
		l.fail(&Fault{Kind: Transient, Message: "the lease was granted too late"})
	default:
		l.grant(in.Reply.Token)
	}
}

// takeTimedOut ends the wait for the TakeKey under way.
func (l *Lease) takeTimedOut() {
	l.abandonTake(l.current.num, l.current.id)
	l.current.num, l.current.maybeSet = 0, true
	l.fail(errNoAnswer)
}

// abandonTake notes a TakeKey that nobody waits for any longer, if num is one.
func (l *Lease) abandonTake(num int, id string) {
	if num != 0 {
		l.abandonedTakes = append(l.abandonedTakes, abandonedTake{num, id})
	}
}

// abandonedTakeReplied takes the outcome of an abandoned TakeKey, and reports
// whether num was one. The command cannot set the key later than this, so the
// key is deleted, unless its id is in use.
func (l *Lease) abandonedTakeReplied(num int) bool {
	i := slices.IndexFunc(l.abandonedTakes, func(s abandonedTake) bool { return s.num == num })
	if i < 0 {
		return false
	}
	id := l.abandonedTakes[i].id
	l.abandonedTakes = slices.Delete(l.abandonedTakes, i, i+1)
	if !(l.served() && id == l.current.id) && !(l.phase == leaseHolding && id == l.hold.id) {
		l.run(DropKey, id)
	}
	return true
}

// fail takes an error of TakeKey. The next one follows after a backoff, unless
// the call is a try or the error is terminal.
func (l *Lease) fail(err error) {
	l.current.lastErr = err
	l.current.failures++
	if terminal(err) || l.calls[0].Try {
		l.notify(AttemptFailed{Err: err})
		l.refuse(Refusal{Reason: AttemptError, Cause: err})
		return
	}
	pause := l.jittered(min(backoffMin<<min(l.current.failures-1, 10), backoffMax))
	l.notify(AttemptFailed{Err: err, Retry: pause})
	l.sleep(pause)
}

// waitForHolder waits until the key of another holder is released or expires.
func (l *Lease) waitForHolder(r LeaseReply) {
	known := len(l.current.holders) > 0 && l.current.holders[0].ID == r.Holder
	l.current.holders = []protocol.Record{{ID: r.Holder, Mode: protocol.Exclusive, TTL: max(0, r.TTL.Milliseconds())}}
	if l.calls[0].Try {
		l.refuse(l.refusal(Contended, nil))
		return
	}
	if !known {
		l.notify(Waiting{Holders: l.current.holders})
	}
	if !l.current.listening {
		l.current.listening = true
		l.do(Hear{On: true})
	}
	if l.current.releasedMeanwhile {
		l.takeKey() // the release may have come behind the command
		return
	}
	pause := l.jittered(l.cfg.Poll)
	if r.TTL > 0 {
		pause = min(pause, r.TTL+time.Millisecond)
	}
	l.sleep(pause)
}

func (l *Lease) sleep(pause time.Duration) {
	l.phase = leaseSleeping
	l.current.wake = l.now.Add(pause)
}

// keyReleased takes the news of a release. It does not shorten the backoff
// behind an error: a server in trouble may send such news again and again, as
// each new subscription does.
func (l *Lease) keyReleased() {
	switch {
	case l.phase == leaseAsking:
		l.current.releasedMeanwhile = true
	case l.phase == leaseSleeping && l.current.lastErr == nil:
		l.takeKey()
	}
}

func (l *Lease) jittered(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.5 + l.cfg.Jitter()))
}

// grant grants the lock to the served call.
func (l *Lease) grant(token int64) {
	served := l.current
	call := l.calls.remove(0)
	l.endServing()
	l.phase, l.state = leaseHolding, Held
	l.hold = leaseHold{call: call, id: served.id, validUntil: l.validUntil(served.sent), renew: served.sent.Add(l.cfg.Renew)}
	l.notify(Granted{ID: served.id, Token: token, RoundTrips: served.roundTrips, Waited: l.now.Sub(served.began)})
	l.do(Grant{Call: call, ID: served.id, Token: token})
}

// endServing forgets the served call, and stops listening for releases.
func (l *Lease) endServing() {
	if l.current.listening {
		l.do(Hear{})
	}
	l.current = leaseCall{}
}

// refuse ends the served call with an error. A key that may have been set for
// it is deleted after that: the caller need not wait.
func (l *Lease) refuse(r Refusal) {
	served := l.current
	l.do(Refuse{l.calls.remove(0), r})
	l.endServing()
	l.state = Idle
	if served.num != 0 || served.maybeSet {
		l.giveBack(ending{id: served.id, until: l.now.Add(l.cfg.TTL), awaitedTake: served.num})
		return
	}
	l.phase = leaseResting
	l.nextOrIdle()
}

// nextOrIdle serves the next call, idles, or ends the lock. Every call ends
// here.
func (l *Lease) nextOrIdle() {
	switch {
	case l.phase != leaseResting:
	case l.closing:
		l.stop()
	case len(l.calls) > 0:
		l.beginCall()
	case l.unreferenced:
		l.stop()
	}
}

func (l *Lease) stop() {
	for len(l.calls) > 0 {
		l.do(Refuse{l.calls.remove(0), Refusal{Reason: LockClosed, Cause: ErrClosed}})
	}
	l.do(Stop{})
}

// served reports whether the first call is being served.
func (l *Lease) served() bool { return l.phase == leaseAsking || l.phase == leaseSleeping }

func (l *Lease) cancel(in Cancel) {
	if l.phase == leaseHolding && l.hold.call == in.Call {
		l.do(Reclaim(in))
		return
	}
	switch i := l.calls.find(in.Call); {
	case i < 0: // answered already
	case i == 0 && l.served():
		l.refuse(l.refusal(Cancelled, in.Cause))
	default:
		l.do(Refuse{l.calls.remove(i), l.refusal(Cancelled, in.Cause)})
	}
}

func (l *Lease) close() {
	if l.closing {
		return
	}
	l.closing = true
	for len(l.calls) > 1 || len(l.calls) == 1 && !l.served() {
		l.do(Refuse{l.calls.remove(len(l.calls) - 1), Refusal{Reason: LockClosed, Cause: ErrClosed}})
	}
	switch {
	case l.phase == leaseHolding:
		l.do(Reclaim{l.hold.call, ErrClosed})
		l.endHold(ErrClosed)
		l.giveBack(ending{id: l.hold.id, until: l.now.Add(departLimit)})
	case l.served():
		l.refuse(Refusal{Reason: LockClosed, Cause: ErrClosed})
	case l.phase == leaseResting:
		l.nextOrIdle()
	}
	if l.phase == leaseEnding {
		l.end.shorten(l.now, departLimit)
	}
}

// expire ends calls whose deadline has passed.
func (l *Lease) expire() {
	for len(l.calls) > 0 && !l.calls[0].deadline.IsZero() && !l.now.Before(l.calls[0].deadline) {
		why := Expired
		var cause error
		if l.calls[0].Try {
			why, cause = Inconclusive, errNoAnswer
		}
		if r := l.refusal(why, cause); l.served() {
			l.refuse(r)
		} else {
			l.do(Refuse{l.calls.remove(0), r})
		}
	}
}

// Deadline returns when the lease wants a [Tick], the zero time for never.
func (l *Lease) Deadline() time.Time {
	at := l.phaseDeadline()
	if len(l.calls) > 0 {
		at = earlier(at, l.calls[0].deadline)
	}
	return at
}

func (l *Lease) phaseDeadline() time.Time {
	switch l.phase {
	case leaseAsking:
		return l.current.sent.Add(leaseReplyLimit)
	case leaseSleeping:
		return l.current.wake
	case leaseHolding:
		return l.holdDeadline()
	case leaseEnding:
		return l.endDeadline()
	case leaseResting:
	}
	return time.Time{}
}

func (l *Lease) tick() {
	l.expire()
	at := l.phaseDeadline()
	if at.IsZero() || l.now.Before(at) {
		return
	}
	switch l.phase {
	case leaseAsking:
		l.takeTimedOut()
	case leaseSleeping:
		l.takeKey()
	case leaseHolding:
		l.holdTick()
	case leaseEnding:
		l.endTick()
	case leaseResting:
	}
}

// ran takes the outcome of a command. Commands may end in any order.
func (l *Lease) ran(in Ran) {
	switch {
	case in.Num == l.current.num:
		l.takeReplied(in)
	case l.abandonedTakeReplied(in.Num):
	case l.phase == leaseEnding:
		l.endingReplied(in)
	case l.phase == leaseHolding:
		l.keyCommandReplied(in)
	}
}

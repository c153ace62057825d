package actor

import (
	"slices"
	"time"

	"github.com/tetherlock/tether/protocol"
)

// LeaseConfig is what a lease is born with.
type LeaseConfig struct {
	// ID makes a holder id that was never used. It is the value of the key.
	ID func() string
	// Jitter returns a random number in [0, 1).
	Jitter func() float64
	// TTL is how long the key lives without a renewal.
	TTL time.Duration
	// Renew is the time between two renewals.
	Renew time.Duration
	// Poll is the time between two looks of a waiter.
	Poll time.Duration
	// MaxWait bounds how long an acquire waits, 0 for no bound.
	MaxWait time.Duration
}

const (
	// leaseTryLimit bounds a try, also one without a deadline.
	leaseTryLimit = 3 * time.Second
	// leaseReplyLimit is how long a command is waited for. The client of the
	// user has limits of its own as a rule, which are shorter; without them a
	// dead connection would be waited on for ever.
	leaseReplyLimit = 15 * time.Second
)

type leasePhase uint8

const (
	leaseResting  leasePhase = iota // no call is served
	leaseAsking                     // the key may be set any moment
	leaseSleeping                   // tries again later
	leaseHolding                    // has granted
	leaseEnding                     // gives the key back
)

// Lease is the state of one lock that is a key with an expiry, which is
// renewed while it is held. Like [Machine] it is pure.
//
// It trusts no reply to be quick: what it believes about the key begins before
// the command was sent that is known to have succeeded, and ends when Redis may
// have forgotten the key.
type Lease struct {
	cfg   LeaseConfig
	now   time.Time
	out   []Effect
	phase leasePhase
	state State

	num     int // of the last command
	calls   callQueue
	current leaseCall
	hold    leaseHold
	end     ending
	// strays are commands that may yet set the key, and that nobody waits for.
	abandonedTakes []abandonedTake

	unreferenced bool
	closing      bool
}

// bid is what is known about the acquire being served.
type leaseCall struct {
	began             time.Time
	id                string
	num               int       // of the command under way, 0 for none
	sent              time.Time // when it was
	maybeSet          bool      // an earlier one may have set the key
	roundTrips        int
	failures          int
	lastErr           error
	holders           []protocol.Record
	wake              time.Time
	listening         bool // releases are listened for
	releasedMeanwhile bool // one was told while a command was under way
}

// stray is a command that sets the key to an id.
type abandonedTake struct {
	num int
	id  string
}

// NewLease returns an idle lease.
func NewLease(cfg LeaseConfig) *Lease { return &Lease{cfg: cfg} }

// State returns where the lock is.
func (l *Lease) State() State { return l.state }

// Step takes one input and returns what is to be done, like [Machine.Step].
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

func (l *Lease) do(e Effect) { l.out = append(l.out, e) }

func (l *Lease) notify(e Event) { l.do(Notify{Event: e}) }

// run runs a command on the key, and returns its number.
func (l *Lease) run(op LeaseOp, id string) int {
	l.num++
	l.do(Run{Num: l.num, Op: op, ID: id})
	return l.num
}

// good is until when a key can be relied on that was set or renewed by a
// command sent at a time. Clocks drift, and expiries are rounded.
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
			l.deleteKey() // what failed a while ago may succeed now
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

// holds says whether the lock is taken by itself: it has granted, and nobody
// was told of the end yet.
func (l *Lease) holds() bool {
	h := &l.hold
	return l.phase == leaseHolding || h.ending && h.loss == nil && !h.unawaited && h.call != nil
}

// begin serves the first call.
func (l *Lease) beginCall() {
	l.state = Acquiring
	l.current = leaseCall{began: l.now, id: l.cfg.ID()}
	l.notify(Attempting{})
	l.takeKey()
}

// ask sets the key if nobody has. The id stays the same for as long as the
// call is served: a reply may be lost behind a command that was run, and the
// next one must not wait for its own key to expire.
func (l *Lease) takeKey() {
	l.phase = leaseAsking
	l.current.roundTrips++
	l.current.sent, l.current.releasedMeanwhile = l.now, false
	l.current.num = l.run(TakeKey, l.current.id)
}

// took takes the outcome of ask.
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
		// It is worth nothing any more.
		l.current.maybeSet = true
		l.fail(&Fault{Kind: Transient, Message: "the lease was granted too late"})
	default:
		l.grant(in.Reply.Token)
	}
}

// unanswered gives up the command under way.
func (l *Lease) takeTimedOut() {
	l.abandonTake(l.current.num, l.current.id)
	l.current.num, l.current.maybeSet = 0, true
	l.fail(errNoAnswer)
}

// strand notes a command that nobody waits for any longer.
func (l *Lease) abandonTake(num int, id string) {
	if num != 0 {
		l.abandonedTakes = append(l.abandonedTakes, abandonedTake{num, id})
	}
}

// found takes the outcome of a stray. It has set the key by now, or never will:
// unless that is in use, it is taken away once more.
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

// fail takes an error. The key may be set or not.
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

// refused waits for whoever has the key, for as long as that lives.
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
		l.takeKey() // the key was looked at before it was given back, perhaps
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

// nudged takes the news of a release. Behind an error it must not shorten the
// pause: a server that is in trouble may well tell it over and over.
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

func (l *Lease) grant(token int64) {
	serve := l.current
	call := l.calls.remove(0)
	l.endServing()
	l.phase, l.state = leaseHolding, Held
	l.hold = leaseHold{call: call, id: serve.id, validUntil: l.validUntil(serve.sent), renew: serve.sent.Add(l.cfg.Renew)}
	l.notify(Granted{ID: serve.id, Token: token, RoundTrips: serve.roundTrips, Waited: l.now.Sub(serve.began)})
	l.do(Grant{Call: call, ID: serve.id, Token: token})
}

// settle ends what goes with serving a call.
func (l *Lease) endServing() {
	if l.current.listening {
		l.do(Hear{})
	}
	l.current = leaseCall{}
}

// refuse ends the served call with an error. A key that may have been set for
// it is taken away behind that: the caller need not wait.
func (l *Lease) refuse(r Refusal) {
	serve := l.current
	l.do(Refuse{l.calls.remove(0), r})
	l.endServing()
	l.state = Idle
	if serve.num != 0 || serve.maybeSet {
		l.giveBack(ending{id: serve.id, until: l.now.Add(l.cfg.TTL), awaitedTake: serve.num})
		return
	}
	l.phase = leaseResting
	l.nextOrIdle()
}

// rest is where every call ends: the next one is served, or the lock idles.
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

// served says whether the first call is being served.
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

// expire ends calls that have waited for as long as they may.
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

// Deadline is when the lease wants a [Tick], the zero time for never.
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

// ran takes the outcome of a command.
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

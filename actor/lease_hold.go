package actor

import (
	"slices"
	"time"
)

// tenancy is one grant of a lease, until its key is given back.
type leaseHold struct {
	call       Call
	id         string
	validUntil time.Time // by then a renewal must have succeeded
	renew      time.Time // when the next one begins
	commands   []keyCommand
	failures   int // renewals in a row
	ending     bool
	loss       error
	unawaited  bool // nobody waits for its end
}

// question is a command about the key of a hold that is under way.
type keyCommand struct {
	num  int
	sent time.Time
	call Call // whose inquiry it is, nil for a renewal
}

const (
	// watch is how often a hold looks at the clock. The one that timers run by
	// stands still while the machine is suspended.
	clockCheckInterval = time.Second
	// retryMin and retryMax bound the pause behind a renewal that failed.
	retryMin = 10 * time.Millisecond
	retryMax = time.Second
	// patience is how many renewals may be under way that have a chance left.
	// One that hangs must not be in the way of the next.
	maxRenewals = 4
)

var (
	errExpired  = &Fault{Kind: Transient, Message: "the lease was not renewed in time"}
	errNoAnswer = &Fault{Kind: Transient, Message: "no answer in time"}
)

// ErrNotOwned is the loss of a key that is somebody else's, or gone.
var ErrNotOwned error = &Fault{Kind: Transient, Message: "the key has expired, or was deleted or taken by somebody else"}

func (l *Lease) holdDeadline() time.Time {
	return earlier(earlier(l.hold.validUntil, l.hold.renew), l.now.Add(clockCheckInterval))
}

func (l *Lease) holdTick() {
	switch {
	case !l.now.Before(l.hold.validUntil):
		l.lose(errExpired)
	case !l.now.Before(l.hold.renew):
		l.renew()
	}
}

// renew asks for more time.
func (l *Lease) renew() {
	h := &l.hold
	h.renew = l.now.Add(l.cfg.Renew)
	under := 0
	for _, q := range h.commands {
		if q.call == nil && l.now.Sub(q.sent) < leaseReplyLimit {
			under++
		}
	}
	if under < maxRenewals {
		h.commands = append(h.commands, keyCommand{num: l.run(RenewKey, h.id), sent: l.now})
	}
}

// slept takes the news that time has passed which timers don't know of. Redis
// is asked before the lease is believed any longer.
func (l *Lease) slept(d time.Duration) {
	l.current.sent = l.current.sent.Add(-d)
	if l.phase != leaseHolding {
		return
	}
	l.hold.validUntil = l.hold.validUntil.Add(-d)
	for i := range l.hold.commands {
		l.hold.commands[i].sent = l.hold.commands[i].sent.Add(-d)
	}
	if !l.now.Before(l.hold.validUntil) {
		l.lose(errExpired)
		return
	}
	l.renew()
}

// heard takes the outcome of a question about the key.
func (l *Lease) keyCommandReplied(in Ran) {
	h := &l.hold
	i := slices.IndexFunc(h.commands, func(q keyCommand) bool { return q.num == in.Num })
	if i < 0 {
		return
	}
	q := h.commands[i]
	h.commands = slices.Delete(h.commands, i, i+1)
	if q.call != nil {
		l.do(OwnedAnswer{Call: q.call, Owned: in.Err == nil && in.Reply.OK, Err: in.Err})
	}
	switch {
	case in.Err == nil && !in.Reply.OK:
		l.lose(ErrNotOwned)
	case q.call != nil:
	case in.Err != nil:
		// Whatever it was, the key stands for a while.
		h.failures++
		l.notify(Checked{Err: in.Err})
		pause := l.jittered(min(retryMin<<min(h.failures-1, 10), retryMax, l.cfg.Renew))
		h.renew = earlier(h.renew, l.now.Add(pause))
	default:
		h.failures = 0
		if until := l.validUntil(q.sent); until.After(h.validUntil) {
			h.validUntil = until
			h.renew = q.sent.Add(l.cfg.Renew)
		}
		l.notify(Checked{RoundTrip: l.now.Sub(q.sent)})
	}
}

func (l *Lease) checkOwned(in CheckOwned) {
	if l.phase != leaseHolding || l.hold.call != in.Hold {
		l.do(OwnedAnswer{Call: in.Call})
		return
	}
	l.hold.commands = append(l.hold.commands, keyCommand{num: l.run(CheckKey, l.hold.id), sent: l.now, call: in.Call})
}

// endHold ends what the holder has. The rest is housekeeping.
func (l *Lease) endHold(loss error) {
	h := &l.hold
	h.ending, h.loss = true, loss
	l.state = Idle
	l.do(End{Hold: h.call, Loss: loss})
	if loss != nil {
		l.state = HoldLost
		l.notify(Lost{ID: h.id, Err: loss})
	}
	for _, q := range h.commands {
		if q.call != nil {
			l.do(OwnedAnswer{Call: q.call})
		}
	}
	h.commands = nil
}

// lose ends a hold. Its key may still be there, or be renewed by a command
// that is under way, so it is given back all the same.
func (l *Lease) lose(err error) {
	l.endHold(err)
	l.giveBack(ending{id: l.hold.id, until: l.now.Add(l.cfg.TTL)})
}

func (l *Lease) release(in Release) {
	if in.Hold != l.hold.call || l.phase != leaseHolding {
		return
	}
	l.endHold(nil)
	l.giveBack(ending{id: l.hold.id, until: l.now.Add(l.cfg.TTL), answerBy: l.now.Add(leaveLimit)})
}

// abandon answers a release that nobody waits for any longer. It goes on.
func (l *Lease) abandon(in Abandon) {
	if l.hold.ending && in.Hold == l.hold.call {
		l.answerRelease(in.Cause)
	}
}

// reclaimed gives back a grant that nobody has received.
func (l *Lease) reclaimed(in Reclaimed) {
	r := Refusal{Reason: Cancelled, Cause: in.Cause}
	if l.closing {
		r = Refusal{Reason: LockClosed, Cause: ErrClosed}
	}
	if l.phase != leaseHolding || l.hold.call != in.Call {
		l.do(Refuse{in.Call, r})
		return
	}
	l.endHold(nil)
	l.hold.unawaited = true
	l.do(Refuse{in.Call, r})
	l.giveBack(ending{id: l.hold.id, until: l.now.Add(l.cfg.TTL)})
}

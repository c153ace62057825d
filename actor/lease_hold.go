package actor

import (
	"slices"
	"time"
)

// leaseHold is one hold of a lease, from the grant until its key is given back.
//
// The rule: it is lost when it is not renewed until validUntil, when Redis says
// that the key is not its own, or when the lock is closed. A failed command ends
// nothing as long as the key cannot have expired.
type leaseHold struct {
	call       Call
	id         string
	validUntil time.Time    // see Lease.validUntil
	renew      time.Time    // when the next renewal is sent
	commands   []keyCommand // under way
	failures   int          // renewals in a row that failed
	ending     bool         // over for its caller, the key is not deleted yet
	loss       error        // why it was lost, nil if it was given back
	unawaited  bool         // no caller waits for its end: it was reclaimed
}

// keyCommand is a RenewKey or CheckKey that is under way.
type keyCommand struct {
	num  int
	sent time.Time
	call Call // of a CheckKey, nil for a RenewKey
}

const (
	// clockCheckInterval is how often a hold wants a Tick, so that the loop
	// compares the clocks, see Slept. A timer alone does not do: its clock
	// stands still while the computer is suspended.
	clockCheckInterval = time.Second
	// retryMin and retryMax bound the pause behind a renewal that failed.
	retryMin = 10 * time.Millisecond
	retryMax = time.Second
	// maxRenewals is how many renewals may be under way at a time. More than
	// one, because one that hangs must not keep the next from being sent. Those
	// that are out for longer than leaseReplyLimit do not count.
	maxRenewals = 4
)

var (
	errExpired  = &Fault{Kind: Transient, Message: "the lease was not renewed in time"}
	errNoAnswer = &Fault{Kind: Transient, Message: "no answer in time"}
)

// ErrNotOwned is the loss of a hold whose key is gone, or another holder's.
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

// renew sends a renewal, unless too many are under way.
func (l *Lease) renew() {
	h := &l.hold
	h.renew = l.now.Add(l.cfg.Renew)
	underWay := 0
	for _, c := range h.commands {
		if c.call == nil && l.now.Sub(c.sent) < leaseReplyLimit {
			underWay++
		}
	}
	if underWay < maxRenewals {
		h.commands = append(h.commands, keyCommand{num: l.run(RenewKey, h.id), sent: l.now})
	}
}

// slept takes the news that more time has passed than the monotonic clock
// shows. Commands count as sent that much earlier, and a hold is valid for that
// much less. What is left of it is renewed at once.
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

// keyCommandReplied takes the outcome of a RenewKey or CheckKey.
func (l *Lease) keyCommandReplied(in Ran) {
	h := &l.hold
	i := slices.IndexFunc(h.commands, func(c keyCommand) bool { return c.num == in.Num })
	if i < 0 {
		return
	}
	c := h.commands[i]
	h.commands = slices.Delete(h.commands, i, i+1)
	if c.call != nil {
		l.do(OwnedAnswer{Call: c.call, Owned: in.Err == nil && in.Reply.OK, Err: in.Err})
	}
	switch {
	case in.Err == nil && !in.Reply.OK:
		l.lose(ErrNotOwned)
	case c.call != nil:
	case in.Err != nil:
		// The key has not expired yet.
		h.failures++
		l.notify(Checked{Err: in.Err})
		pause := l.jittered(min(retryMin<<min(h.failures-1, 10), retryMax, l.cfg.Renew))
		h.renew = earlier(h.renew, l.now.Add(pause))
	default:
		h.failures = 0
		if until := l.validUntil(c.sent); until.After(h.validUntil) {
			h.validUntil = until
			h.renew = c.sent.Add(l.cfg.Renew)
		}
		l.notify(Checked{RoundTrip: l.now.Sub(c.sent)})
	}
}

func (l *Lease) checkOwned(in CheckOwned) {
	if l.phase != leaseHolding || l.hold.call != in.Hold {
		l.do(OwnedAnswer{Call: in.Call})
		return
	}
	l.hold.commands = append(l.hold.commands, keyCommand{num: l.run(CheckKey, l.hold.id), sent: l.now, call: in.Call})
}

// endHold ends the hold for its caller, before anything is sent. loss is why it
// was lost, nil if it is given back.
func (l *Lease) endHold(loss error) {
	h := &l.hold
	h.ending, h.loss = true, loss
	l.state = Idle
	l.do(End{Hold: h.call, Loss: loss})
	if loss != nil {
		l.state = HoldLost
		l.notify(Lost{ID: h.id, Err: loss})
	}
	for _, c := range h.commands {
		if c.call != nil {
			l.do(OwnedAnswer{Call: c.call})
		}
	}
	h.commands = nil
}

// lose ends a hold because of an error. Its key is given back all the same: it
// may still be set, or be renewed by a command that is under way.
func (l *Lease) lose(err error) {
	l.endHold(err)
	l.giveBack(ending{id: l.hold.id, until: l.now.Add(l.cfg.TTL)})
}

func (l *Lease) release(in Release) {
	if in.Hold != l.hold.call || l.phase != leaseHolding {
		return
	}
	l.endHold(nil)
	l.giveBack(ending{id: l.hold.id, until: l.now.Add(l.cfg.TTL), answerBy: l.now.Add(releaseLimit)})
}

// abandon answers a release whose caller no longer waits. The deletion goes on.
func (l *Lease) abandon(in Abandon) {
	if l.hold.ending && in.Hold == l.hold.call {
		l.answerRelease(in.Cause)
	}
}

// reclaimed refuses a call whose grant was taken back unreceived, and gives the
// key back.
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

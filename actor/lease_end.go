package actor

import "time"

// ending is a key that is given back, and for how long that is tried. It takes
// itself away after its expiry anyway.
type ending struct {
	id          string
	until       time.Time
	answerBy    time.Time // when whoever has released waits no longer, zero for until
	awaitedTake int       // a command that may set the key yet, 0 for none
	num         int       // of the command under way, 0 for none
	next        time.Time // when another one begins
	failures    int       // commands that may have been run all the same
	lastErr     error     // of the last one
}

// failing says that it pauses behind an error.
func (e *ending) isPausing() bool { return e.awaitedTake == 0 && e.num == 0 }

// hasten lets it take no longer than a duration from now on.
func (e *ending) shorten(now time.Time, within time.Duration) {
	if until := now.Add(within); until.Before(e.until) {
		e.until = until
	}
}

// giveBack deletes the key if it is the own one, and tells those that wait. A
// command that may set it must have ended before, or it would set it behind
// that.
func (l *Lease) giveBack(e ending) {
	l.phase = leaseEnding
	l.end = e
	if e.awaitedTake == 0 {
		l.deleteKey()
		return
	}
	l.end.next = l.now.Add(leaseReplyLimit)
}

func (l *Lease) deleteKey() {
	l.end.next = l.now.Add(leaseReplyLimit)
	l.end.num = l.run(DropKey, l.end.id)
}

func (l *Lease) endDeadline() time.Time {
	return earlier(earlier(l.end.until, l.end.next), l.end.answerBy)
}

func (l *Lease) endTick() {
	e := &l.end
	due := func(at time.Time) bool { return !at.IsZero() && !l.now.Before(at) }
	switch {
	case due(e.until):
		l.endingDone(e.cause())
		return
	case due(e.answerBy):
		e.answerBy = time.Time{}
		l.answerRelease(e.cause())
	}
	if due(e.next) {
		l.abandonTake(e.awaitedTake, e.id)
		e.awaitedTake = 0
		if e.num != 0 {
			e.failures++
		}
		l.deleteKey()
	}
}

// doubt is why it is not known to have succeeded.
func (e *ending) cause() error {
	if e.lastErr != nil {
		return e.lastErr
	}
	return errNoAnswer
}

// ended takes the outcome of a command.
func (l *Lease) endingReplied(in Ran) {
	e := &l.end
	switch {
	case in.Num == e.awaitedTake:
		e.awaitedTake = 0
		if !l.closing {
			e.until = l.now.Add(l.cfg.TTL)
		}
		l.deleteKey()
	case in.Num != e.num:
	case in.Err != nil && terminal(in.Err):
		l.endingDone(in.Err)
	case in.Err != nil:
		l.retryDelete(in.Err)
	case !in.Reply.OK && e.failures == 0:
		l.endingDone(ErrNotOwned)
	default:
		// A key that is gone behind an error was deleted by the command whose
		// reply was lost.
		l.endingDone(nil)
	}
}

// retry gives the key back later. Others wait for that, and a try does not.
func (l *Lease) retryDelete(err error) {
	e := &l.end
	e.num, e.lastErr = 0, err
	e.failures++
	pause := l.jittered(min(backoffMin<<min(e.failures-1, 10), backoffMax))
	e.next = l.now.Add(pause)
	switch {
	case len(l.calls) == 0:
	case l.calls[0].Try:
		l.notify(AttemptFailed{Err: err})
		l.do(Refuse{l.calls.remove(0), Refusal{Reason: AttemptError, Cause: err}})
	default:
		l.notify(AttemptFailed{Err: err, Retry: pause})
	}
}

// over ends the giving back. Err says why it is not known to have succeeded.
func (l *Lease) endingDone(err error) {
	l.answerRelease(err)
	l.abandonTake(l.end.awaitedTake, l.end.id)
	l.phase, l.end, l.hold = leaseResting, ending{}, leaseHold{}
	l.nextOrIdle()
}

// returned answers whoever has released.
func (l *Lease) answerRelease(err error) {
	h := &l.hold
	if h.call == nil || h.loss != nil {
		return
	}
	l.notify(GaveBack{ID: h.id, Err: err})
	if !h.unawaited {
		l.do(Released{Hold: h.call, Err: err})
	}
	h.call = nil
}

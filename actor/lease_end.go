package actor

import "time"

// ending is a key that is given back. The rule: its deletion is tried until it
// is known to have succeeded, or the key must have expired. A command that may
// yet set the key is waited for before.
type ending struct {
	id          string
	until       time.Time // when it is given up
	answerBy    time.Time // when the release is answered, zero for until
	awaitedTake int       // a TakeKey that may yet set the key, 0 for none
	num         int       // of the DropKey under way, 0 for none
	next        time.Time // when the next DropKey is sent, whatever is under way
	failures    int       // DropKeys without a reply; they may have been run
	lastErr     error     // of the last one
}

// isPausing reports whether it waits for the end of a backoff.
func (e *ending) isPausing() bool { return e.awaitedTake == 0 && e.num == 0 }

// shorten lets it take no longer than within, from now on.
func (e *ending) shorten(now time.Time, within time.Duration) {
	if until := now.Add(within); until.Before(e.until) {
		e.until = until
	}
}

// giveBack begins to delete the key, if it has the id. A TakeKey that is under
// way is waited for first, up to a limit: it would set the key again behind the
// deletion.
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

// cause is why the key is not known to be deleted.
func (e *ending) cause() error {
	if e.lastErr != nil {
		return e.lastErr
	}
	return errNoAnswer
}

// endingReplied takes the outcome of the awaited TakeKey or of a DropKey.
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
		// The key is gone. If an earlier command failed, that one may have
		// deleted it, and its reply was lost.
		l.endingDone(nil)
	}
}

// retryDelete deletes the key again after a backoff. Calls wait for that; a try
// is refused.
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

// endingDone ends the deletion. err is why the key is not known to be deleted,
// nil if it is.
func (l *Lease) endingDone(err error) {
	l.answerRelease(err)
	l.abandonTake(l.end.awaitedTake, l.end.id)
	l.phase, l.end, l.hold = leaseResting, ending{}, leaseHold{}
	l.nextOrIdle()
}

// answerRelease answers the release, once.
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

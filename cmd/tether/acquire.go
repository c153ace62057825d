//go:build unix && !aix && !solaris

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/tetherlock/tether"
)

// errUnreachable ends a wait whose first attempt has not reached the server.
var errUnreachable = errors.New("unreachable")

// ends are the signals that end the waiting. The others have no command to go
// to yet.
var ends = map[os.Signal]bool{syscall.SIGINT: true, syscall.SIGTERM: true, syscall.SIGHUP: true, syscall.SIGQUIT: true}

// acquire takes the lock as --wait says.
func (j *job) acquire(ctx context.Context, locks *tether.Client) (*tether.Hold, error) {
	lock := j.lock.open(locks, j.name, j.options())
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	events := lock.Events()
	results := make(chan tether.Result, 1)
	go func() {
		h, err := j.call(ctx, lock)
		if !j.lock.lease {
			err = j.located(ctx, locks, err)
		}
		results <- tether.Result{Hold: h, Err: err}
	}()
	w := waiting{job: j, cancel: cancel}
	for {
		select {
		case r := <-results:
			for len(events) > 0 {
				w.event(<-events) // what happened before
			}
			return w.result(ctx, r)
		case s := <-j.signals:
			if ends[s] {
				w.ended, _ = s.(syscall.Signal)
				cancel(nil)
			}
		case e := <-events:
			w.event(e)
		}
	}
}

func (j *job) call(ctx context.Context, lock *tether.Lock) (*tether.Hold, error) {
	if j.wait == 0 && !j.forever {
		return lock.TryAcquire(ctx)
	}
	return lock.Acquire(ctx)
}

// waiting is what has been seen while the lock is awaited.
type waiting struct {
	*job
	cancel  context.CancelCauseFunc
	ended   syscall.Signal // by this signal; 0 if by none
	failure error          // of the last attempt; nil if it found holders
	reached bool
	told    bool // of the trouble that there is
	shown   bool // who holds the lock
}

func (w *waiting) event(e tether.Event) {
	switch e := e.(type) {
	case tether.AttemptFailedEvent:
		w.failed(e)
	case tether.WaitingEvent:
		w.failure, w.reached, w.told = nil, true, false
		w.show(e.Holders)
	}
}

// show tells once why nothing happens, if somebody looks on.
func (w *waiting) show(holders []tether.Holder) {
	if w.shown || w.wait == 0 && !w.forever || !lookedOn() {
		return
	}
	w.shown = true
	say("waiting for the lock %q, held by %s", w.name, inTheWay(holders))
}

// lookedOn says whether somebody sits at the terminal.
func lookedOn() bool {
	tty := terminal{fd: int(os.Stderr.Fd())}
	return tty.foreground() == syscall.Getpgrp()
}

// failed decides whether waiting is of use. Somebody who has just mistyped an
// address wants to know; somebody who has waited for an hour wants to go on.
func (w *waiting) failed(e tether.AttemptFailedEvent) {
	w.failure = e.Err
	switch {
	case e.Retry == 0: // the call ends with it
	case w.forever && !w.reached:
		w.cancel(errUnreachable)
	case !w.told && (w.forever || lookedOn()):
		w.told = true
		say("%s (trying again)", trouble(e.Err, w.server))
	}
}

func (w *waiting) result(ctx context.Context, r tether.Result) (*tether.Hold, error) {
	_, misused := errors.AsType[*tether.ConfigError](r.Err)
	switch {
	case w.ended != 0:
		if r.Hold != nil {
			_ = r.Hold.Release(ctx) // the exit frees it anyway
		}
		return nil, bySignal(w.ended, fmt.Sprintf("stopped waiting for the lock %q: %v", w.name, w.ended))
	case r.Hold != nil:
		return r.Hold, nil
	case w.failure != nil && !errors.Is(r.Err, tether.ErrHeld):
		return nil, explain(w.failure, w.name, w.server)
	case w.wait > 0 && !w.reached && !misused:
		return nil, &outcome{exitUnavailable, fmt.Sprintf("no answer about the lock %q within --wait %v: wait longer, or check Redis at %s",
			w.name, w.wait, w.server.Addr)}
	}
	return nil, explain(r.Err, w.name, w.server)
}

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

// errNeverReached ends a wait whose first attempt did not reach the server.
var errNeverReached = errors.New("unreachable")

// stopSignals end the wait. Other signals are for the command, which does not
// run yet, and are dropped.
var stopSignals = map[os.Signal]bool{syscall.SIGINT: true, syscall.SIGTERM: true, syscall.SIGHUP: true, syscall.SIGQUIT: true}

// acquire takes the lock, within the limit of --wait.
func (j *job) acquire(ctx context.Context, locks *tether.Client) (*tether.Hold, error) {
	lock := j.lockFlags.newLock(locks, j.name, j.options())
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	events := lock.Events()
	results := make(chan tether.Result, 1)
	go func() {
		h, err := j.call(ctx, lock)
		if !j.lockFlags.lease {
			err = j.probeHolders(ctx, locks, err)
		}
		results <- tether.Result{Hold: h, Err: err}
	}()
	w := waitState{job: j, cancel: cancel}
	for {
		select {
		case r := <-results:
			for len(events) > 0 {
				w.handleEvent(<-events) // sent before the result
			}
			return w.result(ctx, r)
		case s := <-j.signals:
			if stopSignals[s] {
				w.stoppedBy, _ = s.(syscall.Signal)
				cancel(nil)
			}
		case e := <-events:
			w.handleEvent(e)
		}
	}
}

func (j *job) call(ctx context.Context, lock *tether.Lock) (*tether.Hold, error) {
	if j.wait == 0 && !j.waitForever {
		return lock.TryAcquire(ctx)
	}
	return lock.Acquire(ctx)
}

// waitState is what is known while the lock is awaited.
type waitState struct {
	*job
	cancel       context.CancelCauseFunc
	stoppedBy    syscall.Signal // the signal that ended the wait; 0 if none
	lastErr      error          // of the last attempt; nil if it found holders
	reached      bool           // an attempt has reached the server
	errShown     bool           // lastErr has been printed
	holdersShown bool
}

func (w *waitState) handleEvent(e tether.Event) {
	switch e := e.(type) {
	case tether.AttemptFailedEvent:
		w.attemptFailed(e)
	case tether.WaitingEvent:
		w.lastErr, w.reached, w.errShown = nil, true, false
		w.showHolders(e.Holders)
	}
}

// showHolders prints once who holds the lock, if a user waits at the terminal.
func (w *waitState) showHolders(holders []tether.Holder) {
	if w.holdersShown || w.wait == 0 && !w.waitForever || !onTerminal() {
		return
	}
	w.holdersShown = true
	printErr("waiting for the lock %q, held by %s", w.name, holderList(holders))
}

// onTerminal reports whether this process is in the terminal's foreground, so
// that a user reads what it prints.
func onTerminal() bool {
	tty := terminal{fd: int(os.Stderr.Fd())}
	return tty.foreground() == syscall.Getpgrp()
}

// attemptFailed decides whether to go on waiting. If no attempt has reached the
// server yet, the address may be wrong, and without --wait the wait ends. After
// that it is an outage, and the wait goes on.
func (w *waitState) attemptFailed(e tether.AttemptFailedEvent) {
	w.lastErr = e.Err
	switch {
	case e.Retry == 0: // the call returns this error
	case w.waitForever && !w.reached:
		w.cancel(errNeverReached)
	case !w.errShown && (w.waitForever || onTerminal()):
		w.errShown = true
		printErr("%s (trying again)", serverErrorText(e.Err, w.server))
	}
}

func (w *waitState) result(ctx context.Context, r tether.Result) (*tether.Hold, error) {
	_, misused := errors.AsType[*tether.ConfigError](r.Err)
	switch {
	case w.stoppedBy != 0:
		if r.Hold != nil {
			_ = r.Hold.Release(ctx) // if it fails, the exit closes the connection
		}
		return nil, signalExit(w.stoppedBy, fmt.Sprintf("stopped waiting for the lock %q: %v", w.name, w.stoppedBy))
	case r.Hold != nil:
		return r.Hold, nil
	case w.lastErr != nil && !errors.Is(r.Err, tether.ErrHeld):
		return nil, explain(w.lastErr, w.name, w.server)
	case w.wait > 0 && !w.reached && !misused:
		return nil, &exitError{exitUnavailable, fmt.Sprintf("no answer about the lock %q within --wait %v: wait longer, or check Redis at %s",
			w.name, w.wait, w.server.Addr)}
	}
	return nil, explain(r.Err, w.name, w.server)
}

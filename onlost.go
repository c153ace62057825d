package tether

import (
	"context"
	"errors"
	"log/slog"
	"os"
)

// tellLost calls OnLost. It does not for a Close, which the program has called
// itself.
func (p *participant) tellLost(t *holdState) {
	fn := t.call.lock.onLost
	if fn == nil || errors.Is(context.Cause(t.ctx), ErrClosed) {
		return
	}
	go callLost(fn, t.publicHold(), p.log)
}

func callLost(fn func(*Hold), h *Hold, log *slog.Logger) {
	defer func() {
		if p := recover(); p != nil {
			logPanic(log, "panic in OnLost", p, slog.String(keyLock, h.Name()), slog.String(keyHolder, h.id))
		}
	}()
	fn(h)
}

// interrupted is the exit code of a program that cannot interrupt itself. It is that
// of a program that does not handle the signal.
const interrupted = 2

// Interrupt is a ready function for [OnLost]: it sends [os.Interrupt] to the
// own process, as Ctrl-C does. It is for programs that must not go on without
// the lock.
//
// It concerns the whole process and not only the work under the lock. A program
// that handles the signal, with [os/signal.Notify] or [os/signal.NotifyContext],
// sees it as any other interrupt. One that does not handle it ends at once, with
// no deferred call run. One that ignores it goes on; shells start background
// commands of scripts so.
//
// On Windows no process can interrupt itself: there it ends the program with
// exit code 2.
func Interrupt(*Hold) {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(os.Interrupt)
	}
	if err != nil {
		os.Exit(interrupted)
	}
}

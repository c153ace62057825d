//go:build unix && !aix && !solaris

package main

import (
	"os"
	"syscall"
	"time"

	"github.com/tetherlock/tether"
)

// supervisor sees to it that the command runs only as long as the lock is
// held, and that nothing is left of it afterwards.
type supervisor struct {
	group   *group
	hold    *tether.Hold
	signals chan os.Signal
	grace   time.Duration
	tty     terminal

	lost   bool
	exited bool // the command, with status
	status syscall.WaitStatus
	ending *ending // nil while the command may go on
	// awake is due after this process has tried to stop, in case nobody could
	// continue it and so it goes on.
	awake <-chan time.Time
}

func newSupervisor(g *group, h *tether.Hold, signals chan os.Signal, grace time.Duration) *supervisor {
	return &supervisor{group: g, hold: h, signals: signals, grace: grace, tty: terminal{fd: -1}}
}

// run returns when the whole group is gone.
func (s *supervisor) run() {
	lost, changes := s.hold.Lost(), s.group.changes
	looks := time.NewTicker(lookEvery)
	looks.Stop()
	defer looks.Stop()
	for s.ending == nil || !s.ending.over {
		select {
		case <-lost:
			lost = nil
			s.lost = true
			s.end(looks)
		case status, open := <-changes:
			switch {
			case !open:
				changes = nil
				s.exited = true
				s.end(looks)
			case status.Stopped():
				s.stopped(status.StopSignal())
			default:
				s.status = status
			}
		case sig := <-s.signals:
			s.pass(sig)
		case <-s.awake:
			s.resume()
		case <-looks.C:
			s.ending.look(time.Now(), s.exited)
		}
	}
	s.tty.takeBack()
	s.group.guard.dismiss()
}

// end ends the group: because the lock is lost, or because the command has
// ended and what it left behind must not outlive the lock.
func (s *supervisor) end(looks *time.Ticker) {
	if s.ending == nil {
		s.ending = endGroup(s.group.pid, s.grace)
		looks.Reset(lookEvery)
	}
	s.ending.look(time.Now(), s.exited)
}

// pass hands a signal on to the group.
func (s *supervisor) pass(sig os.Signal) {
	n, ok := sig.(syscall.Signal)
	if !ok {
		return
	}
	switch n {
	case syscall.SIGCONT:
		s.resume()
	case syscall.SIGTSTP:
		s.group.pass(n)
		s.suspend(os.Getpid())
		s.awake = time.After(resumeAfter)
	default:
		s.group.pass(n)
	}
}

// stopped reacts to a command that has stopped. One that wants the terminal
// gets it if it is ours to give. If it is somebody else's, this process stops
// as well, so that the shell learns of it. If there is none (any more), the
// command goes on and sees that. One that was stopped by hand is left alone:
// the lock must go on answering.
func (s *supervisor) stopped(by syscall.Signal) {
	switch by {
	case syscall.SIGTTIN, syscall.SIGTTOU:
		switch pgid := s.tty.foreground(); pgid {
		case syscall.Getpgrp():
			s.tty.lend(s.group.pid)
			s.group.pass(syscall.SIGCONT)
		case 0, s.group.pid:
			s.group.pass(syscall.SIGCONT)
		default:
			s.suspend(0)
		}
	case syscall.SIGTSTP:
		if s.tty.lent {
			s.tty.takeBack()
			s.tty.wanted = true
			s.suspend(0)
			s.awake = time.After(resumeAfter)
		}
	}
}

// resumeAfter is when a process goes on that could not be stopped.
const resumeAfter = 100 * time.Millisecond

// suspend stops this process, or with 0 its group for the sake of the shell.
// Not with SIGSTOP: where no shell is left to continue it, it would hold the
// lock for ever. SIGTTIN the kernel discards there. SIGTSTP would do too, but
// package signal does not bring back what that does by default.
func (s *supervisor) suspend(pid int) {
	_ = syscall.Kill(pid, syscall.SIGTTIN) // can't be refused for oneself
}

// resume continues the group.
func (s *supervisor) resume() {
	s.awake = nil
	if s.tty.wanted && s.tty.foreground() == syscall.Getpgrp() {
		s.tty.lend(s.group.pid)
	}
	s.group.pass(syscall.SIGCONT)
}

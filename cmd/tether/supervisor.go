//go:build unix && !aix && !solaris

package main

import (
	"os"
	"syscall"
	"time"

	"github.com/tetherlock/tether"
)

// supervisor runs the command as long as the lock is held. When the lock is lost
// or the command exits, it ends the whole process group.
type supervisor struct {
	group   *processGroup
	hold    *tether.Hold
	signals chan os.Signal
	grace   time.Duration
	tty     terminal

	lost          bool
	commandExited bool // status is set
	status        syscall.WaitStatus
	termination   *termination // nil while the command may go on
	// resumeTimer fires after this process has tried to stop itself. If the
	// kernel did not stop it, because no shell could continue it, the command
	// must go on.
	resumeTimer <-chan time.Time
}

func newSupervisor(g *processGroup, h *tether.Hold, signals chan os.Signal, grace time.Duration) *supervisor {
	return &supervisor{group: g, hold: h, signals: signals, grace: grace, tty: terminal{fd: -1}}
}

// run returns when the whole group is gone.
func (s *supervisor) run() {
	lost, statuses := s.hold.Lost(), s.group.statuses
	ticker := time.NewTicker(groupCheckInterval)
	ticker.Stop()
	defer ticker.Stop()
	for s.termination == nil || !s.termination.done {
		select {
		case <-lost:
			lost = nil
			s.lost = true
			s.terminate(ticker)
		case status, open := <-statuses:
			switch {
			case !open:
				statuses = nil
				s.commandExited = true
				s.terminate(ticker)
			case status.Stopped():
				s.commandStopped(status.StopSignal())
			default:
				s.status = status
			}
		case sig := <-s.signals:
			s.forward(sig)
		case <-s.resumeTimer:
			s.resume()
		case <-ticker.C:
			s.termination.check(time.Now(), s.commandExited)
		}
	}
	s.tty.restoreForeground()
	s.group.watchdog.stop()
}

// terminate ends the group: the lock is lost, or the command has exited and what
// it left behind must not outlive the lock.
func (s *supervisor) terminate(ticker *time.Ticker) {
	if s.termination == nil {
		s.termination = terminateGroup(s.group.pid, s.grace)
		ticker.Reset(groupCheckInterval)
	}
	s.termination.check(time.Now(), s.commandExited)
}

// forward sends a signal on to the group.
func (s *supervisor) forward(sig os.Signal) {
	n, ok := sig.(syscall.Signal)
	if !ok {
		return
	}
	switch n {
	case syscall.SIGCONT:
		s.resume()
	case syscall.SIGTSTP:
		s.group.signal(n)
		s.suspend(os.Getpid())
		s.resumeTimer = time.After(resumeDelay)
	default:
		s.group.signal(n)
	}
}

// commandStopped reacts to a stop of the command.
//
// SIGTTIN and SIGTTOU mean that it wants the terminal. If this process is in the
// foreground, the command gets it. If another group is, this process stops too,
// so that the shell sees a stopped job. If there is no terminal any more, the
// command continues, and its read fails.
//
// SIGTSTP while the command is in the foreground is Ctrl-Z: this process stops
// too. A command that was stopped in another way stays stopped, and this process
// goes on: it must answer pings, or it loses the lock.
func (s *supervisor) commandStopped(by syscall.Signal) {
	switch by {
	case syscall.SIGTTIN, syscall.SIGTTOU:
		switch pgid := s.tty.foreground(); pgid {
		case syscall.Getpgrp():
			s.tty.setForeground(s.group.pid)
			s.group.signal(syscall.SIGCONT)
		case 0, s.group.pid:
			s.group.signal(syscall.SIGCONT)
		default:
			s.suspend(0)
		}
	case syscall.SIGTSTP:
		if s.tty.lentToCommand {
			s.tty.restoreForeground()
			s.tty.commandWants = true
			s.suspend(0)
			s.resumeTimer = time.After(resumeDelay)
		}
	}
}

// resumeDelay is how long after suspend a process that was not stopped resumes
// its command.
const resumeDelay = 100 * time.Millisecond

// suspend stops this process, or with 0 its whole group, which is what a shell
// expects of a job. It sends SIGTTIN and not SIGSTOP: where no shell is left to
// continue it, a process stopped by SIGSTOP would hold the lock for ever, whereas
// the kernel discards SIGTTIN there. The kernel would discard SIGTSTP as well, but
// package signal cannot restore its default action.
func (s *supervisor) suspend(pid int) {
	_ = syscall.Kill(pid, syscall.SIGTTIN) // a process may always signal itself
}

// resume continues the group.
func (s *supervisor) resume() {
	s.resumeTimer = nil
	if s.tty.commandWants && s.tty.foreground() == syscall.Getpgrp() {
		s.tty.setForeground(s.group.pid)
	}
	s.group.signal(syscall.SIGCONT)
}

//go:build unix && !aix && !solaris

package main

import (
	"errors"
	"syscall"
	"time"
)

const (
	// lookEvery is the time between two looks at a group that is ending.
	lookEvery = 5 * time.Millisecond
	// stuckAfter is how long after SIGKILL a group is given up: its processes
	// hang in the kernel, or nobody reaps them.
	stuckAfter = 5 * time.Second
)

// ending is the end of a process group: SIGTERM, and SIGKILL after the grace.
type ending struct {
	pgid   int
	kill   time.Time // when SIGKILL is due
	killed bool
	over   bool
	stuck  bool // over, although somebody is left
}

// endGroup begins it. Without a grace there is no SIGTERM.
func endGroup(pgid int, grace time.Duration) *ending {
	e := &ending{pgid: pgid, kill: time.Now().Add(grace)}
	if grace > 0 {
		e.send(syscall.SIGTERM)
		e.send(syscall.SIGCONT) // or who is stopped would not get it
	}
	return e
}

func (e *ending) send(s syscall.Signal) {
	_ = syscall.Kill(-e.pgid, s) // look finds out whether somebody is left
}

// look goes on with it. It is not over before it is known how the leader has
// ended. As long as others are in the group, its id can't be given to
// strangers.
func (e *ending) look(now time.Time, exited bool) {
	if !e.killed && !now.Before(e.kill) {
		e.killed = true
		e.send(syscall.SIGKILL)
	}
	if exited {
		e.over = errors.Is(syscall.Kill(-e.pgid, 0), syscall.ESRCH)
	}
	if !e.over && now.After(e.kill.Add(stuckAfter)) {
		e.over, e.stuck = true, true
	}
}

//go:build unix && !aix && !solaris

package main

import (
	"errors"
	"syscall"
	"time"
)

const (
	// groupCheckInterval is the time between two checks of a group that is
	// being terminated.
	groupCheckInterval = 5 * time.Millisecond
	// stuckTimeout is how long after SIGKILL the wait for a group ends. Its
	// processes hang in the kernel, or their parent does not wait for them.
	stuckTimeout = 5 * time.Second
)

// termination ends a process group: SIGTERM, and SIGKILL after the grace.
type termination struct {
	pgid   int
	killAt time.Time // when SIGKILL is due
	killed bool
	done   bool
	stuck  bool // done, although processes are left
}

// terminateGroup begins a termination. Without a grace there is no SIGTERM.
func terminateGroup(pgid int, grace time.Duration) *termination {
	t := &termination{pgid: pgid, killAt: time.Now().Add(grace)}
	if grace > 0 {
		t.signal(syscall.SIGTERM)
		t.signal(syscall.SIGCONT) // a stopped process gets SIGTERM only when it continues
	}
	return t
}

func (t *termination) signal(s syscall.Signal) {
	_ = syscall.Kill(-t.pgid, s) // check finds out whether processes are left
}

// check sends SIGKILL when it is due, and finds out whether the group is gone.
// exited says that the leader's status is known; before that the termination is
// not done. The group's id can't be reused by other processes as long as one
// process is in the group.
func (t *termination) check(now time.Time, exited bool) {
	if !t.killed && !now.Before(t.killAt) {
		t.killed = true
		t.signal(syscall.SIGKILL)
	}
	if exited {
		t.done = errors.Is(syscall.Kill(-t.pgid, 0), syscall.ESRCH)
	}
	if !t.done && now.After(t.killAt.Add(stuckTimeout)) {
		t.done, t.stuck = true, true
	}
}

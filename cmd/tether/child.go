//go:build unix && !aix && !solaris

package main

import (
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// group is the command with all that it starts: a process group of its own.
type group struct {
	pid   int // of the command, and the group's id
	guard *guard
	// changes are the command's stops and its end, after which it is closed.
	changes chan syscall.WaitStatus
}

const childName = "__child"

// startGroup starts the guard and then the command.
//
// In between stands a gate. Without it a SIGKILL that hits tether run just
// after it has forked would leave a command that no guard has heard of. So
// what is forked is this program again, which becomes the command once the
// guard knows it, and ends when the gate breaks.
func startGroup(path string, argv, env []string, grace time.Duration) (*group, error) {
	adoptOrphans()
	guard, err := startGuard(grace)
	if err != nil {
		return nil, err
	}
	pid, open, err := fork(path, argv, env)
	g := &group{pid: pid, guard: guard, changes: make(chan syscall.WaitStatus, 1)}
	// Not earlier: package os forks and waits by itself when it first starts a
	// process.
	go g.reap()
	if err != nil {
		guard.dismiss()
		return nil, err
	}
	if err = guard.watch(pid); err == nil {
		_, err = open.Write([]byte{1})
	}
	_ = open.Close() // closed without a byte, it ends the child
	if err != nil {
		guard.dismiss()
		return nil, err
	}
	return g, nil
}

// fork starts the child that waits at the gate.
func fork(path string, argv, env []string) (pid int, open *os.File, err error) {
	gate, open, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = gate.Close() }() // only read by the child
	// Inherited under its own number: the usual way, as descriptor 3, would
	// push aside what the command may have been handed there.
	fd := gate.Fd()
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_SETFD, 0); errno != 0 {
		_ = open.Close() // nothing was written
		return 0, nil, errno
	}
	args := append([]string{"tether", childName, strconv.Itoa(int(fd)), path}, argv...)
	p, err := os.StartProcess(self(), args, &os.ProcAttr{
		Env:   env,
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		_ = open.Close() // nothing was written
		return 0, nil, err
	}
	pid = p.Pid // which Release forgets
	return pid, open, p.Release()
}

// childCommand is the forked side: it waits at the gate and becomes the
// command.
func childCommand() *cobra.Command {
	return &cobra.Command{
		Use: childName, Hidden: true, DisableFlagParsing: true, Args: cobra.MinimumNArgs(3),
		RunE: func(_ *cobra.Command, args []string) error {
			fd, err := strconv.Atoi(args[0])
			if err != nil {
				return usage("%s is for tether run", childName)
			}
			gate := os.NewFile(uintptr(fd), "gate")
			if n, _ := gate.Read(make([]byte, 1)); n == 0 {
				return &outcome{code: exitFailed} // tether run is no more
			}
			_ = gate.Close() // or the command would inherit it
			return cannotRun(args[2], syscall.Exec(args[1], args[2:], os.Environ()))
		},
	}
}

// self is this program's file. On Linux that is a link to the very program
// that runs, even if its file has been replaced or removed meanwhile. (And
// killall tether does not meet the guard, which bears the link's name.)
func self() string {
	const link = "/proc/self/exe"
	if _, err := os.Stat(link); err == nil {
		return link
	}
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// reap waits for all children of this process, among them orphans that it has
// adopted. It is the only one to wait: package os doesn't tell when a process
// stops.
func (g *group) reap() {
	for {
		var status syscall.WaitStatus
		switch pid, err := syscall.Wait4(-1, &status, syscall.WUNTRACED, nil); {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return // there are none
		case pid == g.guard.pid:
			close(g.guard.gone)
		case pid == g.pid:
			g.changes <- status
			if !status.Stopped() {
				close(g.changes)
			}
		}
	}
}

// pass sends a signal to the whole group.
func (g *group) pass(s syscall.Signal) {
	_ = syscall.Kill(-g.pid, s) // nobody may be left to get it
}

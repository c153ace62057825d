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

// processGroup is the command and all that it starts.
type processGroup struct {
	pid      int // of the command, and the group's id
	watchdog *watchdog
	// statuses has the command's stops and its exit. It is closed after the exit.
	statuses chan syscall.WaitStatus
}

const gatedChildName = "__child"

// startGroup starts the watchdog and then the command.
//
// The command must not run before the watchdog knows its process group: a
// SIGKILL that hits tether run between the fork and the message to the watchdog
// would leave a command that nobody ends. So the forked child is this program
// again. It waits at a gate, which is a pipe. One byte opens the gate, and the
// child execs the command; the pipe's end without a byte ends the child.
func startGroup(path string, argv, env []string, grace time.Duration) (*processGroup, error) {
	becomeSubreaper()
	w, err := startWatchdog(grace)
	if err != nil {
		return nil, err
	}
	pid, openGate, err := startGatedChild(path, argv, env)
	g := &processGroup{pid: pid, watchdog: w, statuses: make(chan syscall.WaitStatus, 1)}
	// Not earlier: when package os starts its first process, it forks a child
	// of its own and waits for it. waitChildren would take that child's status.
	go g.waitChildren()
	if err != nil {
		w.stop()
		return nil, err
	}
	if err = w.watch(pid); err == nil {
		_, err = openGate.Write([]byte{1})
	}
	_ = openGate.Close() // without a byte this ends the child
	if err != nil {
		w.stop()
		return nil, err
	}
	return g, nil
}

// startGatedChild starts the child that waits at the gate. Writing a byte to
// open opens the gate.
func startGatedChild(path string, argv, env []string) (pid int, openGate *os.File, err error) {
	gate, openGate, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = gate.Close() }() // only read by the child
	// The child inherits the gate under its own descriptor number. The usual
	// way, ProcAttr.Files, would put it at descriptor 3, which the command may
	// have inherited from the caller.
	fd := gate.Fd()
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_SETFD, 0); errno != 0 {
		_ = openGate.Close() // nothing was written
		return 0, nil, errno
	}
	args := append([]string{"tether", gatedChildName, strconv.Itoa(int(fd)), path}, argv...)
	p, err := os.StartProcess(ownExecutable(), args, &os.ProcAttr{
		Env:   env,
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		_ = openGate.Close() // nothing was written
		return 0, nil, err
	}
	pid = p.Pid // Release clears it
	return pid, openGate, p.Release()
}

// gatedChildCommand is the child's side: it waits at the gate, then execs the
// command.
func gatedChildCommand() *cobra.Command {
	return &cobra.Command{
		Use: gatedChildName, Hidden: true, DisableFlagParsing: true, Args: cobra.MinimumNArgs(3),
		RunE: func(_ *cobra.Command, args []string) error {
			fd, err := strconv.Atoi(args[0])
			if err != nil {
				return usageError("%s is for tether run", gatedChildName)
			}
			gate := os.NewFile(uintptr(fd), "gate")
			if n, _ := gate.Read(make([]byte, 1)); n == 0 {
				return &exitError{code: exitFailed} // tether run has died
			}
			_ = gate.Close() // otherwise the command would inherit it
			return cannotRunError(args[2], syscall.Exec(args[1], args[2:], os.Environ()))
		},
	}
}

// ownExecutable is the path of this program. On Linux it is /proc/self/exe, which
// stays valid if the file has been replaced or removed since the start. It also
// names the watchdog's process "exe", so that "killall tether" does not kill it.
func ownExecutable() string {
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

// waitChildren waits for all children of this process, also for orphans that it
// has as a subreaper. Nothing else may wait for a child: the status would be
// lost here. It does not use package os, which does not report stopped processes.
func (g *processGroup) waitChildren() {
	for {
		var status syscall.WaitStatus
		switch pid, err := syscall.Wait4(-1, &status, syscall.WUNTRACED, nil); {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return // no children are left
		case pid == g.watchdog.pid:
			close(g.watchdog.exited)
		case pid == g.pid:
			g.statuses <- status
			if !status.Stopped() {
				close(g.statuses)
			}
		}
	}
}

// signal sends a signal to the whole group.
func (g *processGroup) signal(s syscall.Signal) {
	_ = syscall.Kill(-g.pid, s) // the group may have ended
}

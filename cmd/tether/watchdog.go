//go:build unix && !aix && !solaris

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

const (
	watchdogName = "__watchdog"
	// watchdogDone tells the watchdog that the group has ended.
	watchdogDone = "done"
	// watchdogReady is what the watchdog writes once it ignores signals and
	// knows the group.
	watchdogReady = "ready"
)

// watchdog is a process that ends the command's group if tether run is killed. It
// reads the group's id from a pipe. Only tether run has the other end, so the
// end of the pipe without watchdogDone means that tether run has died.
type watchdog struct {
	pid    int
	pipe   *os.File
	ready  *os.File      // it writes watchdogReady here
	exited chan struct{} // closed when it has been waited for
}

// startWatchdog starts it in a session of its own, where neither the group's
// signals nor the terminal's reach it. It does not inherit standard output: a
// program further down a pipeline would wait for it.
func startWatchdog(grace time.Duration) (w *watchdog, err error) {
	in, pipe, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer closeAll(in) // the watchdog's end
	ready, out, err := os.Pipe()
	if err != nil {
		closeAll(pipe)
		return nil, err
	}
	defer closeAll(out) // the watchdog's end
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		closeAll(pipe, ready)
		return nil, err
	}
	defer closeAll(null)
	p, err := os.StartProcess(ownExecutable(), []string{"tether", watchdogName, grace.String()}, &os.ProcAttr{
		Dir:   "/", // otherwise the file system could not be unmounted
		Files: []*os.File{in, out, null},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		closeAll(pipe, ready)
		return nil, err
	}
	w = &watchdog{pid: p.Pid, pipe: pipe, ready: ready, exited: make(chan struct{})}
	return w, p.Release()
}

// closeAll closes files. An error means nothing: no written data can be lost.
func closeAll(files ...*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// watch sends the group's id to the watchdog, and waits until it is ready. A
// watchdog that does not ignore signals yet would die of one, for example of the
// SIGTERM that a service manager sends to all processes of a service.
func (w *watchdog) watch(pgid int) error {
	if _, err := fmt.Fprintln(w.pipe, pgid); err != nil {
		return err
	}
	if text, _ := io.ReadAll(w.ready); string(text) != watchdogReady {
		return errors.New("the watchdog has ended at its start")
	}
	return nil
}

// stop ends the watchdog and waits for its end.
func (w *watchdog) stop() {
	_, _ = io.WriteString(w.pipe, watchdogDone) // it may have been killed
	closeAll(w.pipe, w.ready)
	<-w.exited
}

// watchdogCommand is the watchdog's side.
func watchdogCommand() *cobra.Command {
	return &cobra.Command{
		Use: watchdogName, Hidden: true, DisableFlagParsing: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			signal.Ignore(forwardedSignals...)
			grace, err := time.ParseDuration(args[0])
			if err != nil {
				return usageError("%s is for tether run", watchdogName)
			}
			in := bufio.NewReader(os.Stdin)
			line, err := in.ReadString('\n')
			if err != nil {
				return nil // nothing was started
			}
			pgid, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil || pgid <= 1 {
				return usageError("%s is for tether run", watchdogName)
			}
			if _, err := os.Stdout.WriteString(watchdogReady); err != nil {
				return machineError("watch a command", err)
			}
			_ = os.Stdout.Close() // the reader waits for the end
			// A read error counts as the end of the pipe.
			if last, _ := io.ReadAll(in); string(last) != watchdogDone {
				terminateAndWait(pgid, grace)
			}
			return nil
		},
	}
}

// terminateAndWait terminates a group and waits for its end.
func terminateAndWait(pgid int, grace time.Duration) {
	ticker := time.NewTicker(groupCheckInterval)
	defer ticker.Stop()
	for t := terminateGroup(pgid, grace); ; <-ticker.C {
		if t.check(time.Now(), true); t.done {
			return
		}
	}
}

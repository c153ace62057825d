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
	guardName = "__guard"
	// dismissal tells the guard that there is nothing left to guard.
	dismissal = "done"
	// onGuard is what the guard says when nothing can surprise it any more.
	onGuard = "on guard"
)

// guard is a process that outlives this one if this one is killed. It reads
// the group's id from a pipe whose other end nobody else has: the pipe's end
// without a dismissal means that this process has died.
type guard struct {
	pid   int
	pipe  *os.File
	ready *os.File      // where it says that it is on guard
	gone  chan struct{} // closed when it has been reaped
}

// startGuard starts it in a session of its own, where neither the group's
// signals nor the terminal's reach it. It keeps no output open that a reader
// further down a pipeline waits for.
func startGuard(grace time.Duration) (g *guard, err error) {
	in, pipe, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer closeAll(in) // the guard's
	ready, out, err := os.Pipe()
	if err != nil {
		closeAll(pipe)
		return nil, err
	}
	defer closeAll(out) // the guard's
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		closeAll(pipe, ready)
		return nil, err
	}
	defer closeAll(null)
	p, err := os.StartProcess(self(), []string{"tether", guardName, grace.String()}, &os.ProcAttr{
		Dir:   "/", // not to keep a file system busy
		Files: []*os.File{in, out, null},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		closeAll(pipe, ready)
		return nil, err
	}
	g = &guard{pid: p.Pid, pipe: pipe, ready: ready, gone: make(chan struct{})}
	return g, p.Release()
}

// closeAll closes files to which nothing was written that could be lost.
func closeAll(files ...*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// watch tells the guard whom to guard, and waits until it does. A guard that
// still starts would die of a signal, such as service managers send to all
// processes that they find.
func (g *guard) watch(pgid int) error {
	if _, err := fmt.Fprintln(g.pipe, pgid); err != nil {
		return err
	}
	if said, _ := io.ReadAll(g.ready); string(said) != onGuard {
		return errors.New("the guard has ended at its start")
	}
	return nil
}

// dismiss ends the guard and waits for its end.
func (g *guard) dismiss() {
	_, _ = io.WriteString(g.pipe, dismissal) // it may have been killed
	closeAll(g.pipe, g.ready)
	<-g.gone
}

// guardCommand is the guard's own side.
func guardCommand() *cobra.Command {
	return &cobra.Command{
		Use: guardName, Hidden: true, DisableFlagParsing: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			signal.Ignore(passed...)
			grace, err := time.ParseDuration(args[0])
			if err != nil {
				return usage("%s is for tether run", guardName)
			}
			in := bufio.NewReader(os.Stdin)
			line, err := in.ReadString('\n')
			if err != nil {
				return nil // nothing was started
			}
			pgid, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil || pgid <= 1 {
				return usage("%s is for tether run", guardName)
			}
			if _, err := os.Stdout.WriteString(onGuard); err != nil {
				return machine("guard a command", err)
			}
			_ = os.Stdout.Close() // it ends what has been said
			// An error ends the guarding as the end of the pipe does.
			if last, _ := io.ReadAll(in); string(last) != dismissal {
				finishGroup(pgid, grace)
			}
			return nil
		},
	}
}

// finishGroup ends a group and waits for its end.
func finishGroup(pgid int, grace time.Duration) {
	looks := time.NewTicker(lookEvery)
	defer looks.Stop()
	for e := endGroup(pgid, grace); ; <-looks.C {
		if e.look(time.Now(), true); e.over {
			return
		}
	}
}

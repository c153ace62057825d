//go:build unix && !aix && !solaris

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/tetherlock/tether"
)

const runHelp = `Takes the lock NAME, runs the command, and releases the lock when the command
and all that it left in its process group are gone.

If the lock is lost, or tether run is killed, the whole group gets SIGTERM, and
SIGKILL after the grace. Until then the next holder's command may run beside
it; --grace 0 sends SIGKILL at once.

The command finds TETHER_LOCK and TETHER_HOLDER_ID in its environment, and with
--fenced TETHER_TOKEN: a number that is higher than that of every holder before,
for a store that refuses lower ones. Without --fenced it is not set.

Exit codes: the command's own (128+n if signal n killed it), or
  64  wrong usage
  69  Redis can't be reached, or can't serve the lock
  70  this machine can't start the command's processes
  75  somebody else holds the lock, and the waiting is over
  76  the lock was lost, and the command was ended
 126  the command can't be run
 127  the command was not found
 130  SIGINT ended the waiting (128+n: signal n)`

// job is one call of tether run.
type job struct {
	name        string
	argv        []string
	path        string // of the command's file
	wait        time.Duration
	waitForever bool // --wait is not set
	lockFlags   lockFlags
	grace       time.Duration
	server      *redis.Options
	signals     chan os.Signal
}

func runCommand() *cobra.Command {
	var j job
	var server redisFlag
	c := &cobra.Command{
		Use:   "run NAME [flags] -- CMD ARGS…",
		Short: "Take a lock, run a command, release the lock",
		Long:  runHelp,
		Example: "  tether run nightly-report -- ./report.sh\n  tether run migrate --wait 0 -- make migrate || echo somebody else does it\n" +
			`  tether run prices --fenced -- sh -c './update --token "$TETHER_TOKEN"'`,
		DisableFlagsInUseLine: true,
		Args:                  nameAndCommand,
	}
	server.add(c)
	c.Flags().DurationVar(&j.wait, "wait", 0, "how long to wait for the lock, as in 90s; 0 tries once (default for ever)")
	c.Flags().DurationVar(&j.grace, "grace", 10*time.Second, "time from SIGTERM to SIGKILL; 0 kills at once")
	j.lockFlags.add(c)
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		j.name, j.argv, j.waitForever = args[0], args[1:], !c.Flags().Changed("wait")
		if j.wait < 0 || j.grace < 0 {
			return usageError("--wait and --grace can't be negative: see tether run --help")
		}
		if err = j.lockFlags.validate(); err != nil {
			return err
		}
		if j.server, err = server.options(); err != nil {
			return err
		}
		return j.run(c.Context())
	}
	return c
}

func nameAndCommand(c *cobra.Command, args []string) error {
	switch dash := c.ArgsLenAtDash(); {
	case len(args) == 0 || dash == 0:
		return usageError("which lock? write: tether run NAME -- CMD ARGS…")
	case dash < 0 && len(args) > 1:
		return usageError("put -- in front of the command: tether run %s -- %s …", args[0], args[1])
	case len(args) == 1:
		return usageError("which command? write: tether run %s -- CMD ARGS…", args[0])
	case dash > 1:
		return usageError("one lock at a time, %q is too much: tether run %s -- %s …", args[1], args[0], args[dash])
	}
	return nil
}

func (j *job) run(ctx context.Context) (err error) {
	// Before the wait: a typing error should not show only hours later.
	if j.path, err = exec.LookPath(j.argv[0]); err != nil {
		return cannotRunError(j.argv[0], err)
	}
	j.signals = make(chan os.Signal, 64)
	notifyForwarded(j.signals)
	defer signal.Stop(j.signals)

	rdb := redis.NewClient(j.server)
	defer func() { _ = rdb.Close() }() // it has no open connections
	locks := tether.New(rdb)
	defer func() { _ = locks.Close() }() // always nil
	hold, err := j.acquire(ctx, locks)
	if err != nil {
		return err
	}
	g, err := startGroup(j.path, j.argv, j.environment(hold), j.grace)
	if err != nil {
		_ = hold.Release(ctx) // the first error is reported
		return machineError("start "+j.argv[0], err)
	}
	s := newSupervisor(g, hold, j.signals, j.grace)
	s.run()
	return j.result(s, hold.Release(ctx))
}

// options are the lock's options.
func (j *job) options() []tether.LockOption {
	opts := j.lockFlags.options()
	if j.wait > 0 {
		opts = append(opts, tether.WithMaxWait(j.wait))
	}
	return opts
}

const tokenVariable = "TETHER_TOKEN="

// environment is the command's environment. Of two equal names the last counts. A
// token that is already set belongs to another lock: tether run may run under
// tether run.
func (j *job) environment(h *tether.Hold) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, tokenVariable) })
	env = append(env, "TETHER_LOCK="+j.name, "TETHER_HOLDER_ID="+h.ID())
	if j.lockFlags.fenced {
		env = append(env, tokenVariable+strconv.FormatInt(h.Token(), 10))
	}
	return env
}

// result is the error that tether run ends with.
func (j *job) result(s *supervisor, released error) error {
	if s.termination.stuck {
		printErr("processes of the command (group %d) don't end even at SIGKILL: look after them", s.group.pid)
	}
	// A loss that the release reports may have happened before the command
	// exited.
	if lost, ok := errors.AsType[*tether.LostError](released); ok {
		reason := "so the command was ended"
		if !s.lost {
			reason = "as the command ended"
		}
		return &exitError{exitLost, fmt.Sprintf("lost the lock %q (%v), %s: check Redis, then run it again",
			j.name, errorText(lost.Unwrap()), reason)}
	}
	if released != nil {
		printErr("%s", errorText(released)) // the connection is closed, so the lock is free
	}
	switch {
	case s.status.Signaled():
		return signalExit(s.status.Signal(), "")
	case s.status.ExitStatus() != 0:
		return &exitError{code: s.status.ExitStatus()}
	}
	return nil
}

// forwardedSignals are sent on to the command.
var forwardedSignals = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT,
}

// notifyForwarded subscribes to them. Signals that are ignored stay ignored:
// otherwise nohup would have no effect.
func notifyForwarded(signals chan<- os.Signal) {
	for _, s := range forwardedSignals {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
}

//go:build unix && !aix && !solaris

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ignoresTERM is a command that ignores SIGTERM, with a child that ignores it
// too. It prints their process ids.
const ignoresTERM = `trap "" TERM; sh -c 'trap "" TERM; echo $PPID $$; while :; do sleep 0.05; done' & while :; do wait; done`

func TestLossEndsTheWholeGroup(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		const grace = 300 * time.Millisecond
		p := s.start(t, "run", "x", "--grace", grace.String(), "--", "sh", "-c", ignoresTERM)
		pids := p.printsPids(t)
		require.Len(t, pids, 2)
		cut := s.killHolderConnection(t, "x")
		require.GreaterOrEqual(t, awaitDead(t, pids...).Sub(cut), grace)
		require.Equal(t, exitLost, p.code(t))
		require.Regexp(t, `^tether: lost the lock "x" \(.*\), so the command was ended: check Redis, then run it again\n$`, p.err(t))
		require.Empty(t, s.holders(t, "x"))
	})
}

func TestALossGivesTimeToCleanUp(t *testing.T) {
	s := embedded(t)
	p := s.start(t, "run", "x", "--", "sh", "-c", `trap "echo cleaned; exit 0" TERM; echo ready; sleep 1000 & wait`)
	p.prints(t, 1)
	s.killHolderConnection(t, "x")
	require.Equal(t, exitLost, p.code(t), "whatever the command's own code")
	require.Equal(t, "ready\ncleaned\n", p.out(t))
}

// A stopped process gets SIGTERM only once it continues, so it is continued.
func TestLossEndsAStoppedCommand(t *testing.T) {
	s := embedded(t)
	p := s.start(t, "run", "x", "--", "sh", "-c", `trap "echo cleaned; exit 0" TERM; echo $$; sleep 1000 & wait`)
	pid := p.printsPids(t)[0]
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	eventually(t, func() bool { return stopped(pid) }, "the command stops")
	s.killHolderConnection(t, "x")
	require.Equal(t, exitLost, p.code(t))
	require.Contains(t, p.out(t), "cleaned")
}

// When the command has exited and a process of its group still runs, the lock is
// released only after that process has ended.
func TestTheRestEndsBeforeTheRelease(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		p := s.start(t, "run", "x", "--grace", "200ms", "--", "sh", "-c",
			`sh -c 'trap "" TERM; echo $$; while :; do sleep 0.05; done' & until [ -e "$0" ]; do sleep 0.01; done; exit 9`, filepath.Join(t.TempDir(), "stop"))
		rest := p.printsPids(t)[0]
		next := s.start(t, "run", "x", "--", "sh", "-c", `kill -0 $0 2>/dev/null && echo overlap; echo done`, itoa(rest))
		s.awaitParticipants(t, "x", 2)
		require.NoError(t, os.WriteFile(p.cmd.Args[len(p.cmd.Args)-1], nil, 0o600))
		require.Equal(t, 9, p.code(t))
		require.False(t, alive(rest))
		require.Zero(t, next.code(t))
		require.Equal(t, "done\n", next.out(t))
		require.Empty(t, p.err(t))
	})
}

func TestKilledRunEndsItsGroup(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		const grace = 300 * time.Millisecond
		p := s.start(t, "run", "x", "--grace", grace.String(), "--", "sh", "-c", ignoresTERM)
		pids := p.printsPids(t)
		all := append(children(p.pid()), pids...)
		require.Len(t, all, 4, "the watchdog, the command twice, its child")
		began := time.Now()
		p.signal(t, syscall.SIGKILL)
		require.Equal(t, -9, p.code(t))
		require.GreaterOrEqual(t, awaitDead(t, pids...).Sub(began), grace)
		awaitDead(t, all...) // the watchdog too
		require.Empty(t, s.holders(t, "x"))
	})
}

// Signals to all processes, as a service manager sends them, must not kill the
// watchdog.
func TestTheWatchdogSurvivesSignals(t *testing.T) {
	s := embedded(t)
	p := s.start(t, "run", "x", "--grace", "0", "--", "sh", "-c", ignoresTERM)
	pids := p.printsPids(t)
	for _, child := range children(p.pid()) {
		if child == pids[0] {
			continue
		}
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
			require.NoError(t, syscall.Kill(child, sig))
		}
	}
	p.signal(t, syscall.SIGKILL)
	awaitDead(t, pids...)
}

func TestNothingIsLeftBehind(t *testing.T) {
	s := embedded(t)
	p := s.start(t, "run", "x", "--", "sh", "-c", `echo $$; until [ -e "$0" ]; do sleep 0.01; done`, filepath.Join(t.TempDir(), "stop"))
	p.printsPids(t)
	all := children(p.pid())
	require.Len(t, all, 2, "the watchdog and the command")
	require.NoError(t, os.WriteFile(p.cmd.Args[len(p.cmd.Args)-1], nil, 0o600))
	require.Zero(t, p.code(t))
	for _, pid := range all {
		require.False(t, alive(pid))
	}
}

// The command inherits no descriptors from tether run. With one of the watchdog's
// pipe it would keep that open, and the watchdog would not notice that tether run
// has died.
func TestNoDescriptorLeaks(t *testing.T) {
	list := []string{"sh", "-c", "ls /dev/fd/ | tr '\\n' ' '"}
	s := embedded(t)
	direct := s.startCommand(t, exec.Command(list[0], list[1:]...))
	require.Zero(t, direct.code(t))
	p := s.start(t, append([]string{"run", "x", "--"}, list...)...)
	require.Zero(t, p.code(t))
	require.Equal(t, direct.out(t), p.out(t))
}

// An upgrade while tether run waits must not keep the command from starting.
func TestReplacedProgram(t *testing.T) {
	if _, err := os.Stat("/proc/self/exe"); err != nil {
		return // the child runs the program at the same path, which is gone here
	}
	s := embedded(t)
	release := s.hold(t, "x")
	text, err := os.ReadFile(binary)
	require.NoError(t, err)
	other := filepath.Join(t.TempDir(), "tether")
	require.NoError(t, os.WriteFile(other, text, 0o755))
	p := s.startCommand(t, exec.Command(other, "run", "x", "--", "echo", "done"))
	s.awaitParticipants(t, "x", 2)
	require.NoError(t, os.Remove(other))
	release()
	require.Zero(t, p.code(t))
	require.Equal(t, "done\n", p.out(t))
}

// TestOverlap measures how long the commands of the old and the new holder run
// beside each other after the old holder's connection is killed. A negative
// overlap is a time in which no command ran.
func TestOverlap(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		for _, c := range []struct {
			name    string
			command string
			grace   time.Duration
		}{
			{"ignores SIGTERM, --grace 0", ignoresTERM, 0},
			{"ignores SIGTERM, --grace 500ms", ignoresTERM, 500 * time.Millisecond},
			{"ends at SIGTERM", `sleep 1000 & echo $$ $!; wait`, 10 * time.Second},
		} {
			var overlaps []string
			for range 3 {
				noticed, started := s.overlap(t, c.command, c.grace)
				overlaps = append(overlaps, ms(noticed-started))
				limit := 200 * time.Millisecond // on a busy machine
				if strings.HasPrefix(c.name, "ignores") {
					limit += c.grace
				}
				require.Less(t, noticed, limit, c.name)
				require.Less(t, started, 3*time.Second, c.name) // the machine may be busy
			}
			t.Logf("%s: overlap %s", c.name, strings.Join(overlaps, ", "))
		}
	})
}

// overlap kills the holder's connection. It returns how long after that the old
// group was dead, and how long after that the new command started.
func (s server) overlap(t *testing.T, command string, grace time.Duration) (over, started time.Duration) {
	t.Helper()
	old := s.start(t, "run", "x", "--grace", grace.String(), "--", "sh", "-c", command)
	pids := old.printsPids(t)
	next := s.start(t, "run", "x", "--", "sh", "-c", "echo $$")
	s.awaitParticipants(t, "x", 2)
	cut := s.killHolderConnection(t, "x")
	var end, begin time.Time
	eventually(t, func() bool {
		now := time.Now()
		if end.IsZero() && !alive(pids[0]) && !alive(pids[1]) {
			end = now
		}
		if begin.IsZero() && next.out(t) != "" {
			begin = now
		}
		return !end.IsZero() && !begin.IsZero()
	}, "one ends and the other begins")
	require.Equal(t, exitLost, old.code(t))
	require.Zero(t, next.code(t))
	return end.Sub(cut), begin.Sub(cut)
}

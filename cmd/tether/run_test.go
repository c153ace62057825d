//go:build unix && !aix && !solaris

package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRunTakesAndReleases(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		p := s.start(t, "run", "backup", "--", "sh", "-c", `echo "$TETHER_LOCK $TETHER_HOLDER_ID"`)
		require.Regexp(t, `^backup [0-9a-f]{32}$`, p.prints(t, 1)[0])
		require.Zero(t, p.code(t))
		require.Empty(t, s.holders(t, "backup"))
	})
}

func TestRunHoldsWhileTheCommandRuns(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		p := s.start(t, "run", "backup", "--", "sh", "-c", `echo "$TETHER_HOLDER_ID"; exec sleep 1000`)
		id := p.prints(t, 1)[0]
		list := s.holders(t, "backup")
		require.Len(t, list, 1)
		require.Equal(t, id, list[0].ID)
		p.signal(t, syscall.SIGTERM)
		require.Equal(t, 143, p.code(t))
		require.Empty(t, s.holders(t, "backup"))
		require.Empty(t, p.err(t))
	})
}

func TestRunPassesDataThrough(t *testing.T) {
	s := embedded(t)
	cmd := exec.Command(binary, "run", "x", "--", "sh", "-c", "cat; echo problem >&2; echo more >&3")
	cmd.Stdin = strings.NewReader("input\n")
	third := filepath.Join(t.TempDir(), "third")
	f, err := os.Create(third)
	require.NoError(t, err)
	defer f.Close()
	cmd.ExtraFiles = []*os.File{f}
	p := s.startCommand(t, cmd)
	require.Zero(t, p.code(t))
	require.Equal(t, "input\n", p.out(t))
	require.Equal(t, "problem\n", p.err(t))
	require.Equal(t, "more\n", contents(t, third), "an inherited descriptor")
}

func TestExitCodes(t *testing.T) {
	s := embedded(t)
	s.hold(t, "held")
	script := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(script, []byte("no program\n"), 0o755))
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"run x -- true", 0, ""},
		{"run x -- sh -c exit\u00a07", 7, ""},
		{"run x -- sh -c kill\u00a0-KILL\u00a0$$", 137, ""},
		{"run x -- sh -c kill\u00a0-TERM\u00a0$$", 143, ""},
		{"run held --wait 0 -- true", exitHeld, `"held" is held by `},
		{"run --wait 150ms held -- true", exitHeld, "try again later, or wait for it with --wait"},
		{"run x -- tether-no-such-command", exitNotFound, "no such command: tether-no-such-command: check its name and PATH"},
		{"run x -- /no/such/command", exitNotFound, "no such command"},
		{"run x -- /dev/null", exitCannotRun, "can't run /dev/null"},
		{"run x -- " + script, exitCannotRun, "with #! if it is a script"},
		{"run", exitUsage, "which lock?"},
		{"run -- true", exitUsage, "which lock?"},
		{"run x", exitUsage, "which command? write: tether run x -- CMD ARGS…"},
		{"run x --", exitUsage, "which command?"},
		{"run x true", exitUsage, "put -- in front of the command: tether run x -- true …"},
		{"run x y -- true", exitUsage, "one lock at a time"},
		{"run x --wait 5 -- true", exitUsage, "missing unit"},
		{"run x --wait -5s -- true", exitUsage, "can't be negative"},
		{"run x --grace -5s -- true", exitUsage, "can't be negative"},
		{"run x --nonsense -- true", exitUsage, "see tether run --help"},
		{"run x --shared --fenced -- true", exitUsage, "--shared and --fenced exclude each other"},
		{"run x --poll-interval 0 -- true", exitUsage, "--poll-interval needs at least 1ms"},
		{"run x --unavailable-timeout 1ms -- true", exitUsage, "--unavailable-timeout needs at least 50ms"},
		{"run x --self-check 0 -- true", exitUsage, "--self-check needs at least 10ms"},
		{"run x --label " + strings.Repeat("long", 65) + " -- true", exitUsage, "--label needs UTF-8 of at most 256 bytes"},
		{"run \u00a0 -- true", 0, ""}, // an unusual name
		{"rum x -- true", exitUsage, "there is: tether run"},
		{"nonsense", exitUsage, `no command "nonsense": see tether --help`},
		{"probe", exitUsage, "tether probe NAME"},
		{"probe x y", exitUsage, "tether probe NAME"},
		{"probe x --redis localhost:6379", exitUsage, "write redis://"},
		{"serve x", exitUsage, "takes no arguments"},
		{"serve --addr here", exitUsage, "is no HOST:PORT"},
		{"demo x", exitUsage, "takes no arguments"},
		{"run x --redis unix:///no/such/socket --wait 0 -- true", exitUnavailable, "no Redis at /no/such/socket"},
	} {
		t.Run(c.args, func(t *testing.T) {
			args := strings.Fields(strings.ReplaceAll(c.args, "\u00a0", "_"))
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "_", " ")
			}
			code, _, errs := s.runToEnd(t, args...)
			require.Equal(t, c.code, code, errs)
			require.Contains(t, errs, c.says)
			if c.says == "" {
				require.Empty(t, errs)
			} else {
				require.Equal(t, 1, strings.Count(errs, "\n"), errs)
				require.True(t, strings.HasPrefix(errs, "tether: "), errs)
			}
		})
	}
}

func TestALockNeedsAName(t *testing.T) {
	s := embedded(t)
	code, _, errs := s.runToEnd(t, "run", "", "--", "true")
	require.Equal(t, exitUsage, code, errs)
	require.Equal(t, "tether: a lock needs a name\n", errs)
}

// Without --wait, a first attempt that does not reach Redis ends the wait. With
// --wait the error is the same at the end of the wait.
func TestNoRedis(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close()) // nobody listens there now
	s := server{url: "redis://:sec%23ret@" + l.Addr().String()}
	for _, args := range [][]string{
		{"run", "x", "--", "true"},
		{"run", "x", "--wait", "0", "--", "true"},
		{"run", "x", "--wait", "200ms", "--", "true"},
		{"probe", "x"},
		{"probe", "x", "--json"},
	} {
		code, out, errs := s.runToEnd(t, args...)
		require.Equal(t, exitUnavailable, code, errs)
		require.Empty(t, out)
		require.Regexp(t, `^tether: no Redis at 127.0.0.1:\d+ \(.*\): start one, or try: tether serve\n$`, errs)
	}
}

func TestPasswordsAreNotPrinted(t *testing.T) {
	for _, url := range []string{"redis://u:secret#x@h:1", "redis://:secret@h:port", "redis://u:secret@127.0.0.1:1", "redis://u:sec ret@h", "u:secret@h:1"} {
		code, _, errs := server{url: url}.runToEnd(t, "probe", "x")
		require.NotZero(t, code)
		require.NotContains(t, errs, "sec")
	}
}

func TestRefusals(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		s.url = strings.Replace(s.url, "redis://", "redis://nobody:wrong@", 1)
		for _, args := range [][]string{{"run", "x", "--", "true"}, {"probe", "x"}} {
			code, _, errs := s.runToEnd(t, args...)
			require.Equal(t, exitUnavailable, code, errs)
			require.Contains(t, errs, "refuses the login")
			require.Equal(t, 1, strings.Count(errs, "\n"), errs)
		}
	})
}

func TestRunWaits(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		first := s.start(t, "run", "x", "--", "sh", "-c", "echo first; exec sleep 1000")
		first.prints(t, 1)
		second := s.start(t, "run", "x", "--wait", "30s", "--", "echo", "second")
		third := s.start(t, "run", "x", "--", "echo", "third")
		s.awaitParticipants(t, "x", 3)
		require.Empty(t, second.out(t)+third.out(t))
		first.signal(t, syscall.SIGTERM)
		require.Equal(t, 143, first.code(t))
		require.Zero(t, second.code(t))
		require.Zero(t, third.code(t))
		require.Equal(t, "second\nthird\n", second.out(t)+third.out(t))
		require.Empty(t, second.err(t)+third.err(t))
	})
}

func TestASignalEndsTheWaiting(t *testing.T) {
	s := embedded(t)
	s.hold(t, "x")
	for sig, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129, syscall.SIGQUIT: 131} {
		p := s.start(t, "run", "x", "--", "true")
		s.awaitParticipants(t, "x", 2)
		p.signal(t, sig)
		require.Equal(t, code, p.code(t))
		require.Equal(t, 1, strings.Count(p.err(t), "\n"), p.err(t))
		s.awaitAtMost(t, "x", 1)
	}
	require.Len(t, s.holders(t, "x"), 1)
}

func TestSignalsArePassedOn(t *testing.T) {
	s := embedded(t)
	script := `
for s in INT TERM HUP QUIT USR1 USR2 WINCH; do trap "echo $s" $s; done
echo ready
until [ -e "$0" ]; do sleep 0.01; done`
	stop := filepath.Join(t.TempDir(), "stop")
	p := s.start(t, "run", "x", "--", "sh", "-c", script, stop)
	p.prints(t, 1)
	want := []string{"ready"}
	for _, c := range []struct {
		name   string
		signal syscall.Signal
	}{
		{"INT", syscall.SIGINT}, {"TERM", syscall.SIGTERM}, {"HUP", syscall.SIGHUP}, {"QUIT", syscall.SIGQUIT},
		{"USR1", syscall.SIGUSR1}, {"USR2", syscall.SIGUSR2}, {"WINCH", syscall.SIGWINCH},
	} {
		p.signal(t, c.signal)
		want = append(want, c.name)
		require.Equal(t, want, p.prints(t, len(want)))
	}
	require.NoError(t, os.WriteFile(stop, nil, 0o600))
	require.Zero(t, p.code(t))
}

// Under nohup SIGHUP stays ignored for the command too.
func TestNohup(t *testing.T) {
	s := embedded(t)
	p := s.startCommand(t, exec.Command("sh", "-c", `trap "" HUP; exec "$0" run x -- sh -c 'kill -HUP $$; echo survived'`, binary))
	require.Zero(t, p.code(t))
	require.Equal(t, "survived\n", p.out(t))
}

// SIGTSTP without a terminal stops both processes, and SIGCONT continues both.
func TestStopAndContinue(t *testing.T) {
	s := embedded(t)
	cmd := exec.Command(binary, "run", "x", "--", "sh", "-c", `trap "exit 5" USR1; echo $$; sleep 1000 & wait`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a job of this process
	p := s.startCommand(t, cmd)
	pid := p.printsPids(t)[0]
	p.signal(t, syscall.SIGTSTP)
	eventually(t, func() bool { return stopped(pid) && stopped(p.pid()) }, "both stop")
	p.signal(t, syscall.SIGCONT)
	eventually(t, func() bool { return !stopped(pid) }, "the command goes on")
	p.signal(t, syscall.SIGUSR1)
	require.Equal(t, 5, p.code(t))
}

// In a session without a shell nobody could continue a stopped tether run, which
// would hold the lock for ever. So it does not stop.
func TestNoStopWithoutAShell(t *testing.T) {
	s := embedded(t)
	cmd := exec.Command(binary, "run", "x", "--", "sh", "-c", `trap "echo continued" CONT; trap "exit 5" USR1; echo $$; while :; do sleep 1000 & wait; done`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p := s.startCommand(t, cmd)
	pid := p.printsPids(t)[0]
	p.signal(t, syscall.SIGTSTP)
	require.Equal(t, "continued", p.prints(t, 2)[1])
	require.False(t, stopped(pid) || stopped(p.pid()))
	p.signal(t, syscall.SIGUSR1)
	require.Equal(t, 5, p.code(t))
}

//go:build unix && !aix && !solaris

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/internal/redistest"
	"github.com/tetherlock/tether/tethertest"
)

// binary is the program, built once.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "tether-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "tether")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		panic(string(out))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// server is the in-process server or a real Redis.
type server struct {
	url   string
	admin *redis.Client
}

// onServers runs a test on both.
func onServers(t *testing.T, test func(t *testing.T, s server)) {
	t.Run("embedded", func(t *testing.T) { test(t, embedded(t)) })
	t.Run("redis", func(t *testing.T) { test(t, serverAt(t, redistest.Start(t).Addr)) })
}

func embedded(t *testing.T) server {
	return serverAt(t, tethertest.NewServer(t).Addr())
}

func serverAt(t *testing.T, addr string) server {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	return server{"redis://" + addr, rdb}
}

// holders probes a lock without the program.
func (s server) holders(t *testing.T, name string) []tether.Holder {
	t.Helper()
	locks := tether.New(s.admin)
	defer func() { require.NoError(t, locks.Close()) }()
	list, err := locks.Probe(t.Context(), name)
	require.NoError(t, err)
	return list
}

// hold takes a lock until the returned function is called.
func (s server) hold(t *testing.T, name string) (release func()) {
	t.Helper()
	locks := tether.New(s.admin)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	h, err := locks.Acquire(ctx, name)
	require.NoError(t, err)
	released := false
	release = func() {
		if !released {
			released = true
			require.NoError(t, h.Release(context.Background()))
			require.NoError(t, locks.Close())
		}
	}
	t.Cleanup(release)
	return release
}

// participants counts the connections of the lock's holders and waiters. A waiter
// that sleeps is named tether-idle.
func (s server) participants(t *testing.T, name string) int {
	t.Helper()
	list, err := s.admin.ClientList(t.Context()).Result()
	require.NoError(t, err)
	return strings.Count(list, " name=tether-idle ") + strings.Count(list, " name="+name+"-lock-")
}

// awaitParticipants waits until there are at least n participants.
func (s server) awaitParticipants(t *testing.T, name string, n int) {
	t.Helper()
	eventually(t, func() bool { return s.participants(t, name) >= n }, "%d participants of %s", n, name)
}

// awaitAtMost waits until there are at most n participants: the connections of a
// program may outlive it for a moment.
func (s server) awaitAtMost(t *testing.T, name string, n int) {
	t.Helper()
	eventually(t, func() bool { return s.participants(t, name) <= n }, "no more than %d participants of %s", n, name)
}

// killHolderConnection kills the connection of the only holder, and returns when.
func (s server) killHolderConnection(t *testing.T, name string) time.Time {
	t.Helper()
	list, err := s.admin.ClientList(t.Context()).Result()
	require.NoError(t, err)
	for line := range strings.Lines(list) {
		if !strings.Contains(line, " name="+name+"-lock-") || strings.Contains(line, " sub=0 ") {
			continue
		}
		id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
		killed := time.Now()
		require.NoError(t, s.admin.ClientKillByFilter(t.Context(), "ID", id).Err())
		return killed
	}
	require.Fail(t, "nobody holds it")
	return time.Time{}
}

// program is a running tether. Its output goes to files: with pipes, Wait would
// block until every process that inherited them has ended.
type program struct {
	cmd            *exec.Cmd
	stdout, stderr string
	ended          chan struct{}
}

// start starts the program. If it still runs at the end of the test it is killed,
// and its watchdog ends its command.
func (s server) start(t *testing.T, args ...string) *program {
	t.Helper()
	return s.startCommand(t, exec.Command(binary, args...))
}

func (s server) startCommand(t *testing.T, cmd *exec.Cmd) *program {
	t.Helper()
	dir := t.TempDir()
	p := &program{cmd: cmd, stdout: filepath.Join(dir, "out"), stderr: filepath.Join(dir, "err"), ended: make(chan struct{})}
	out, err := os.Create(p.stdout)
	require.NoError(t, err)
	defer out.Close()
	errs, err := os.Create(p.stderr)
	require.NoError(t, err)
	defer errs.Close()
	cmd.Stdout, cmd.Stderr = out, errs
	cmd.Env = append(os.Environ(), urlVariable+"="+s.url)
	require.NoError(t, cmd.Start())
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // code reads ProcessState
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended already
		<-p.ended
		if t.Failed() {
			t.Logf("%q\n%s%s", cmd.Args, p.out(t), p.err(t))
		}
	})
	return p
}

func (p *program) pid() int { return p.cmd.Process.Pid }

func (p *program) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(s))
}

// code waits for the end and returns the exit code, -n after signal n.
func (p *program) code(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		require.Failf(t, "it does not end", "%q", p.cmd.Args)
	}
	status := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return -int(status.Signal())
	}
	return status.ExitStatus()
}

func (p *program) out(t *testing.T) string { return contents(t, p.stdout) }
func (p *program) err(t *testing.T) string { return contents(t, p.stderr) }

func contents(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// prints waits until standard output has that many lines, and returns them.
func (p *program) prints(t *testing.T, n int) []string {
	t.Helper()
	var lines []string
	eventually(t, func() bool {
		text := p.out(t)
		lines = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		return strings.HasSuffix(text, "\n") && len(lines) >= n
	}, "%q prints %d lines", p.cmd.Args, n)
	return lines
}

// printsPids waits for a line of process ids.
func (p *program) printsPids(t *testing.T) []int {
	t.Helper()
	var pids []int
	for field := range strings.FieldsSeq(p.prints(t, 1)[0]) {
		pid, err := strconv.Atoi(field)
		require.NoError(t, err)
		require.True(t, alive(pid))
		pids = append(pids, pid)
	}
	return pids
}

// runToEnd runs the program to its end.
func (s server) runToEnd(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	p := s.start(t, args...)
	code = p.code(t)
	return code, p.out(t), p.err(t)
}

// eventually waits for a condition.
func eventually(t *testing.T, condition func() bool, what string, args ...any) {
	t.Helper()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for limit := time.Now().Add(15 * time.Second); !condition(); <-ticker.C {
		require.True(t, time.Now().Before(limit), "it does not come true: "+fmt.Sprintf(what, args...))
	}
}

// awaitDead waits for the end of processes, and returns when that was seen.
func awaitDead(t *testing.T, pids ...int) time.Time {
	t.Helper()
	for _, pid := range pids {
		eventually(t, func() bool { return !alive(pid) }, "process %d ends", pid)
	}
	return time.Now()
}

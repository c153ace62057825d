// Package redistest starts real Redis servers for tests.
//
// Every server is a process of its own: the binary from PATH, on a free loopback
// port or a Unix socket, in a temporary folder, without persistence. A function
// that starts a server returns when the server answers. Signals go only to
// processes that were started here, by pid.
//
// Without the binary on PATH the test is skipped. With TETHER_STRICT=1 in the
// environment it fails.
//
// Servers are stopped at the end of their test. [Open] is for TestMain, which has
// no [testing.TB]: its caller stops the server. One goroutine at a time may stop,
// restart or signal a server; everything else is safe for concurrent use.
package redistest

import (
	"context"
	"crypto/tls"
	"errors"
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
)

const (
	serverBinary   = "redis-server"
	sentinelBinary = "redis-sentinel"
	logName        = "redis.log"

	readyWithin   = 10 * time.Second
	answersWithin = 5 * time.Second
	portAttempts  = 10
)

// Server is one running process.
type Server struct {
	Addr string // host:port, or the path of the Unix socket
	Port int    // 0 on a Unix socket

	network string
	tls     *tls.Config
	dir     string
	argv    []string
	proc    *process
}

// Start starts a server on a free port and stops it at the end of the test. The
// arguments are added to the command line, for example "--maxclients", "10".
// Passwords and users are set afterwards with [Server.Do].
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, tcpServer(args))
}

// StartUnix starts a server that listens on a Unix socket only.
func StartUnix(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, launchConfig{
		binary: serverBinary,
		unix:   true,
		args: func(dir string, _ int) ([]string, error) {
			return append(serverArgs(dir), append([]string{"--port", "0", "--unixsocket", socketPath(dir)}, args...)...), nil
		},
	})
}

// Open is [Start] for TestMain: the caller stops the server. The error wraps
// [exec.ErrNotFound] when the binary is not on PATH; the tests then call
// [Require].
func Open(args ...string) (*Server, error) {
	return launch(tcpServer(args), randomPort)
}

// Require skips the test when redis-server is not on PATH, or fails it when
// the environment has TETHER_STRICT=1.
func Require(t testing.TB) {
	t.Helper()
	needBinary(t, serverBinary)
}

func needBinary(t testing.TB, binary string) {
	t.Helper()
	if _, err := exec.LookPath(binary); err == nil {
		return
	}
	if os.Getenv("TETHER_STRICT") == "1" {
		t.Fatal(binary + " is not on PATH")
	}
	t.Skip(binary + " is not on PATH")
}

// Options returns fresh options for a client of the server.
func (s *Server) Options() *redis.Options {
	o := &redis.Options{Network: s.network, Addr: s.Addr}
	if s.tls != nil {
		o.TLSConfig = s.tls.Clone()
	}
	return o
}

// Client returns a client that is closed at the end of the test.
func (s *Server) Client(t testing.TB) *redis.Client {
	t.Helper()
	c := redis.NewClient(s.Options())
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Do runs one command as the default user, without a password, on a connection of
// its own. There are no retries. It ends after five seconds at most, also when the
// server is frozen.
func (s *Server) Do(args ...any) (any, error) {
	o := s.Options()
	o.MaxRetries = -1
	o.ContextTimeoutEnabled = true
	c := redis.NewClient(o)
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), answersWithin)
	defer cancel()
	return c.Do(ctx, args...).Result()
}

// MustDo is [Server.Do]. On an error it fails the test.
func (s *Server) MustDo(t testing.TB, args ...any) any {
	t.Helper()
	v, err := s.Do(args...)
	if err != nil {
		t.Fatalf("%v on %s: %v", args, s.Addr, err)
	}
	return v
}

// Signal sends a signal to the process. With SIGKILL it returns when the process
// has ended. After SIGSTOP no SIGCONT is needed before [Server.Stop]. The error is
// [os.ErrProcessDone] if the process has ended before.
func (s *Server) Signal(sig syscall.Signal) error {
	return s.proc.signal(sig)
}

// Stop kills the process and removes its folder. It may be called again.
func (s *Server) Stop() {
	s.proc.stop()
	_ = os.RemoveAll(s.dir)
}

// Restart kills the process and starts it again at the same address, without
// data. It returns when the new process answers. After [Server.Stop] it fails: the
// folder is gone.
func (s *Server) Restart() error {
	s.proc.stop()
	// A replica has the dump of its master there, and Redis would load it.
	if err := os.RemoveAll(filepath.Join(s.dir, "dump.rdb")); err != nil {
		return err
	}
	return s.run()
}

// launchConfig says how to start a process. args is called for every port that is
// tried.
type launchConfig struct {
	binary string
	unix   bool
	tls    *tls.Config
	args   func(dir string, port int) ([]string, error)
}

func tcpServer(args []string) launchConfig {
	return launchConfig{
		binary: serverBinary,
		args: func(dir string, port int) ([]string, error) {
			return append(serverArgs(dir), append([]string{"--port", strconv.Itoa(port)}, args...)...), nil
		},
	}
}

// serverArgs are common to all servers. By default a master delays a diskless
// transfer by five seconds, so that other replicas can share it.
func serverArgs(dir string) []string {
	return []string{
		"--bind", loopback, "--dir", dir, "--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0",
	}
}

func start(t testing.TB, cfg launchConfig) *Server {
	t.Helper()
	needBinary(t, cfg.binary)
	s, err := launch(cfg, randomPort)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// errPortTaken says that another program listens on the port.
var errPortTaken = errors.New("the port is taken")

// launch starts a process and waits until it answers. Another program may take the
// port between its choice and its use. Then launch tries the next one.
func launch(cfg launchConfig, port func() int) (*Server, error) {
	for attempt := 1; ; attempt++ {
		s, err := launchOnce(cfg, port)
		if err == nil || attempt == portAttempts || !errors.Is(err, errPortTaken) {
			return s, err
		}
	}
}

func launchOnce(cfg launchConfig, port func() int) (*Server, error) {
	dir, err := os.MkdirTemp(shortTempDir(), "rt-")
	if err != nil {
		return nil, err
	}
	s := &Server{network: "unix", Addr: socketPath(dir), tls: cfg.tls, dir: dir, proc: &process{}}
	if !cfg.unix {
		s.network, s.Port = "tcp", port()
		s.Addr = loopback + ":" + strconv.Itoa(s.Port)
	}
	args, err := cfg.args(dir, s.Port)
	if err == nil {
		s.argv = append([]string{cfg.binary}, args...)
		err = s.run()
	}
	if err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// run starts the process and waits until it answers.
func (s *Server) run() error {
	// The log says why a start failed. A message of an earlier start, such as
	// "Address already in use", would be taken for one of this start.
	if err := os.RemoveAll(filepath.Join(s.dir, logName)); err != nil {
		return err
	}
	proc, err := startProcess(s.dir, s.argv)
	if err != nil {
		return err
	}
	s.proc = proc
	err = await(readyWithin, s.argv[0]+" answers", s.ready)
	if err != nil {
		proc.stop()
		return fmt.Errorf("%w\n%s", err, s.log())
	}
	return nil
}

// ready reports whether the process answers. A PING alone does not show that: if
// another server has the port, that server answers. So the pid is compared.
func (s *Server) ready() (bool, error) {
	if s.proc.exited() {
		if strings.Contains(s.log(), "Address already in use") {
			return false, errPortTaken
		}
		return false, fmt.Errorf("%s ended at once", s.argv[0])
	}
	if pong, err := s.Do("PING"); err != nil || pong != "PONG" {
		return false, nil
	}
	pid, err := s.infoField("server", "process_id")
	return err == nil && pid == strconv.Itoa(s.proc.pid), nil
}

// infoField returns one field of an INFO section, or "" if it is missing.
func (s *Server) infoField(section, field string) (string, error) {
	v, err := s.Do("INFO", section)
	if err != nil {
		return "", err
	}
	return lineField(v, field), nil
}

// lineField finds "field:value" in the lines of a reply.
func lineField(reply any, field string) string {
	text, _ := reply.(string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name == field {
			return value
		}
	}
	return ""
}

func (s *Server) log() string {
	b, _ := os.ReadFile(filepath.Join(s.dir, logName))
	return string(b)
}

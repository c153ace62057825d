package redistest

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// checkCleanup runs a subtest that starts servers. After it, their processes and
// folders must be gone.
func checkCleanup(t *testing.T, start func(t *testing.T) []*Server) {
	t.Helper()
	var servers []*Server
	var pids []int
	t.Run("runs", func(t *testing.T) {
		servers = start(t)
		for _, s := range servers {
			pids = append(pids, s.proc.pid)
			require.NoError(t, syscall.Kill(s.proc.pid, 0))
		}
	})
	if len(servers) == 0 {
		return
	}
	for i, s := range servers {
		require.ErrorIs(t, syscall.Kill(pids[i], 0), syscall.ESRCH)
		require.NoDirExists(t, s.dir)
		require.ErrorIs(t, s.Signal(syscall.SIGCONT), os.ErrProcessDone)
	}
}

func TestStart(t *testing.T) {
	checkCleanup(t, func(t *testing.T) []*Server {
		s := Start(t, "--maxclients", "17")
		require.Equal(t, "PONG", s.Client(t).Ping(t.Context()).Val())
		require.Equal(t, map[any]any{"maxclients": "17"}, s.MustDo(t, "CONFIG", "GET", "maxclients"))
		require.Equal(t, map[any]any{"save": ""}, s.MustDo(t, "CONFIG", "GET", "save"))
		_, err := s.Do("NOPE")
		require.ErrorContains(t, err, "unknown command")
		return []*Server{s}
	})
}

func TestStartUnix(t *testing.T) {
	checkCleanup(t, func(t *testing.T) []*Server {
		s := StartUnix(t)
		require.Zero(t, s.Port)
		require.Equal(t, "PONG", s.Client(t).Ping(t.Context()).Val())
		return []*Server{s}
	})
}

func TestStartTLS(t *testing.T) {
	checkCleanup(t, func(t *testing.T) []*Server {
		s, config := StartTLS(t)
		require.Equal(t, "PONG", s.Client(t).Ping(t.Context()).Val())
		c := redis.NewClient(&redis.Options{Addr: s.Addr, TLSConfig: config})
		defer c.Close()
		require.NoError(t, c.Ping(t.Context()).Err())

		untrusting := s.Options()
		untrusting.TLSConfig.RootCAs = nil
		c = redis.NewClient(untrusting)
		defer c.Close()
		require.ErrorContains(t, c.Ping(t.Context()).Err(), "certificate")
		return []*Server{s}
	})
}

func TestOpenWithoutATest(t *testing.T) {
	Require(t)
	s, err := Open()
	require.NoError(t, err)
	defer s.Stop()
	require.Equal(t, "PONG", s.MustDo(t, "PING"))
	pid := s.proc.pid
	s.Stop()
	s.Stop()
	require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
}

func TestRestart(t *testing.T) {
	s := Start(t)
	addr, pid := s.Addr, s.proc.pid
	s.MustDo(t, "SET", "k", "v")
	require.NoError(t, s.Restart())
	require.Equal(t, addr, s.Addr)
	require.NotEqual(t, pid, s.proc.pid)
	_, err := s.Do("GET", "k")
	require.ErrorIs(t, err, redis.Nil)
}

func TestRestartAfterReplicationHasNoData(t *testing.T) {
	s := Start(t)
	s.MustDo(t, "SET", "k", "v")
	replica := StartReplica(t, s)
	require.Equal(t, "v", replica.MustDo(t, "GET", "k"))
	require.NoError(t, s.Signal(syscall.SIGKILL))
	require.NoError(t, replica.Restart())
	require.EqualValues(t, 0, replica.MustDo(t, "DBSIZE"))
}

func TestSignals(t *testing.T) {
	checkCleanup(t, func(t *testing.T) []*Server {
		stopped := Start(t)
		require.NoError(t, stopped.Signal(syscall.SIGSTOP))
		return []*Server{stopped}
	})

	s := Start(t)
	require.NoError(t, s.Signal(syscall.SIGSTOP))
	require.NoError(t, s.Signal(syscall.SIGCONT))
	require.Equal(t, "PONG", s.MustDo(t, "PING"))
	require.NoError(t, s.Signal(syscall.SIGKILL))
	_, err := s.Do("PING")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.ErrorIs(t, s.Signal(syscall.SIGKILL), os.ErrProcessDone)
	require.NoError(t, s.Restart())
	require.Equal(t, "PONG", s.MustDo(t, "PING"))
}

func TestStartReplica(t *testing.T) {
	checkCleanup(t, func(t *testing.T) []*Server {
		master := Start(t)
		master.MustDo(t, "SET", "k", "v")
		replica := StartReplica(t, master)
		require.Equal(t, "v", replica.MustDo(t, "GET", "k"))
		_, err := replica.Do("SET", "k", "w")
		require.ErrorContains(t, err, "READONLY")
		return []*Server{master, replica}
	})
}

func TestStartSentinel(t *testing.T) {
	checkCleanup(t, func(t *testing.T) []*Server {
		master := Start(t)
		replica := StartReplica(t, master)
		sentinel := StartSentinel(t, "main", master, replica)
		current, err := sentinel.Master()
		require.NoError(t, err)
		require.Same(t, master, current)

		c := redis.NewFailoverClient(sentinel.FailoverOptions())
		defer c.Close()
		require.NoError(t, c.Set(t.Context(), "k", "v", 0).Err())

		require.Same(t, replica, sentinel.Failover(t))
		role, err := replica.infoField("replication", "role")
		require.NoError(t, err)
		require.Equal(t, "master", role)
		return []*Server{master, replica, sentinel.Server}
	})
}

func TestSentinelNoticesADeadMaster(t *testing.T) {
	master := Start(t)
	replica := StartReplica(t, master)
	sentinel := StartSentinel(t, "main", master, replica)
	require.NoError(t, master.Signal(syscall.SIGKILL))
	require.Same(t, replica, sentinel.AwaitFailover(t, master))
}

func TestStartCluster1(t *testing.T) {
	checkCleanup(t, func(t *testing.T) []*Server {
		s := StartCluster1(t)
		require.Equal(t, "OK", s.MustDo(t, "SET", "k", "v"))
		mode, err := s.infoField("server", "redis_mode")
		require.NoError(t, err)
		require.Equal(t, "cluster", mode)
		return []*Server{s}
	})
}

func TestATakenPortIsNotUsed(t *testing.T) {
	first := Start(t)
	ports := []int{first.Port, first.Port, randomPort()}
	tried := 0
	s, err := launch(tcpServer(nil), func() int { tried++; return ports[tried-1] })
	require.NoError(t, err)
	defer s.Stop()
	require.Equal(t, 3, tried)
	require.NotEqual(t, first.Addr, s.Addr)

	tried = 0
	_, err = launch(tcpServer(nil), func() int { tried++; return first.Port })
	require.ErrorIs(t, err, errPortTaken)
	require.Equal(t, portAttempts, tried)
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	Require(t)
	_, err := Open("--no-such-directive", "1")
	require.ErrorContains(t, err, "no-such-directive")
}

// Without the binary a test is skipped, and with TETHER_STRICT=1 it fails.
func TestWithoutTheBinary(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("TETHER_STRICT", "")
	require.Equal(t, "skip: redis-server is not on PATH", outcome(t))
	t.Setenv("TETHER_STRICT", "1")
	require.Equal(t, "fatal: redis-server is not on PATH", outcome(t))
	_, err := Open()
	require.True(t, errors.Is(err, exec.ErrNotFound), "%v", err)
}

// recordingTB records how a test was ended, instead of ending it.
type recordingTB struct {
	testing.TB
	said string
}

func (r *recordingTB) Skip(args ...any)  { r.end("skip: ", args) }
func (r *recordingTB) Fatal(args ...any) { r.end("fatal: ", args) }

func (r *recordingTB) end(how string, args []any) {
	r.said = how + args[0].(string)
	panic(r)
}

func outcome(t *testing.T) string {
	r := &recordingTB{TB: t}
	func() {
		defer func() { require.Same(t, r, recover()) }()
		Start(r)
	}()
	return r.said
}

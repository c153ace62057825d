package interop

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/internal/redistest"
)

//go:embed testdata/peer.py
var peerProgram string

// side is portalocker or tether. start starts a process of it.
type side struct {
	name  string
	start func(t testing.TB) *process
}

func pythonSide(p python) side {
	return side{p.String(), func(t testing.TB) *process { return startPython(t, p, shared) }}
}

func tetherSide() side {
	return side{"tether", func(t testing.TB) *process { return startTether(t, shared) }}
}

func startPython(t testing.TB, p python, s *redistest.Server) *process {
	t.Helper()
	redistest.Require(t)
	peer := startProcess(t, exec.Command(p.interpreter(t), "-c", peerProgram), &p)
	require.Equal(t, p.version, peer.mustDo(t, request{Do: "connect", serverParams: paramsOf(t, s)}).Version)
	return peer
}

func startTether(t testing.TB, s *redistest.Server) *process {
	t.Helper()
	redistest.Require(t)
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), tetherProcessEnv+"=1")
	peer := startProcess(t, cmd, nil)
	peer.mustDo(t, request{Do: "connect", serverParams: paramsOf(t, s)})
	return peer
}

func paramsOf(t testing.TB, s *redistest.Server) serverParams {
	host, port, err := net.SplitHostPort(s.Addr)
	require.NoError(t, err)
	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	return serverParams{Host: host, Port: n}
}

// pair is a test's two sides and its channel. In a test the first side holds the
// lock first.
type pair struct {
	python        python
	first, second side
	channel       string
}

// forPairs runs a test with every selected version, once with portalocker first and
// once with tether first.
func forPairs(t *testing.T, selected func(python) bool, test func(t *testing.T, d pair)) {
	forVersions(t, selected, func(t *testing.T, p python) {
		for _, d := range []pair{
			{python: p, first: pythonSide(p), second: tetherSide()},
			{python: p, first: tetherSide(), second: pythonSide(p)},
		} {
			t.Run(d.first.name+" first", func(t *testing.T) {
				t.Parallel()
				d.channel = newChannel()
				test(t, d)
			})
		}
	})
}

var channels atomic.Int64

// newChannel returns the name of a channel that no other test uses.
func newChannel() string { return fmt.Sprintf("channel%d", channels.Add(1)) }

// pingCounter counts the pings on a channel. It subscribes to a pattern, so that
// NUMSUB does not count it as a participant.
type pingCounter struct{ count atomic.Int64 }

func countPings(t testing.TB, channel string) *pingCounter {
	t.Helper()
	w := &pingCounter{}
	sub := shared.Client(t).PSubscribe(context.Background(), channel)
	_, err := sub.Receive(context.Background())
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range sub.Channel() {
			w.count.Add(1)
		}
	}()
	t.Cleanup(func() {
		_ = sub.Close() // an error changes nothing here
		<-ended
	})
	return w
}

// requireWaiting checks that an acquire waits: there have been two more pings, and
// it is not granted.
func (w *pingCounter) requireWaiting(t testing.TB, peer *process, pending <-chan response) {
	t.Helper()
	before := w.count.Load()
	until(t, "the waiter asks", func() bool { return w.count.Load() >= before+2 })
	select {
	case a := <-pending:
		require.FailNow(t, fmt.Sprintf("%v does not wait: %+v", peer, a))
	default:
	}
}

// until waits for a condition.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for limit := time.Now().Add(testTimeout); !condition(); <-time.After(5 * time.Millisecond) {
		require.True(t, time.Now().Before(limit), what)
	}
}

// subscribers counts the participants of a channel.
func subscribers(t testing.TB, rdb *redis.Client, channel string) int {
	t.Helper()
	n, err := rdb.PubSubNumSub(context.Background(), channel).Result()
	require.NoError(t, err)
	return int(n[channel])
}

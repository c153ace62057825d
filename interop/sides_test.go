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
var script string

// side starts the processes of one side of a test.
type side struct {
	name  string
	start func(t testing.TB) *peer
}

func pythonSide(p python) side {
	return side{p.String(), func(t testing.TB) *peer { return startPython(t, p, shared) }}
}

func tetherSide() side {
	return side{"tether", func(t testing.TB) *peer { return startTether(t, shared) }}
}

func startPython(t testing.TB, p python, s *redistest.Server) *peer {
	t.Helper()
	redistest.Require(t)
	v := launch(t, exec.Command(p.interpreter(t), "-c", script), &p)
	require.Equal(t, p.version, v.tell(t, order{Do: "connect", server: at(t, s)}).Version)
	return v
}

func startTether(t testing.TB, s *redistest.Server) *peer {
	t.Helper()
	redistest.Require(t)
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	v := launch(t, cmd, nil)
	v.tell(t, order{Do: "connect", server: at(t, s)})
	return v
}

func at(t testing.TB, s *redistest.Server) server {
	host, port, err := net.SplitHostPort(s.Addr)
	require.NoError(t, err)
	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	return server{Host: host, Port: n}
}

// duel is a channel with two sides: one is there first.
type duel struct {
	python        python
	first, second side
	channel       string
}

// duels runs a test with every version that is able to, in both directions.
func duels(t *testing.T, able func(python) bool, test func(t *testing.T, d duel)) {
	onPythons(t, able, func(t *testing.T, p python) {
		for _, d := range []duel{
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

// newChannel names a channel that no other test uses.
func newChannel() string { return fmt.Sprintf("channel%d", channels.Add(1)) }

// watcher sees the pings on a channel without being a participant: a pattern's
// subscriber does not count.
type watcher struct{ pings atomic.Int64 }

func watch(t testing.TB, channel string) *watcher {
	t.Helper()
	w := &watcher{}
	sub := shared.Client(t).PSubscribe(context.Background(), channel)
	_, err := sub.Receive(context.Background())
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range sub.Channel() {
			w.pings.Add(1)
		}
	}()
	t.Cleanup(func() {
		_ = sub.Close() // nothing comes of it
		<-ended
	})
	return w
}

// waits shows that an acquire waits: it has asked the holder at least twice and
// is not granted.
func (w *watcher) waits(t testing.TB, v *peer, pending <-chan answer) {
	t.Helper()
	before := w.pings.Load()
	until(t, "the waiter asks", func() bool { return w.pings.Load() >= before+2 })
	select {
	case a := <-pending:
		require.FailNow(t, fmt.Sprintf("%v does not wait: %+v", v, a))
	default:
	}
}

// until waits for a condition.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !condition(); <-time.After(5 * time.Millisecond) {
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

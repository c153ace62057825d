package tether_test

import (
	"context"
	"os"
	"runtime"
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

func TestMain(m *testing.M) {
	if addr := os.Getenv(holderEnv); addr != "" {
		holdForever(addr)
	}
	goleak.VerifyTestMain(m)
}

// server is the server of a test: the in-process one or a real one.
type server struct {
	options func() *redis.Options
	admin   *redis.Client
	freeze  func(t *testing.T) // it keeps its connections and answers nothing
	thaw    func(t *testing.T)
}

// onServers runs a test on the in-process server and on a real one.
func onServers(t *testing.T, test func(t *testing.T, s server)) {
	t.Run("in-process", func(t *testing.T) { test(t, inProcess(t)) })
	t.Run("redis", func(t *testing.T) { test(t, realServer(t, redistest.Start(t))) })
}

func inProcess(t *testing.T) server {
	s := tethertest.NewServer(t)
	return server{
		options: func() *redis.Options { return &redis.Options{Addr: s.Addr()} },
		admin:   adminClient(t, &redis.Options{Addr: s.Addr()}),
		freeze:  func(*testing.T) { s.Freeze() },
		thaw:    func(*testing.T) { s.Thaw() },
	}
}

func realServer(t *testing.T, s *redistest.Server) server {
	return server{
		options: s.Options,
		admin:   adminClient(t, s.Options()),
		freeze:  func(t *testing.T) { require.NoError(t, s.Signal(syscall.SIGSTOP)) },
		thaw:    func(t *testing.T) { require.NoError(t, s.Signal(syscall.SIGCONT)) },
	}
}

func adminClient(t *testing.T, o *redis.Options) *redis.Client {
	rdb := redis.NewClient(o)
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	return rdb
}

// client returns a client with its own connections, like another process.
func (s server) client(t *testing.T, opts ...tether.Option) *tether.Client {
	t.Helper()
	return clientOf(t, redis.NewClient(s.options()), opts...)
}

func clientOf(t *testing.T, rdb redis.UniversalClient, opts ...tether.Option) *tether.Client {
	c := tether.New(rdb, opts...)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		require.NoError(t, rdb.Close())
	})
	return c
}

// acquire acquires a lock. It is released at the end of the test.
func (s server) acquire(t *testing.T, c *tether.Client, name string) *tether.Hold {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	h, err := c.Acquire(ctx, name)
	require.NoError(t, err)
	t.Cleanup(func() { _ = h.Release(context.Background()) }) // it may be lost
	return h
}

func (s server) subscribers(t *testing.T, name string) int {
	t.Helper()
	n, err := s.admin.PubSubNumSub(context.Background(), name).Result()
	require.NoError(t, err)
	return int(n[name])
}

// awaitNoSubscribers waits until nobody is subscribed to the lock's channel.
func (s server) awaitNoSubscribers(t *testing.T, name string) {
	t.Helper()
	s.eventually(t, func() bool { return s.subscribers(t, name) == 0 })
}

// eventually waits for a condition, for ten seconds at most.
func (s server) eventually(t *testing.T, condition func() bool) {
	t.Helper()
	for limit := time.Now().Add(10 * time.Second); !condition(); <-time.After(2 * time.Millisecond) {
		require.True(t, time.Now().Before(limit), "the condition is never true")
	}
}

// criticalSection is what a test protects with a lock. The test fails if two run it
// at a time.
type criticalSection chan struct{}

func newCriticalSection() criticalSection { return make(criticalSection, 1) }

// run enters, lets other goroutines run, and leaves.
func (r criticalSection) run(t *testing.T) {
	t.Helper()
	select {
	case r <- struct{}{}:
	default:
		t.Error("two at a time")
	}
	runtime.Gosched()
	<-r
}

// never checks for a while that a condition is false.
func never(t *testing.T, while time.Duration, condition func() bool) {
	t.Helper()
	for limit := time.Now().Add(while); time.Now().Before(limit); <-time.After(5 * time.Millisecond) {
		require.False(t, condition(), "the condition is true")
	}
}

// clientList returns the server's connections, a map of fields each.
func (s server) clientList(t *testing.T) []map[string]string {
	t.Helper()
	text, err := s.admin.ClientList(context.Background()).Result()
	require.NoError(t, err)
	var list []map[string]string
	for line := range strings.Lines(text) {
		fields := map[string]string{}
		for field := range strings.FieldsSeq(line) {
			key, value, _ := strings.Cut(field, "=")
			fields[key] = value
		}
		list = append(list, fields)
	}
	return list
}

// killConnections ends the connections of a lock's participants.
func (s server) killConnections(t *testing.T, name string) {
	t.Helper()
	killed := 0
	for _, c := range s.clientList(t) {
		if strings.HasPrefix(c["name"], name+"-lock-") {
			require.NoError(t, s.admin.ClientKillByFilter(context.Background(), "ID", c["id"]).Err())
			killed++
		}
	}
	require.NotZero(t, killed, "nobody to kill")
}

// isClosed returns a condition: the channel is closed.
func isClosed(c <-chan struct{}) func() bool {
	return func() bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
}

// awaitEvent reads events until one of type E comes.
func awaitEvent[E tether.Event](t *testing.T, events <-chan tether.Event) E {
	t.Helper()
	limit := time.After(10 * time.Second)
	for {
		select {
		case e, open := <-events:
			require.True(t, open, "the events have ended")
			if e, ok := e.(E); ok {
				return e
			}
		case <-limit:
			var want E
			require.Failf(t, "no such event", "%T", want)
		}
	}
}

package tether_test

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/internal/redistest"
	"github.com/tetherlock/tether/wire"
)

// latencies are the durations of a benchmark's operations. The framework reports
// only their mean; report adds the median and the 99th percentile.
type latencies []time.Duration

func (l latencies) report(b *testing.B, what string) {
	if len(l) == 0 {
		return
	}
	slices.Sort(l)
	b.ReportMetric(float64(l[len(l)/2].Nanoseconds())/1e3, what+"-p50-µs")
	b.ReportMetric(float64(l[len(l)*99/100].Nanoseconds())/1e3, what+"-p99-µs")
}

func benchClient(b *testing.B, s *redistest.Server) *tether.Client {
	rdb := redis.NewClient(s.Options())
	c := tether.New(rdb)
	b.Cleanup(func() {
		require.NoError(b, c.Close())
		require.NoError(b, rdb.Close())
	})
	return c
}

// rawConn is a socket without a client library. It shows what the lock's commands
// cost at least.
type rawConn struct {
	conn net.Conn
	r    *wire.Reader
}

func dialRaw(b *testing.B, addr string) *rawConn {
	conn, err := net.Dial("tcp", addr)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, conn.Close()) })
	c := &rawConn{conn, wire.NewReader(conn)}
	c.do(b, wire.AppendCommand(nil, "HELLO", "3"), 1)
	return c
}

// do writes commands and reads their replies.
func (c *rawConn) do(b *testing.B, commands []byte, frames int) time.Duration {
	began := time.Now()
	_, err := c.conn.Write(commands)
	require.NoError(b, err)
	for range frames {
		_, err := c.r.Read()
		require.NoError(b, err)
	}
	return time.Since(began)
}

// BenchmarkAlone measures an acquire and a release of a free lock, a PING, and the
// lock's commands on a raw socket. The three alternate, so that other load on the
// machine slows all of them.
func BenchmarkAlone(b *testing.B) {
	s := redistest.Start(b)
	c := benchClient(b, s)
	l := c.Lock("alone")
	socket := dialRaw(b, s.Addr)
	ping := wire.AppendCommand(nil, "PING")
	enter := wire.AppendCommand(nil, "SUBSCRIBE", "raw")
	enter = wire.AppendCommand(enter, "PUBSUB", "NUMSUB", "raw")
	enter = wire.AppendCommand(enter, "HELLO", "3", "SETNAME", "raw-lock-0123456789abcdef0123456789abcdef")
	leave := wire.AppendCommand(nil, "UNSUBSCRIBE", "raw")
	var pings, enters, leaves, acquires, releases latencies
	for b.Loop() {
		pings = append(pings, socket.do(b, ping, 1))
		enters = append(enters, socket.do(b, enter, 3))
		leaves = append(leaves, socket.do(b, leave, 1))
		began := time.Now()
		h, err := l.Acquire(b.Context())
		require.NoError(b, err)
		acquires = append(acquires, time.Since(began))
		began = time.Now()
		require.NoError(b, h.Release(b.Context()))
		releases = append(releases, time.Since(began))
	}
	pings.report(b, "ping")
	enters.report(b, "raw-enter")
	leaves.report(b, "raw-leave")
	acquires.report(b, "acquire")
	releases.report(b, "release")
}

// BenchmarkPair counts the allocations of an acquire and a release.
func BenchmarkPair(b *testing.B) {
	s := redistest.Start(b)
	c := benchClient(b, s)
	l := c.Lock("pair")
	b.ReportAllocs()
	for b.Loop() {
		h, err := l.Acquire(b.Context())
		require.NoError(b, err)
		require.NoError(b, h.Release(b.Context()))
	}
}

// BenchmarkLoss measures the time from CLIENT KILL of the holder's connection until
// Lost is closed.
func BenchmarkLoss(b *testing.B) {
	s := redistest.Start(b)
	admin := redis.NewClient(s.Options())
	c := benchClient(b, s)
	l := c.Lock("loss")
	var losses latencies
	for b.Loop() {
		h, err := l.Acquire(b.Context())
		require.NoError(b, err)
		began := time.Now()
		require.NoError(b, admin.ClientKillByFilter(b.Context(), "TYPE", "pubsub").Err())
		<-h.Lost()
		losses = append(losses, time.Since(began))
	}
	losses.report(b, "loss")
	require.NoError(b, admin.Close())
}

// holderEnv makes the test binary a process that holds a lock until it is
// killed.
const holderEnv = "TETHER_TEST_HOLDER"

func holdForever(addr string) {
	c := tether.New(redis.NewClient(&redis.Options{Addr: addr}))
	if _, err := c.Acquire(context.Background(), "crash"); err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString("held\n")
	select {}
}

// startHolder starts a process that holds the lock "crash" and waits for its grant.
func startHolder(tb testing.TB, addr string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holderEnv+"="+addr)
	out, err := cmd.StdoutPipe()
	require.NoError(tb, err)
	require.NoError(tb, cmd.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(tb, err)
	return cmd
}

// BenchmarkCrash measures the time from SIGKILL of the holder's process to the
// grant of a waiter.
func BenchmarkCrash(b *testing.B) {
	s := redistest.Start(b)
	c := benchClient(b, s)
	var grants latencies
	for b.Loop() {
		holder := startHolder(b, s.Addr)
		l := c.Lock("crash")
		events := l.Events()
		waiting := l.AcquireAsync(b.Context())
		for e := range events {
			if _, ok := e.(tether.WaitingEvent); ok {
				break
			}
		}
		began := time.Now()
		require.NoError(b, holder.Process.Kill())
		r := <-waiting
		require.NoError(b, r.Err)
		grants = append(grants, time.Since(began))
		_ = holder.Wait() // it was killed
		require.NoError(b, l.Close())
	}
	grants.report(b, "grant")
}

// BenchmarkHolding measures the goroutines and the memory of one held lock.
func BenchmarkHolding(b *testing.B) {
	const locks = 1000
	s := redistest.Start(b)
	c := benchClient(b, s)
	for b.Loop() {
		goroutines, memory := runtime.NumGoroutine(), inUse()
		held := make([]*tether.Hold, locks)
		for i := range held {
			h, err := c.Acquire(b.Context(), "holding-"+string(rune('a'+i%26))+time.Duration(i).String())
			require.NoError(b, err)
			held[i] = h
		}
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/locks, "goroutines/lock")
		b.ReportMetric(float64(inUse()-memory)/locks, "B/lock")
		for _, h := range held {
			require.NoError(b, h.Release(b.Context()))
		}
	}
}

// inUse is the memory of heap and stacks, after a garbage collection. The second
// collection frees what the first one ran finalizers and cleanups for.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

package tether_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/internal/redistest"
)

// Leases in processes of their own, with faults and under load. TETHER_STRESS, for
// example 1m, makes some of the tests longer.

// stress is the duration in TETHER_STRESS, or 0.
func stress(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("TETHER_STRESS")
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}

// leaseEnv makes the test binary a process that holds a fenced lease until it is
// told of its loss or its input is closed. It prints its token, and what ended it.
// With leaseBusyEnv two goroutines keep its processors busy.
const (
	leaseEnv     = "TETHER_TEST_LEASE"
	leaseTTLEnv  = "TETHER_TEST_LEASE_TTL"
	leaseBusyEnv = "TETHER_TEST_LEASE_BUSY"
)

func init() {
	if addr := os.Getenv(leaseEnv); addr != "" {
		holdLease(addr)
	}
}

func holdLease(addr string) {
	ttl, err := time.ParseDuration(os.Getenv(leaseTTLEnv))
	if err != nil {
		panic(err)
	}
	c := tether.New(redis.NewClient(&redis.Options{Addr: addr}))
	h, err := c.Lease(leaseKey, tether.Fenced(), tether.WithTTL(ttl)).Acquire(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println(h.Token())
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		_, _ = os.Stdin.Read(make([]byte, 1))
	}()
	if os.Getenv(leaseBusyEnv) != "" {
		for range 2 {
			go func() {
				for n := 0; ; n++ {
				}
			}()
		}
	}
	select {
	case <-h.Lost():
		fmt.Println(h.Err())
	case <-asked:
		fmt.Println("held:", h.Err(), h.Release(context.Background()))
	}
	os.Exit(0)
}

// leaseHolder is a process that holds a lease.
type leaseHolder struct {
	*exec.Cmd
	*bufio.Scanner
	token int64
	end   func() error // closes its input
}

func startLeaseHolder(t *testing.T, s *redistest.Server, ttl time.Duration, env ...string) *leaseHolder {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	h := &leaseHolder{Cmd: exec.Command(program)}
	h.Env = append(append(os.Environ(), leaseEnv+"="+s.Addr, leaseTTLEnv+"="+ttl.String()), env...)
	out, err := h.StdoutPipe()
	require.NoError(t, err)
	in, err := h.StdinPipe()
	require.NoError(t, err)
	h.Scanner, h.end = bufio.NewScanner(out), in.Close
	require.NoError(t, h.Start())
	t.Cleanup(func() { _ = h.Process.Kill() }) // it has ended unless the test failed
	_, err = fmt.Sscan(h.says(t), &h.token)
	require.NoError(t, err)
	return h
}

func (h *leaseHolder) says(t *testing.T) string {
	t.Helper()
	require.True(t, h.Scan())
	return h.Text()
}

// A frozen holder cannot renew. Another one is granted the lease after the TTL, not
// before. The frozen one is told when it runs again.
func TestFrozenHolderOfALease(t *testing.T) {
	const ttl = 600 * time.Millisecond
	s := redistest.Start(t)
	holder := startLeaseHolder(t, s, ttl)
	l := clientOf(t, redis.NewClient(s.Options())).Lease(leaseKey, tether.Fenced(), tether.WithTTL(ttl))
	events := l.Events()
	waiting := l.AcquireAsync(t.Context())
	awaitEvent[tether.WaitingEvent](t, events)
	// While it is renewed, the lease is held for longer than its TTL.
	never(t, 2*ttl, func() bool { return len(waiting) > 0 })

	require.NoError(t, holder.Process.Signal(syscall.SIGSTOP))
	began := time.Now()
	left := realServer(t, s).admin.PTTL(t.Context(), leaseKey).Val()
	r := <-waiting
	require.NoError(t, r.Err)
	took := time.Since(began)
	require.GreaterOrEqual(t, took, left-5*time.Millisecond)
	require.Less(t, took, ttl+300*time.Millisecond)
	require.Greater(t, r.Hold.Token(), holder.token)
	never(t, ttl, func() bool { return r.Hold.Err() != nil })

	began = time.Now()
	require.NoError(t, holder.Process.Signal(syscall.SIGCONT))
	require.Contains(t, holder.says(t), `lost lock "l"`)
	told := time.Since(began)
	require.NoError(t, holder.Wait())
	t.Logf("taken %v after it was frozen, told %v after it woke up", took, told)
	require.Less(t, told, 250*time.Millisecond)
	// Neither its renewals nor its release have touched the other one's key.
	require.Equal(t, r.Hold.ID(), realServer(t, s).admin.Get(t.Context(), leaseKey).Val())
	require.NoError(t, r.Hold.Err())
	require.NoError(t, r.Hold.Release(t.Context()))
}

// After SIGKILL there are no renewals, and the lease is free after its TTL.
func TestKilledHolderOfALease(t *testing.T) {
	const ttl = 500 * time.Millisecond
	s := redistest.Start(t)
	holder := startLeaseHolder(t, s, ttl)
	require.NoError(t, holder.Process.Kill())
	began := time.Now()
	h, err := clientOf(t, redis.NewClient(s.Options())).Lease(leaseKey).Acquire(t.Context())
	require.NoError(t, err)
	require.Less(t, time.Since(began), ttl+300*time.Millisecond)
	require.NoError(t, h.Release(t.Context()))
	require.Error(t, holder.Wait())
}

// Renewals must be in time in a process whose only processor is always busy.
func TestALeaseIsRenewedOnABusyProcessor(t *testing.T) {
	ttl := max(1500*time.Millisecond, stress(t)/20)
	s := redistest.Start(t)
	holder := startLeaseHolder(t, s, ttl, "GOMAXPROCS=1", leaseBusyEnv+"=1")
	id := realServer(t, s).admin.Get(t.Context(), leaseKey).Val()
	never(t, 20*ttl, func() bool { return realServer(t, s).admin.Get(t.Context(), leaseKey).Val() != id })
	require.NoError(t, holder.end())
	require.Equal(t, "held: <nil> <nil>", holder.says(t))
	require.NoError(t, holder.Wait())
}

func TestRedisForgetsALease(t *testing.T) {
	const ttl = 1200 * time.Millisecond
	s := redistest.Start(t)
	admin := realServer(t, s).admin
	l := clientOf(t, redis.NewClient(s.Options())).Lease(leaseKey, tether.Fenced(), tether.WithTTL(ttl))
	token := int64(0)
	for name, forget := range map[string]func() error{
		"restart":  s.Restart,
		"FLUSHALL": func() error { return admin.FlushAll(t.Context()).Err() },
		"DEL":      func() error { return admin.Del(t.Context(), leaseKey).Err() },
	} {
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		require.Greater(t, h.Token(), token, "they rise all the same")
		token = h.Token()
		require.NoError(t, forget(), name)
		began := time.Now()
		<-h.Lost()
		require.Less(t, time.Since(began), ttl*3/4, "at the next renewal")
		require.ErrorContains(t, h.Err(), "expired, or was deleted", name)
	}
	// After its losses the same Lock acquires and renews again.
	events := l.Events()
	h, err := l.Acquire(t.Context())
	require.NoError(t, err)
	for range 4 {
		require.NoError(t, awaitEvent[tether.HealthEvent](t, events).Err)
	}
	require.Equal(t, h.ID(), admin.Get(t.Context(), leaseKey).Val())
	require.NoError(t, h.Err())
	require.NoError(t, h.Release(t.Context()))
}

// An outage that is shorter than the TTL is no loss.
func TestALeaseOutlivesAnOutage(t *testing.T) {
	const ttl = 3 * time.Second
	s := redistest.Start(t)
	srv := realServer(t, s)
	o := s.Options()
	o.ReadTimeout, o.MaxRetries = 200*time.Millisecond, -1
	l := clientOf(t, redis.NewClient(o)).Lease(leaseKey, tether.WithTTL(ttl), tether.WithRenewInterval(100*time.Millisecond))
	events := l.Events()
	h, err := l.Acquire(t.Context())
	require.NoError(t, err)
	health := func(bad bool) {
		for h := awaitEvent[tether.HealthEvent](t, events); (h.Err != nil) != bad; {
			h = awaitEvent[tether.HealthEvent](t, events)
		}
	}
	srv.freeze(t)
	health(true)
	srv.thaw(t)
	health(false)
	for range 3 { // ends all connections
		require.NoError(t, srv.admin.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err())
		health(false)
	}
	never(t, ttl, func() bool { return h.Err() != nil })
	require.NoError(t, h.Release(t.Context()))
}

// monitor returns the commands that a server runs, one a line.
func monitor(t *testing.T, s *redistest.Server) *bufio.Scanner {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	_, err = conn.Write([]byte("MONITOR\r\n"))
	require.NoError(t, err)
	lines := bufio.NewScanner(conn)
	require.True(t, lines.Scan())
	require.Equal(t, "+OK", lines.Text())
	return lines
}

func TestNoRenewalIsSeenAfterARelease(t *testing.T) {
	const every = 100 * time.Millisecond
	s := redistest.Start(t)
	l := clientOf(t, redis.NewClient(s.Options())).Lease(leaseKey, tether.WithTTL(time.Second), tether.WithRenewInterval(every))
	lines := monitor(t, s)
	h, err := l.Acquire(t.Context())
	require.NoError(t, err)
	about := func() bool {
		return strings.Contains(lines.Text(), h.ID()) || strings.Contains(lines.Text(), `"PEXPIRE"`)
	}
	for renewals := 0; renewals < 5; {
		require.True(t, lines.Scan())
		if strings.Contains(lines.Text(), `"PEXPIRE"`) {
			renewals++
		}
	}
	require.NoError(t, h.Release(t.Context()))
	s.MustDo(t, "ECHO", "released")
	<-time.After(20 * every)
	s.MustDo(t, "ECHO", "over")
	for after := false; !strings.Contains(lines.Text(), `"over"`); {
		require.True(t, lines.Scan())
		after = after || strings.Contains(lines.Text(), `"released"`)
		require.False(t, after && about(), lines.Text())
	}
}

// Many leases of one client are renewed in time. Their cost is logged.
func TestManyLeases(t *testing.T) {
	leases, while, ttl := 200, 2*time.Second, time.Second
	if d := stress(t); d > 0 {
		leases, while, ttl = 1000, d, 3*time.Second
	}
	s := redistest.Start(t)
	admin := realServer(t, s).admin
	c := clientOf(t, redis.NewClient(s.Options()))
	before := runtime.NumGoroutine()
	holds := make(chan *tether.Hold, leases)
	for i := range leases {
		go func() { // it ends with its result
			h, err := c.Lease(fmt.Sprint("l", i), tether.WithTTL(ttl)).Acquire(t.Context())
			if err != nil {
				t.Error(err)
			}
			holds <- h
		}()
	}
	var all []*tether.Hold
	for range leases {
		all = append(all, <-holds)
	}
	require.False(t, t.Failed())
	cpu, commands := processorTime(t), scriptRuns(t, admin)
	most := 0
	never(t, while, func() bool {
		most = max(most, runtime.NumGoroutine())
		for _, h := range all {
			if h.Err() != nil {
				return true
			}
		}
		return false
	})
	cpu, commands = processorTime(t)-cpu, scriptRuns(t, admin)-commands
	require.EqualValues(t, leases, admin.DBSize(t.Context()).Val())
	renewals := float64(leases) * while.Seconds() / (ttl / 3).Seconds()
	require.InDelta(t, renewals, float64(commands), renewals/3)
	t.Logf("%d leases with a TTL of %v for %v: %.0f commands/s, %.1f %% of a processor, %d goroutines at most (%d before)",
		leases, ttl, while, float64(commands)/while.Seconds(), 100*cpu.Seconds()/while.Seconds(), most, before)
	var results []<-chan error
	for _, h := range all {
		results = append(results, h.ReleaseAsync())
	}
	for _, r := range results {
		require.NoError(t, <-r)
	}
	require.Zero(t, admin.DBSize(t.Context()).Val())
}

// processorTime is the processor time of this process.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// scriptRuns returns how many scripts a server has run.
func scriptRuns(t *testing.T, admin *redis.Client) int {
	t.Helper()
	stats, err := admin.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	_, after, found := strings.Cut(stats, "cmdstat_evalsha:calls=")
	require.True(t, found)
	n := 0
	_, err = fmt.Sscanf(after, "%d,", &n)
	require.NoError(t, err)
	return n
}

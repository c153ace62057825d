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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/internal/redistest"
)

// leaseEnv makes the test binary a holder of a lease: it names the server and
// the TTL. Busy besides, it leaves the renewals no time.
const leaseEnv, busyEnv = "TETHER_TEST_LEASE", "TETHER_TEST_BUSY"

func init() {
	addr, ttl, ok := strings.Cut(os.Getenv(leaseEnv), " ")
	if !ok {
		return
	}
	d, err := time.ParseDuration(ttl)
	if err != nil {
		panic(err)
	}
	h, err := tether.New(redis.NewClient(&redis.Options{Addr: addr})).Lease("l", tether.WithTTL(d)).Acquire(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println(h.ID())
	if os.Getenv(busyEnv) != "" {
		go func() {
			for i := 0; ; i++ {
				_ = i * i
			}
		}()
	}
	<-h.Lost()
	fmt.Println(h.Err())
	os.Exit(0)
}

// leaseProcess starts a holder, and returns it with its holder id.
func leaseProcess(t *testing.T, s *redistest.Server, ttl time.Duration, env ...string) (*exec.Cmd, *bufio.Scanner, string) {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	p := exec.Command(program)
	p.Env = append(append(os.Environ(), env...), fmt.Sprintf("%s=%s %v", leaseEnv, s.Addr, ttl))
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	t.Cleanup(func() {
		_ = p.Process.Kill() // unless it has ended
		_ = p.Wait()
	})
	said := bufio.NewScanner(out)
	require.True(t, said.Scan())
	return p, said, said.Text()
}

// A process that is stopped for longer than the TTL finds out as soon as it goes
// on, before it asks anybody, and leaves the key of the next one alone.
func TestAFrozenHolderOfALeaseKnowsWhenItWakes(t *testing.T) {
	s := redistest.Start(t)
	p, said, _ := leaseProcess(t, s, 500*time.Millisecond)
	require.NoError(t, p.Process.Signal(syscall.SIGSTOP))
	rdb := redis.NewClient(s.Options())
	h, err := clientOf(t, rdb).Lease("l", tether.WithTTL(time.Minute)).Acquire(t.Context())
	require.NoError(t, err)
	require.NoError(t, p.Process.Signal(syscall.SIGCONT))
	require.True(t, said.Scan())
	require.Contains(t, said.Text(), "lost lock")
	require.NoError(t, p.Wait())
	require.Equal(t, h.ID(), rdb.Get(t.Context(), "l").Val())
	require.NoError(t, h.Release(t.Context()))
}

// On one processor that never rests a lease is renewed all the same.
func TestABusyProcessKeepsItsLease(t *testing.T) {
	const ttl = 500 * time.Millisecond
	s := redistest.Start(t)
	_, _, id := leaseProcess(t, s, ttl, "GOMAXPROCS=1", busyEnv+"=1")
	rdb := s.Client(t)
	never(t, 20*ttl, func() bool { return rdb.Get(t.Context(), "l").Val() != id })
}

func TestALeaseAndAServerThatFails(t *testing.T) {
	r := redistest.Start(t)
	s := onRedis(t, r)
	l := s.client(t).Lease("l", tether.WithTTL(3*time.Second), tether.WithRenewInterval(200*time.Millisecond))
	events := l.Events()
	h, err := l.Acquire(t.Context())
	require.NoError(t, err)

	// A renewal fails, and the next one succeeds.
	allow := func(rules ...any) {
		require.NoError(t, s.admin.Do(t.Context(), append([]any{"ACL", "SETUSER", "default"}, rules...)...).Err())
	}
	allow("-eval", "-evalsha")
	for failed := false; !failed; {
		failed = await[tether.HealthEvent](t, events).Err != nil
	}
	allow("+eval", "+evalsha")
	for failed := true; failed; {
		failed = await[tether.HealthEvent](t, events).Err != nil
	}
	require.NoError(t, h.Err())

	// Without its data the server knows of no lease.
	require.NoError(t, r.Restart())
	s.until(t, closed(h.Lost()))
	require.ErrorContains(t, h.Err(), "the key")

	// The same Lock takes it again, and renews it again.
	h, err = l.Acquire(t.Context())
	require.NoError(t, err)
	for renewed := 0; renewed < 3; {
		if await[tether.HealthEvent](t, events).Err == nil {
			renewed++
		}
	}
	require.NoError(t, s.admin.Del(t.Context(), "l").Err())
	s.until(t, closed(h.Lost()))
}

// Nothing is sent about a lease behind its release.
func TestNoRenewalBehindARelease(t *testing.T) {
	s := redistest.Start(t)
	monitor, err := net.Dial("tcp", s.Addr)
	require.NoError(t, err)
	defer func() { require.NoError(t, monitor.Close()) }()
	_, err = monitor.Write([]byte("MONITOR\r\n"))
	require.NoError(t, err)
	lines := bufio.NewScanner(monitor)
	require.True(t, lines.Scan()) // OK

	rdb := redis.NewClient(s.Options())
	c := clientOf(t, rdb)
	h, err := c.Lease("the-lease", tether.WithTTL(600*time.Millisecond), tether.WithRenewInterval(100*time.Millisecond)).Acquire(t.Context())
	require.NoError(t, err)
	never(t, 350*time.Millisecond, closed(h.Lost())) // some renewals
	require.NoError(t, h.Release(t.Context()))
	never(t, 700*time.Millisecond, func() bool { return false })
	require.NoError(t, rdb.Echo(t.Context(), "the end").Err())
	renewals, behind := 0, 0
	for released := false; lines.Scan() && !strings.Contains(lines.Text(), "the end"); {
		line := strings.ToLower(lines.Text())
		released = released || strings.Contains(line, `"del" "the-lease"`)
		switch {
		case !strings.Contains(line, `"pexpire" "the-lease"`):
		case released:
			behind++
		default:
			renewals++
		}
	}
	require.Positive(t, renewals)
	require.Zero(t, behind)
}

// What a thousand leases cost: TETHER_STRESS=1m says for how long.
func TestAThousandLeases(t *testing.T) {
	const n, ttl = 1000, 6 * time.Second
	during := 5 * time.Second
	if text := os.Getenv("TETHER_STRESS"); text != "" {
		var err error
		during, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	s := redistest.Start(t)
	o := s.Options()
	o.PoolSize = 16
	c := clientOf(t, redis.NewClient(o))
	admin := s.Client(t)
	goroutines := runtime.NumGoroutine()
	holds := make([]*tether.Hold, n)
	var takers sync.WaitGroup
	for i := range holds {
		takers.Go(func() {
			var err error
			if holds[i], err = c.Lease(fmt.Sprint("lease-", i), tether.WithTTL(ttl)).Acquire(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	takers.Wait()
	require.NoError(t, admin.ConfigResetStat(t.Context()).Err())
	var before, after syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &before))
	began := time.Now()
	never(t, during, func() bool { return false })
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &after))
	took := time.Since(began)
	cpu := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
	perLock := float64(runtime.NumGoroutine()-goroutines) / n
	stats, err := admin.InfoMap(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	t.Logf("%d leases, renewed every %v for %v: %.1f %% of a processor, %.2f goroutines each; %s", n, ttl/3, took.Round(time.Second),
		100*cpu.Seconds()/took.Seconds(), perLock, stats["Commandstats"]["cmdstat_evalsha"])
	require.Less(t, perLock, 1.5)
	for _, h := range holds {
		require.NoError(t, h.Err())
		require.NoError(t, h.Release(t.Context()))
	}
	require.Zero(t, admin.DBSize(t.Context()).Val())
}

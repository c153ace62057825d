package tether_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/internal/redistest"
	"github.com/tetherlock/tether/wire"
)

// Many contenders, and participants that are frozen, silent, foreign or legacy.

func TestAThousandCancelledWaitsLeaveNothing(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		h := s.acquire(t, s.client(t), "l")
		s.clientList(t) // the test's own connection
		connections, goroutines := len(s.clientList(t)), runtime.NumGoroutine()

		rdb := redis.NewClient(s.options())
		const contenders, each = 20, 50
		var clients []*tether.Client
		var wg sync.WaitGroup
		for range contenders {
			c := tether.New(rdb) // Locks of one client would share one local queue
			clients = append(clients, c)
			l := c.Lock("l")
			wg.Go(func() {
				for i := range each {
					ctx, cancel := context.WithTimeout(t.Context(), rand.N(5*time.Millisecond))
					var err error
					switch i % 3 {
					case 0:
						_, err = l.Acquire(ctx)
					case 1:
						_, err = c.Acquire(ctx, "l")
					default:
						err = (<-l.AcquireAsync(ctx)).Err
					}
					cancel()
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()

		s.eventually(t, func() bool {
			channels, err := s.admin.PubSubChannels(t.Context(), "*").Result()
			require.NoError(t, err)
			return slices.Equal(channels, []string{"l"}) && s.subscribers(t, "l") == 1
		})
		for _, c := range clients {
			require.NoError(t, c.Close())
		}
		require.NoError(t, rdb.Close())
		s.eventually(t, func() bool {
			return len(s.clientList(t)) == connections && runtime.NumGoroutine() <= goroutines
		})
		require.NoError(t, h.Err(), "cancelled waits do not end the hold")
	})
}

// requireHealthy returns an option for clients. The test fails if one of their
// locks is lost before Close, or reaps somebody.
func requireHealthy(t *testing.T) tether.Option {
	var mu sync.Mutex
	var seen []string
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		require.Empty(t, seen)
	})
	return tether.WithObserver(func(e tether.Event) {
		mu.Lock()
		defer mu.Unlock()
		switch e := e.(type) {
		case tether.ReapedEvent:
			seen = append(seen, "reaped: "+e.Holder.String())
		case tether.ReapDeniedEvent:
			seen = append(seen, e.Err.Error())
		case tether.LostEvent:
			if !errors.Is(e.Err, tether.ErrClosed) {
				seen = append(seen, e.Err.Error())
			}
		}
	})
}

func TestAHundredReadersAndAWriter(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		const contenders = 100
		healthy := requireHealthy(t)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		results := make(chan tether.Result, contenders)
		for range contenders {
			// A hundred participants in one process can be slow on a busy machine.
			// They must not reap each other.
			l := s.client(t, healthy).Lock("l", tether.Shared(), tether.WithUnavailableTimeout(5*time.Second), tether.WithHealthCheck(time.Minute))
			go func() { // it ends with its result
				h, err := l.Acquire(ctx)
				results <- tether.Result{Hold: h, Err: err}
			}()
		}
		var readers []*tether.Hold
		for range contenders {
			r := <-results
			require.NoError(t, r.Err)
			readers = append(readers, r.Hold)
		}
		require.Equal(t, contenders, s.subscribers(t, "l"), "all hold together")

		l := s.client(t, healthy).Lock("l")
		events := l.Events()
		writer := l.AcquireAsync(t.Context())
		require.NotEmpty(t, awaitEvent[tether.WaitingEvent](t, events).Holders)
		// For longer than the unavailable time-out: nobody may be found silent.
		never(t, 1300*time.Millisecond, func() bool { return len(writer) > 0 })
		for _, h := range readers {
			require.NoError(t, h.Err())
			require.Empty(t, writer)
			require.NoError(t, h.Release(t.Context()))
		}
		r := <-writer
		require.NoError(t, r.Err)
		require.Equal(t, 1, s.subscribers(t, "l"))
		require.NoError(t, r.Hold.Release(t.Context()))
	})
}

// addSilent adds a subscriber that is counted and never answers, like a frozen
// participant. Its connection has the name, if any. It returns its address.
func (s server) addSilent(t *testing.T, channel, name string) string {
	t.Helper()
	o := s.options()
	o.ClientName = name
	rdb := redis.NewClient(o)
	before := s.clientList(t)
	sub := rdb.Subscribe(t.Context(), channel)
	t.Cleanup(func() {
		require.NoError(t, sub.Close())
		require.NoError(t, rdb.Close())
	})
	_, err := sub.Receive(t.Context())
	require.NoError(t, err)
	for _, c := range s.clientList(t) {
		known := func(b map[string]string) bool { return b["id"] == c["id"] }
		if c["sub"] == "1" && c["name"] == name && !slices.ContainsFunc(before, known) {
			return c["addr"]
		}
	}
	require.Fail(t, "the subscriber is not in the list")
	return ""
}

func (s server) isConnected(t *testing.T, addr string) bool {
	t.Helper()
	return slices.ContainsFunc(s.clientList(t), func(c map[string]string) bool { return c["addr"] == addr })
}

const (
	someID  = "0123456789abcdef0123456789abcdef"
	otherID = "fedcba9876543210fedcba9876543210"
)

// A connection "a-lock-b-lock-<id>" belongs to the lock "a-lock-b", not to "a".
// Names must be compared exactly, not by a prefix.
func TestNeighboursAreNotReaped(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		neighbour := s.acquire(t, s.client(t), "a-lock-b")
		frozen := s.addSilent(t, "a", "a-lock-"+someID)
		spared := []string{
			s.addSilent(t, "a-lock-b", "a-lock-b-lock-"+someID),
			s.addSilent(t, "a-lock-b", "a-lock-b-lock-"+otherID),
			s.addSilent(t, "a-lock-b", "a-lock-b-lock"),
			s.addSilent(t, "b", "a-lock-b"),
			s.addSilent(t, "b", "a-lock-"+strings.ToUpper(someID)),
			s.addSilent(t, "b", "a-lock-"+someID[1:]),
			s.addSilent(t, "b", "tether-idle"),
		}
		l := s.client(t).Lock("a", tether.WithUnavailableTimeout(200*time.Millisecond))
		events := l.Events()
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		reaped := awaitEvent[tether.ReapedEvent](t, events)
		require.Equal(t, someID, reaped.Holder.ID)
		require.Equal(t, frozen, reaped.Holder.Addr)
		require.False(t, s.isConnected(t, frozen))
		for _, addr := range spared {
			require.True(t, s.isConnected(t, addr))
		}
		require.NoError(t, neighbour.Err())
		owned, err := neighbour.Owned(t.Context())
		require.NoError(t, err)
		require.True(t, owned)
		require.NoError(t, h.Release(t.Context()))
		require.NoError(t, l.Close())
		for e := range events {
			require.IsNotType(t, tether.ReapedEvent{}, e)
		}
	})
}

// fencedEnv makes the test binary a process that holds a fenced lock. It prints its
// token, and its error when it is told of its loss.
const fencedEnv = "TETHER_TEST_FENCED"

func init() {
	if addr := os.Getenv(fencedEnv); addr != "" {
		holdUntilLost(addr)
	}
}

func holdUntilLost(addr string) {
	c := tether.New(redis.NewClient(&redis.Options{Addr: addr}))
	h, err := c.Acquire(context.Background(), "frozen", tether.Fenced())
	if err != nil {
		panic(err)
	}
	fmt.Println(h.Token())
	<-h.Lost()
	fmt.Println(h.Err())
	os.Exit(0)
}

// A frozen holder is reaped about one unavailable time-out after somebody wants
// the lock. It is told when it runs again.
func TestFrozenHolderIsReaped(t *testing.T) {
	const unavailable = 400 * time.Millisecond
	s := redistest.Start(t)
	for name, ask := range map[string]func(*tether.Lock, context.Context) (*tether.Hold, error){
		"acquire": (*tether.Lock).Acquire,
		"try":     (*tether.Lock).TryAcquire,
	} {
		t.Run(name, func(t *testing.T) {
			program, err := os.Executable()
			require.NoError(t, err)
			holder := exec.Command(program)
			holder.Env = append(os.Environ(), fencedEnv+"="+s.Addr)
			out, err := holder.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, holder.Start())
			defer func() { _ = holder.Process.Kill() }() // it has ended unless the test failed
			said := bufio.NewScanner(out)
			require.True(t, said.Scan())
			var token int64
			_, err = fmt.Sscan(said.Text(), &token)
			require.NoError(t, err)

			require.NoError(t, holder.Process.Signal(syscall.SIGSTOP))
			var status syscall.WaitStatus // until it has stopped, it may answer
			_, err = syscall.Wait4(holder.Process.Pid, &status, syscall.WUNTRACED, nil)
			require.NoError(t, err)
			require.True(t, status.Stopped())
			l := clientOf(t, redis.NewClient(s.Options())).Lock("frozen", tether.Fenced(), tether.WithUnavailableTimeout(unavailable))
			began := time.Now()
			h, err := ask(l, t.Context())
			require.NoError(t, err)
			took := time.Since(began)
			require.Greater(t, h.Token(), token)
			require.NoError(t, h.Release(t.Context()))
			h, err = l.TryAcquire(t.Context())
			require.NoError(t, err)

			began = time.Now()
			require.NoError(t, holder.Process.Signal(syscall.SIGCONT))
			require.True(t, said.Scan())
			told := time.Since(began)
			require.Contains(t, said.Text(), `lost lock "frozen"`)
			require.NoError(t, holder.Wait())
			require.NoError(t, h.Err())
			require.NoError(t, h.Release(t.Context()))
			t.Logf("taken %v after it was asked for, told %v after it woke up", took, told)
			require.GreaterOrEqual(t, took, unavailable)
			require.Less(t, took, unavailable+time.Second) // the machine may be busy
			require.Less(t, told, 250*time.Millisecond)
		})
	}
}

// During CLIENT PAUSE no participant can answer. That must not make anybody silent,
// however long the pause is.
func TestNobodyIsReapedInAPause(t *testing.T) {
	const unavailable = 300 * time.Millisecond
	s := realServer(t, redistest.Start(t))
	for _, held := range []string{"WRITE", "ALL"} {
		t.Run(held, func(t *testing.T) {
			healthy := requireHealthy(t)
			options := []tether.LockOption{
				tether.Fenced(), tether.WithUnavailableTimeout(unavailable), tether.WithPollInterval(10 * time.Millisecond),
			}
			h, err := s.client(t, healthy).Acquire(t.Context(), "l", options...)
			require.NoError(t, err)
			const waiters = 3
			results := make(chan tether.Result, waiters)
			for range waiters {
				c := s.client(t, healthy)
				go func() { // it ends with its result
					h, err := c.Acquire(t.Context(), "l", options...)
					results <- tether.Result{Hold: h, Err: err}
				}()
			}
			for range 3 {
				pause := 2*unavailable + rand.N(unavailable)
				require.NoError(t, s.admin.Do(t.Context(), "CLIENT", "PAUSE", pause.Milliseconds(), held).Err())
				never(t, pause+rand.N(100*time.Millisecond), func() bool { return h.Err() != nil || len(results) > 0 })
			}
			require.NoError(t, h.Release(t.Context()))
			for range waiters {
				r := <-results
				require.NoError(t, r.Err)
				require.NoError(t, r.Hold.Release(t.Context()))
			}
		})
	}
}

func TestReapingNeedsPermission(t *testing.T) {
	const unavailable = 200 * time.Millisecond
	s := redistest.Start(t)
	srv := realServer(t, s)
	for _, missing := range []string{"client|list", "client|kill"} {
		t.Run(missing, func(t *testing.T) {
			s.MustDo(t, "ACL", "SETUSER", "locks", "reset", "on", ">secret", "allchannels", "+@all", "-"+missing)
			frozen := srv.addSilent(t, missing, missing+"-lock-"+someID)
			o := s.Options()
			o.Username, o.Password = "locks", "secret"
			l := clientOf(t, redis.NewClient(o)).Lock(missing, tether.WithUnavailableTimeout(unavailable))
			events := l.Events()
			began := time.Now()
			_, err := l.TryAcquire(t.Context())
			require.Less(t, time.Since(began), 4*unavailable)
			require.NotErrorIs(t, err, tether.ErrHeld, "whether it holds is not known")
			require.ErrorContains(t, err, "1 participant does not answer")
			require.ErrorContains(t, err, "no permission for "+strings.ToUpper(missing))
			denied := awaitEvent[tether.ReapDeniedEvent](t, events)
			permission, ok := errors.AsType[*tether.PermissionError](denied.Err)
			require.True(t, ok, "%v", denied.Err)
			require.Equal(t, strings.ToUpper(missing), permission.Command)
			require.True(t, srv.isConnected(t, frozen))
			if missing == "client|kill" {
				require.ErrorContains(t, err, frozen)
			}
		})
	}
}

// A subscriber whose connection does not have a participant's name is not reaped.
// It may be a monitor. The error has its address.
func TestForeignSubscriberIsNamed(t *testing.T) {
	const unavailable = 200 * time.Millisecond
	onServers(t, func(t *testing.T, s server) {
		foreign := s.addSilent(t, "l", "")
		l := s.client(t).Lock("l", tether.WithUnavailableTimeout(unavailable))
		began := time.Now()
		_, err := l.TryAcquire(t.Context())
		require.Less(t, time.Since(began), 4*unavailable)
		require.NotErrorIs(t, err, tether.ErrHeld, "whether it holds is not known")
		require.ErrorContains(t, err, "1 participant does not answer")
		require.ErrorContains(t, err, foreign)

		events := l.Events()
		ctx, cancel := context.WithCancel(t.Context())
		waiting := l.AcquireAsync(ctx)
		require.Equal(t, 1, awaitEvent[tether.WaitingEvent](t, events).Silent)
		cancel()
		r := <-waiting
		require.ErrorIs(t, r.Err, context.Canceled)
		require.ErrorContains(t, r.Err, foreign)
		require.True(t, s.isConnected(t, foreign))
	})
}

// legacy adds a holder of portalocker 3.2 or older. All of these have the same
// connection name, and answer with a timestamp. leave ends it.
func (s server) legacy(t *testing.T, channel string) (leave func()) {
	t.Helper()
	o := s.options()
	o.ClientName = channel + "-lock"
	rdb := redis.NewClient(o)
	sub := rdb.Subscribe(t.Context(), channel)
	_, err := sub.Receive(t.Context())
	require.NoError(t, err)
	var answering sync.WaitGroup
	answering.Go(func() {
		for m := range sub.Channel() {
			if ping, ok := wire.DecodePing(m.Payload); ok {
				_ = rdb.Publish(context.Background(), ping.Response, "1700000000.5").Err() // without an answer the test fails
			}
		}
	})
	return func() {
		require.NoError(t, sub.Close())
		answering.Wait()
		require.NoError(t, rdb.Close())
	}
}

// Legacy holders have no id, so that nobody knows which of them has answered. None
// of them is reaped while one answers.
func TestLegacyHoldersAreSparedWhileOneAnswers(t *testing.T) {
	const unavailable = 200 * time.Millisecond
	onServers(t, func(t *testing.T, s server) {
		leave := s.legacy(t, "l")
		frozen := s.addSilent(t, "l", "l-lock")
		l := s.client(t).Lock("l", tether.WithUnavailableTimeout(unavailable), tether.WithPollInterval(20*time.Millisecond))
		events := l.Events()
		waiting := l.AcquireAsync(t.Context())
		for silent := 0; silent < 3; {
			if w := awaitEvent[tether.WaitingEvent](t, events); w.Silent == 1 {
				require.Len(t, w.Holders, 1)
				require.True(t, w.Holders[0].Legacy)
				silent++
			}
		}
		require.True(t, s.isConnected(t, frozen))
		require.Empty(t, waiting)
		leave()
		reaped := awaitEvent[tether.ReapedEvent](t, events)
		require.True(t, reaped.Holder.Legacy)
		require.Equal(t, frozen, reaped.Holder.Addr)
		r := <-waiting
		require.NoError(t, r.Err)
		require.False(t, s.isConnected(t, frozen))
		require.NoError(t, r.Hold.Release(t.Context()))
	})
}

func TestServerThatStopsAndComesBack(t *testing.T) {
	for name, c := range map[string]struct {
		stop     syscall.Signal
		released string
	}{
		"killed": {syscall.SIGKILL, `lost lock "l"`},
		"frozen": {syscall.SIGSTOP, `release of "l" not confirmed`},
	} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t)
			l := clientOf(t, redis.NewClient(s.Options())).Lock("l", tether.Fenced())
			h, err := l.Acquire(t.Context())
			require.NoError(t, err)
			require.NoError(t, s.Signal(c.stop))
			if c.stop == syscall.SIGKILL {
				<-h.Lost()
			}
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			require.ErrorContains(t, h.Release(ctx), c.released)
			require.Error(t, h.Err())

			waiting := l.AcquireAsync(t.Context())
			require.NoError(t, s.Restart())
			r := <-waiting
			require.NoError(t, r.Err)
			require.Greater(t, r.Hold.Token(), h.Token())
			require.NoError(t, r.Hold.Release(t.Context()))
		})
	}
}

func TestWaitersGetTheLockInOrderOfArrival(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		const waiters = 8
		h := s.acquire(t, s.client(t), "l")
		order := make(chan int, waiters)
		var wg sync.WaitGroup
		for i := range waiters {
			l := s.client(t).Lock("l")
			events := l.Events()
			wg.Go(func() {
				h, err := l.Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				order <- i
				if err := h.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
			for awaitEvent[tether.WaitingEvent](t, events).Place != i+1 {
			}
		}
		require.NoError(t, h.Release(t.Context()))
		wg.Wait()
		close(order)
		got := slices.Collect(func(yield func(int) bool) {
			for i := range order {
				if !yield(i) {
					return
				}
			}
		})
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7}, got)
	})
}

// A program that releases and acquires in a loop still has its connection, and
// would be faster than the waiter every time.
func TestTightLoopsShareTheLock(t *testing.T) {
	const sections, work = 300, time.Millisecond // long enough for the other one to acquire, on a busy machine
	onServers(t, func(t *testing.T, s server) {
		for name, newAcquire := range map[string]func(*tether.Client) func(context.Context) (*tether.Hold, error){
			"lock": func(c *tether.Client) func(context.Context) (*tether.Hold, error) { return c.Lock("l").Acquire },
			"once": func(c *tether.Client) func(context.Context) (*tether.Hold, error) {
				return func(ctx context.Context) (*tether.Hold, error) { return c.Acquire(ctx, "l") }
			},
		} {
			t.Run(name, func(t *testing.T) {
				var turns atomic.Int64
				var share [2]int
				var wg sync.WaitGroup
				first := s.acquire(t, s.client(t), "l")
				for i := range share {
					acquire := newAcquire(s.client(t))
					wg.Go(func() {
						for turns.Load() < sections {
							h, err := acquire(t.Context())
							if err != nil {
								t.Error(err)
								return
							}
							turns.Add(1)
							share[i]++
							<-time.After(work)
							if err := h.Release(t.Context()); err != nil {
								t.Error(err)
							}
						}
					})
				}
				s.eventually(t, func() bool { return s.subscribers(t, wire.WaitersChannel("l")) == len(share) })
				began := time.Now()
				require.NoError(t, first.Release(t.Context()))
				wg.Wait()
				t.Logf("%d and %d sections in %v", share[0], share[1], time.Since(began))
				require.InDelta(t, 0.5, float64(share[0])/float64(share[0]+share[1]), 0.1)
			})
		}
	})
}

// commandCounts returns how often the server has run each command.
func (s server) commandCounts(t *testing.T) map[string]int {
	t.Helper()
	text, err := s.admin.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	commandCounts := map[string]int{}
	for line := range strings.Lines(text) {
		name, stats, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !ok || name == "info" {
			continue
		}
		n, _, _ := strings.Cut(stats, ",")
		count := 0
		_, err := fmt.Sscan(n, &count)
		require.NoError(t, err)
		commandCounts[name] = count
	}
	return commandCounts
}

// diffCounts returns the commands between two counts: their number, and a list for
// the log.
func diffCounts(before, after map[string]int) (sum int, by string) {
	var list []string
	for name, n := range after {
		if n -= before[name]; n > 0 {
			sum += n
			list = append(list, fmt.Sprintf("%s %d", name, n))
		}
	}
	slices.Sort(list)
	return sum, strings.Join(list, ", ")
}

// The polls of all sleepers of a lock together cost about the same, however many
// there are.
func TestPollCostsAConstantPerLock(t *testing.T) {
	const poll, while = 20 * time.Millisecond, 500 * time.Millisecond
	sleeperCounts := []int{1, 10, 100}
	if os.Getenv("TETHER_STRESS") != "" {
		sleeperCounts = append(sleeperCounts, 1000) // too slow for a normal run
	}
	s := realServer(t, redistest.Start(t))
	h := s.acquire(t, s.client(t), "l")
	ctx, cancel := context.WithCancel(t.Context())
	var waiting []<-chan tether.Result
	rates := map[int]int{}
	for _, sleepers := range sleeperCounts {
		began := time.Now()
		for len(waiting) < sleepers {
			for range min(20, sleepers-len(waiting)) {
				waiting = append(waiting, s.client(t).Lock("l", tether.WithPollInterval(poll)).AcquireAsync(ctx))
			}
			s.eventually(t, func() bool { return s.subscribers(t, wire.WaitersChannel("l")) == len(waiting) })
		}
		settled := time.Since(began)
		// The first polls of new sleepers find out how many there are. They cost
		// more.
		s.eventually(t, func() bool {
			before := s.commandCounts(t)
			<-time.After(4 * poll)
			n, _ := diffCounts(before, s.commandCounts(t))
			return n < 200
		})
		before := s.commandCounts(t)
		<-time.After(while)
		n, by := diffCounts(before, s.commandCounts(t))
		n *= int(time.Second / while)
		rates[sleepers] = n
		t.Logf("%d sleepers (there after %v): %d commands a second (%s)", sleepers, settled, n, by)
	}
	cancel()
	for _, w := range waiting {
		require.ErrorIs(t, (<-w).Err, context.Canceled)
	}
	require.NoError(t, h.Err())
	// There are 4 polls in a poll interval. Seven in eight are one command, and one
	// is a whole attempt of about 15 commands, with the holder's answer.
	for sleepers, rate := range rates {
		require.Less(t, rate, 4*int(time.Second/poll)*(7+15)/8*2, "%d sleepers", sleepers)
	}
}

// countWrites makes the connections of a client count their writes.
func countWrites(o *redis.Options, writes *atomic.Int64) *redis.Options {
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, addr)
		return countingConn{conn, writes}, err
	}
	return o
}

type countingConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countingConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// A release wakes the next waiter, which needs one more round trip. The other
// waiters send nothing.
func TestReleaseToGrantTakesTwoRoundTrips(t *testing.T) {
	s := realServer(t, redistest.Start(t))
	var writes atomic.Int64
	client := func() *tether.Client { return clientOf(t, redis.NewClient(countWrites(s.options(), &writes))) }
	const waiters = 5
	h, err := client().Acquire(t.Context(), "l")
	require.NoError(t, err)
	var queue []*tether.Lock
	var waiting []<-chan tether.Result
	for i := range waiters {
		// With this interval nobody polls: each is granted because of its wake.
		l := client().Lock("l", tether.WithPollInterval(time.Hour))
		events := l.Events()
		queue, waiting = append(queue, l), append(waiting, l.AcquireAsync(t.Context()))
		for awaitEvent[tether.WaitingEvent](t, events).Place != i+1 {
		}
		s.eventually(t, func() bool { return s.subscribers(t, "l") == 1 })
	}
	for i, w := range waiting {
		before, written := s.commandCounts(t), writes.Load()
		require.NoError(t, h.Release(t.Context()))
		r := <-w
		require.NoError(t, r.Err)
		h = r.Hold
		granted := awaitEvent[tether.GrantedEvent](t, queue[i].Events())
		n, by := diffCounts(before, s.commandCounts(t))
		wrote := writes.Load() - written
		t.Logf("waiter %d: %d round trips, %d writes, %d commands (%s)", i, granted.RoundTrips, wrote, n, by)
		require.Equal(t, 1, granted.RoundTrips)
		// One write of the releaser, one of the woken waiter, and one with which it
		// leaves the sleepers' channels. The first releaser's connection may get a
		// new name.
		require.LessOrEqual(t, wrote, int64(4))
		require.LessOrEqual(t, n, 12)
	}
	require.NoError(t, h.Release(t.Context()))
}

// acquireInLoop acquires and releases a lock until over is closed. It returns the
// number of grants.
func acquireInLoop(t *testing.T, l *tether.Lock, work time.Duration, over <-chan struct{}) (turns int) {
	for {
		h, err := l.Acquire(t.Context())
		if err != nil {
			t.Error(err)
			return turns
		}
		turns++
		<-time.After(work)
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
		select {
		case <-over:
			return turns
		default:
		}
	}
}

// A writer gets its turns although there is always a reader, and a reader although
// there is always a writer.
func TestNeitherSideStarves(t *testing.T) {
	const contenders, turns, work = 4, 15, 5 * time.Millisecond
	reader := func(c *tether.Client) *tether.Lock { return c.Lock("l", tether.Shared()) }
	writer := func(c *tether.Client) *tether.Lock { return c.Lock("l") }
	onServers(t, func(t *testing.T, s server) {
		for name, c := range map[string]struct {
			many, one func(*tether.Client) *tether.Lock
			together  bool // the many share one Lock and its participant
		}{
			"a writer among readers":           {many: reader, one: writer},
			"a writer among readers of a Lock": {many: reader, one: writer, together: true},
			"a reader among writers":           {many: writer, one: reader},
		} {
			t.Run(name, func(t *testing.T) {
				over := make(chan struct{})
				var all atomic.Int64
				var wg sync.WaitGroup
				l := c.many(s.client(t))
				for i := range contenders {
					if i > 0 && !c.together {
						l = c.many(s.client(t))
					}
					mine := l
					wg.Go(func() { all.Add(int64(acquireInLoop(t, mine, work, over))) })
				}
				l = c.one(s.client(t))
				var waits []time.Duration
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				for range turns {
					asked := time.Now()
					h, err := l.Acquire(ctx)
					require.NoError(t, err)
					waits = append(waits, time.Since(asked))
					<-time.After(work)
					require.NoError(t, h.Release(t.Context()))
				}
				took := time.Since(began)
				close(over)
				wg.Wait()
				slices.Sort(waits)
				t.Logf("%d turns beside %d of the many in %v; waits: median %v, longest %v",
					turns, all.Load(), took, waits[turns/2], waits[turns-1])
				// In order of arrival each of the many has one turn before its next.
				require.Less(t, all.Load(), int64(3*contenders*turns))
				require.Greater(t, all.Load(), int64(turns), "the many do not starve either")
			})
		}
	})
}

package tether_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/internal/redistest"
	"github.com/tetherlock/tether/wire"
)

// Promises of the README that the other files do not test.

func TestOneHolderAtATime(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		const contenders, turns = 6, 8
		section := newCriticalSection()
		var wg sync.WaitGroup
		for i := range contenders {
			c := s.client(t)
			l := c.Lock("l")
			wg.Go(func() {
				for turn := range turns {
					acquire := l.Acquire
					if (i+turn)%3 == 0 {
						acquire = func(ctx context.Context) (*tether.Hold, error) { return c.Acquire(ctx, "l") }
					}
					h, err := acquire(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					section.run(t)
					if err := h.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		s.awaitNoSubscribers(t, "l")
	})
}

// Of several tries on a free lock exactly one is granted. Contenders are not
// holders: two tries must not refuse each other.
func TestOfSeveralTriesExactlyOneWins(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		var clients []*tether.Client
		for range 4 {
			clients = append(clients, s.client(t))
		}
		for range 20 {
			results := make(chan tether.Result, len(clients))
			for _, c := range clients {
				go func() {
					h, err := c.TryAcquire(t.Context(), "l")
					results <- tether.Result{Hold: h, Err: err}
				}()
			}
			var won []*tether.Hold
			for range clients {
				if r := <-results; r.Err == nil {
					won = append(won, r.Hold)
				} else {
					require.ErrorIs(t, r.Err, tether.ErrHeld)
				}
			}
			require.Len(t, won, 1)
			require.NoError(t, won[0].Release(t.Context()))
		}
	})
}

func TestKilledHolderFreesTheLock(t *testing.T) {
	s := redistest.Start(t)
	c := clientOf(t, redis.NewClient(s.Options()))
	for range 3 {
		holder := startHolder(t, s.Addr)
		l := c.Lock("crash")
		events := l.Events()
		waiting := l.AcquireAsync(t.Context())
		waited := awaitEvent[tether.WaitingEvent](t, events)
		require.Len(t, waited.Holders, 1)
		began := time.Now()
		require.NoError(t, holder.Process.Kill())
		r := <-waiting
		require.NoError(t, r.Err)
		// Two poll intervals of 100 ms, and what a busy machine adds.
		require.Less(t, time.Since(began), 400*time.Millisecond)
		require.Error(t, holder.Wait())
		require.NoError(t, r.Hold.Release(t.Context()))
	}
}

func TestLossIsToldAtOnce(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		l := s.client(t).Lock("l")
		var took []time.Duration
		for range 20 {
			h, err := l.Acquire(t.Context())
			require.NoError(t, err)
			began := time.Now()
			s.killConnections(t, "l") // includes the round trips of its commands
			<-h.Lost()
			took = append(took, time.Since(began))
		}
		// On a busy machine a process may not run for a while, so one in ten may
		// be later.
		slices.Sort(took)
		require.Less(t, took[len(took)*9/10], 50*time.Millisecond)
	})
	t.Run("restart", func(t *testing.T) {
		s := redistest.Start(t)
		l := clientOf(t, redis.NewClient(s.Options())).Lock("l")
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.Restart())
		<-h.Lost()
		again, err := l.Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, again.Release(t.Context()))
	})
}

// A half-open link has no answers and no end: the peer is gone, and no packet says
// so.
func TestHalfOpenLinkIsLost(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		const health = 150 * time.Millisecond
		h, err := s.client(t).Acquire(t.Context(), "l", tether.WithHealthCheck(health))
		require.NoError(t, err)
		s.freeze(t)
		defer s.thaw(t)
		began := time.Now()
		<-h.Lost()
		require.Less(t, time.Since(began), 4*health)
		lost, ok := errors.AsType[*tether.LostError](h.Err())
		require.True(t, ok)
		require.ErrorContains(t, lost, "no answer")
	})
}

func TestHealthChecksKeepAHold(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		l := s.client(t).Lock("l", tether.WithHealthCheck(100*time.Millisecond))
		events := l.Events()
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		for range 3 {
			require.Positive(t, awaitEvent[tether.HealthEvent](t, events).RoundTrip)
		}
		require.NoError(t, h.Err())
		require.NoError(t, h.Release(t.Context()))
	})
}

func TestWaiterThatGivesUpLeavesNothing(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		h := s.acquire(t, s.client(t), "l")
		c := s.client(t)
		giveUp := func(after time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			_, err := c.Acquire(ctx, "l")
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		giveUp(50 * time.Millisecond) // it leaves one idle connection
		clients, goroutines := len(s.clientList(t)), runtime.NumGoroutine()
		for i := range 60 {
			giveUp(time.Duration(i) * 200 * time.Microsecond)
		}
		s.eventually(t, func() bool {
			return s.subscribers(t, "l") == 1 && len(s.clientList(t)) <= clients && runtime.NumGoroutine() <= goroutines
		})
		require.NoError(t, h.Err(), "waits that were given up do not end the hold")
	})
}

func TestUnreadEventsDoNotStopTheLock(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		l := s.client(t).Lock("l")
		events := l.Events()
		for len(events) < cap(events) {
			h, err := l.Acquire(t.Context())
			require.NoError(t, err)
			require.NoError(t, h.Release(t.Context()))
		}
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		peer := s.client(t)
		for range 5 {
			seen, err := peer.Probe(t.Context(), "l")
			require.NoError(t, err)
			require.Len(t, seen, 1)
			require.Equal(t, h.ID(), seen[0].ID)
		}
		require.NoError(t, h.Release(t.Context()))
	})
}

// Names of any bytes work, and "a" and "a-lock-b" are different locks.
func TestNames(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		long := make([]byte, 10_000)
		for i := range long {
			long[i] = 'x'
		}
		one, two := s.client(t), s.client(t)
		for _, name := range []string{
			"a", "a-lock-b", "with space", "tab\tand\nline", "naïve/キー", "{brace}", "100%", "\x00\x01", "\xff\xfe", string(long),
		} {
			h, err := one.Acquire(t.Context(), name)
			require.NoError(t, err, "%.20q", name)
			_, err = two.TryAcquire(t.Context(), name)
			require.ErrorIs(t, err, tether.ErrHeld, "%.20q", name)
			seen, err := two.Probe(t.Context(), name)
			require.NoError(t, err, "%.20q", name)
			require.Len(t, seen, 1)
			require.Equal(t, h.ID(), seen[0].ID)
			require.NotEmpty(t, seen[0].Addr)
			defer func() { require.NoError(t, h.Release(t.Context())) }()
		}
	})
}

func TestProbe(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		seen, err := c.Probe(t.Context(), "l")
		require.NoError(t, err)
		require.NotNil(t, seen)
		require.Empty(t, seen)
		h := s.acquire(t, s.client(t), "l")
		s.eventually(t, func() bool {
			seen, err = c.Probe(t.Context(), "l")
			require.NoError(t, err)
			return seen[0].Held > 0
		})
		require.Equal(t, h.ID(), seen[0].ID)
		require.Equal(t, "exclusive", seen[0].Mode)
		require.False(t, seen[0].Legacy)

		// The error says that somebody did not answer, and the list has the others.
		silent := s.admin.Subscribe(t.Context(), "l")
		defer func() { require.NoError(t, silent.Close()) }()
		_, err = silent.Receive(t.Context())
		require.NoError(t, err)
		seen, err = c.Probe(t.Context(), "l")
		require.ErrorContains(t, err, "did not answer")
		require.Len(t, seen, 1)
		require.Equal(t, 2, s.subscribers(t, "l"), "it changes nothing")

		// An acquire beside them is not granted.
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err = s.client(t).Acquire(ctx, "l")
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// A participant of portalocker 3.2 or older answers with a bare timestamp. It is a
// holder.
func TestLegacyParticipantHolds(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		o := s.options()
		o.ClientName = "l-lock"
		old := redis.NewClient(o)
		defer func() { require.NoError(t, old.Close()) }()
		sub := old.Subscribe(t.Context(), "l")
		_, err := sub.Receive(t.Context())
		require.NoError(t, err)
		var answering sync.WaitGroup
		answering.Go(func() {
			for m := range sub.Channel() {
				if ping, ok := wire.DecodePing(m.Payload); ok {
					_ = old.Publish(context.Background(), ping.Response, "1700000000.5").Err() // without an answer the test fails
				}
			}
		})
		defer answering.Wait()
		defer func() { require.NoError(t, sub.Close()) }()

		c := s.client(t)
		seen, err := c.Probe(t.Context(), "l")
		require.NoError(t, err)
		require.Len(t, seen, 1)
		require.True(t, seen[0].Legacy)
		require.Equal(t, "exclusive", seen[0].Mode)
		require.NotEmpty(t, seen[0].Addr)
		_, err = c.TryAcquire(t.Context(), "l")
		held, ok := errors.AsType[*tether.HeldError](err)
		require.True(t, ok, "%v", err)
		require.True(t, held.Holders[0].Legacy)
	})
}

// A try beside a silent participant ends in time, and its error says so.
func TestTryEndsBesideASilentParticipant(t *testing.T) {
	s := realServer(t, redistest.Start(t))
	silent := s.admin.Subscribe(t.Context(), "l")
	defer func() { require.NoError(t, silent.Close()) }()
	_, err := silent.Receive(t.Context())
	require.NoError(t, err)
	began := time.Now()
	_, err = s.client(t).TryAcquire(t.Context(), "l")
	require.ErrorContains(t, err, "1 participant does not answer")
	require.NotErrorIs(t, err, tether.ErrHeld, "whether it holds is not known")
	require.Less(t, time.Since(began), 4*time.Second)
	require.Equal(t, 1, s.subscribers(t, "l"))
}

// countDials makes a client send to a channel with every dial.
func countDials(o *redis.Options) <-chan struct{} {
	dials := make(chan struct{}, 1024)
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials <- struct{}{}
		var d net.Dialer
		return d.DialContext(ctx, network, addr)
	}
	return dials
}

func TestIdleSocketsAreReused(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		o := s.options()
		dials := countDials(o)
		c := clientOf(t, redis.NewClient(o))
		for _, name := range []string{"a", "b", "a", "c", "d", "a"} {
			h, err := c.Acquire(t.Context(), name)
			require.NoError(t, err)
			require.NoError(t, h.Release(t.Context()))
		}
		require.Len(t, dials, 1)

		// Within a second an idle connection loses the lock's name.
		began := time.Now()
		s.eventually(t, func() bool {
			for _, client := range s.clientList(t) {
				if client["name"] == "tether-idle" {
					return true
				}
			}
			return false
		})
		require.Less(t, time.Since(began), time.Second)

		// An idle connection that has ended does not cost a try its one attempt.
		for _, client := range s.clientList(t) {
			if client["name"] == "tether-idle" {
				require.NoError(t, s.admin.ClientKillByFilter(t.Context(), "ID", client["id"]).Err())
			}
		}
		h, err := c.TryAcquire(t.Context(), "a")
		require.NoError(t, err)
		require.NoError(t, h.Release(t.Context()))
		require.Len(t, dials, 2)
	})
}

func TestIdleSocketsAreBounded(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		var holds []*tether.Hold
		for i := range 80 {
			h, err := c.Acquire(t.Context(), "many-"+string(rune('A'+i)))
			require.NoError(t, err)
			holds = append(holds, h)
		}
		for _, h := range holds {
			require.NoError(t, h.Release(t.Context()))
		}
		s.eventually(t, func() bool { return len(s.clientList(t)) == 64+1 })
	})
}

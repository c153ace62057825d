package tether_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/internal/redistest"
	"github.com/tetherlock/tether/tethertest"
)

// kinds are the kinds of events.
func kinds(events []tether.Event) []string {
	var names []string
	for _, e := range events {
		names = append(names, kind(e))
	}
	return names
}

func kind(e tether.Event) string {
	switch e.(type) {
	case tether.AttemptEvent:
		return "attempt"
	case tether.GrantedEvent:
		return "granted"
	case tether.LostEvent:
		return "lost"
	case tether.ReleasedEvent:
		return "released"
	case tether.DroppedEvent:
		return "dropped"
	}
	return "other"
}

func nameOf(e tether.Event) string {
	switch e := e.(type) {
	case tether.AttemptEvent:
		return e.Name
	case tether.GrantedEvent:
		return e.Name
	case tether.LostEvent:
		return e.Name
	case tether.ReleasedEvent:
		return e.Name
	case tether.DroppedEvent:
		return e.Name
	}
	return "other"
}

// The observer writes to a map without a mutex: one goroutine calls it, and the
// last call is over when Close returns. The race detector shows if that is not so.
func TestObserverSeesTheEventsOfAllLocksInOrder(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		seen := map[string][]tether.Event{}
		c := s.client(t, tether.WithObserver(func(e tether.Event) { seen[nameOf(e)] = append(seen[nameOf(e)], e) }))
		turn := func(name string) {
			h, err := c.Acquire(t.Context(), name)
			require.NoError(t, err)
			require.NoError(t, h.Release(t.Context()))
		}
		turn("once")
		l := c.Lock("kept")
		for range 2 {
			h, err := l.Acquire(t.Context())
			require.NoError(t, err)
			turn("once")
			require.NoError(t, h.Release(t.Context()))
		}
		_, err := c.Acquire(t.Context(), "closed")
		require.NoError(t, err)
		require.NoError(t, c.Close())
		one := []string{"attempt", "granted", "released"}
		require.Equal(t, slices.Repeat(one, 3), kinds(seen["once"]))
		require.Equal(t, slices.Repeat(one, 2), kinds(seen["kept"]))
		require.Equal(t, []string{"attempt", "granted", "lost"}, kinds(seen["closed"]))
		require.ErrorIs(t, seen["closed"][2].(tether.LostEvent).Err, tether.ErrClosed)
	})
}

func TestBlockedObserverHarmsNothing(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		peer := s.client(t)
		_, err := peer.Probe(t.Context(), "l")
		require.NoError(t, err)
		before := goleak.IgnoreCurrent()
		block := make(chan struct{})
		rdb := redis.NewClient(s.options())
		c := tether.New(rdb, tether.WithObserver(func(tether.Event) { <-block }))
		l := c.Lock("l")
		for range 5 {
			h, err := l.Acquire(t.Context())
			require.NoError(t, err)
			seen, err := peer.Probe(t.Context(), "l")
			require.NoError(t, err)
			require.Len(t, seen, 1)
			require.NoError(t, h.Release(t.Context()))
		}
		began := time.Now()
		require.NoError(t, c.Close())
		require.Less(t, time.Since(began), 3*time.Second)
		require.NoError(t, c.Close())
		require.NoError(t, rdb.Close())
		close(block)
		goleak.VerifyNone(t, before)
	})
}

// Close waits until the observer has seen all events, for a second at most.
func TestCloseWaitsForTheObserver(t *testing.T) {
	for takes, waits := range map[time.Duration]time.Duration{
		0: 0, 100 * time.Millisecond: 300 * time.Millisecond, time.Hour: time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			srv, err := tethertest.Start("")
			require.NoError(t, err)
			defer srv.Close()
			rdb := redis.NewClient(srv.Options())
			defer func() { require.NoError(t, rdb.Close()) }()
			seen := make(chan tether.Event, 3)
			c := tether.New(rdb, tether.WithObserver(func(e tether.Event) {
				<-time.After(takes)
				seen <- e
			}))
			_, err = c.Acquire(t.Context(), "l")
			require.NoError(t, err)
			began := time.Now()
			require.NoError(t, c.Close())
			require.Equal(t, waits, time.Since(began))
			for range cap(seen) {
				<-seen // the rest comes after Close
			}
		})
	}
}

func TestSlowObserverIsToldWhatItMisses(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		block, seen, missed := make(chan struct{}), 0, 0
		c := s.client(t, tether.WithObserver(func(e tether.Event) {
			<-block
			if d, ok := e.(tether.DroppedEvent); ok {
				missed += d.Count
				return
			}
			seen++
		}))
		kept := c.Lock("kept")
		const turns = 400
		for range turns {
			h, err := kept.Acquire(t.Context())
			require.NoError(t, err)
			require.NoError(t, h.Release(t.Context()))
		}
		for range 3 { // they end while the buffer is full
			h, err := c.Acquire(t.Context(), "once")
			require.NoError(t, err)
			require.NoError(t, h.Release(t.Context()))
		}
		close(block)
		require.NoError(t, c.Close())
		require.Equal(t, 3*turns+3*3, seen+missed, "three events for each turn")
		require.LessOrEqual(t, seen, 1024+2)
		require.GreaterOrEqual(t, seen, 1024)
	})
}

func TestPanicInAnObserverIsRecovered(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		for name, trouble := range map[string]func(){"panic": func() { panic("out of order") }, "Goexit": runtime.Goexit} {
			var logged bytes.Buffer // complete when Close has returned
			seen := 0
			c := s.client(t, tether.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))), tether.WithObserver(func(tether.Event) {
				seen++
				trouble()
			}))
			h, err := c.Acquire(t.Context(), "l")
			require.NoError(t, err)
			require.NoError(t, h.Release(t.Context()))
			require.NoError(t, c.Close())
			require.Equal(t, 3, seen, name)
			if name == "panic" {
				require.Equal(t, 3, strings.Count(logged.String(), `level=ERROR msg="panic in an observer" lock=l panic="out of order"`), logged.String())
			}
		}
	})
}

func TestObserverMayCallAnything(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		var c *tether.Client
		holds := make(chan *tether.Hold, 1)
		states := make(chan tether.State, 16)
		over := make(chan error, 1)
		c = s.client(t, tether.WithObserver(func(e tether.Event) {
			switch e.(type) {
			case tether.GrantedEvent:
				states <- c.Lock("l").State()
				_ = (<-holds).Release(context.Background()) // an error shows below
			case tether.ReleasedEvent:
				over <- c.Close()
			}
		}))
		h, err := c.Acquire(t.Context(), "l")
		require.NoError(t, err)
		holds <- h
		require.Equal(t, tether.Idle, <-states)
		require.NoError(t, <-over)
		require.ErrorIs(t, h.Err(), tether.ErrReleased)
	})
}

// dispatcherRuns reports whether a dispatcher's goroutine runs.
func dispatcherRuns() bool {
	stacks := make([]byte, 1<<20)
	return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("created by github.com/tetherlock/tether/internal/dispatch.New"))
}

func TestObserverEndsWithADroppedClient(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		rdb := redis.NewClient(s.options())
		defer func() { require.NoError(t, rdb.Close()) }()
		seen := make(chan tether.Event, 16)
		func() {
			h, err := tether.New(rdb, tether.WithObserver(func(e tether.Event) { seen <- e })).Acquire(t.Context(), "l")
			require.NoError(t, err)
			require.True(t, dispatcherRuns())
			require.NoError(t, h.Release(t.Context()))
		}()
		s.eventually(t, func() bool {
			runtime.GC()
			return !dispatcherRuns()
		})
		require.Len(t, seen, 3)
	})
}

func TestNobodyToTellNeedsNoGoroutine(t *testing.T) {
	c := noDialClient(t)
	require.False(t, dispatcherRuns())
	require.NoError(t, c.Close())
	rdb := redis.NewClient(&redis.Options{})
	defer func() { require.NoError(t, rdb.Close()) }()
	for want, opt := range map[bool]tether.Option{
		false: tether.WithLogger(slog.New(slog.DiscardHandler)),
		true:  tether.WithLogger(slog.New(slog.NewTextHandler(&bytes.Buffer{}, nil))),
	} {
		c := tether.New(rdb, opt)
		require.Equal(t, want, dispatcherRuns())
		require.NoError(t, c.Close())
		server{}.eventually(t, func() bool { return !dispatcherRuns() })
	}
}

// logLines are the records of a log in JSON.
func logLines(t *testing.T, log *bytes.Buffer) []map[string]any {
	t.Helper()
	var lines []map[string]any
	for line := range strings.Lines(log.String()) {
		var fields map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &fields))
		lines = append(lines, fields)
	}
	return lines
}

func TestLogHasFixedKeys(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		var log bytes.Buffer // complete when Close has returned
		holder := s.acquire(t, s.client(t), "l")
		c := s.client(t, tether.WithLogger(slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
		l := c.Lock("l", tether.WithLabel("mine"), tether.WithHealthCheck(time.Minute))
		events := l.Events()
		waiting := l.AcquireAsync(t.Context())
		awaitEvent[tether.WaitingEvent](t, events)
		require.NoError(t, holder.Release(t.Context()))
		r := <-waiting
		require.NoError(t, r.Err)
		require.NoError(t, r.Hold.Release(t.Context()))
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		s.killConnections(t, "l")
		<-h.Lost()
		require.NoError(t, c.Close())

		lines := map[string]map[string]any{} // the last of each kind, the first one of waiting
		for _, line := range logLines(t, &log) {
			require.Equal(t, "l", line["lock"])
			require.Equal(t, "mine", line["label"])
			if msg := line["msg"].(string); msg != "waiting" || lines[msg] == nil {
				lines[msg] = line
			}
		}
		require.Equal(t, "DEBUG", lines["attempt"]["level"])
		require.Equal(t, "DEBUG", lines["waiting"]["level"])
		require.Len(t, lines["waiting"]["holders"], 1)
		require.Contains(t, lines["waiting"]["holders"].([]any)[0], holder.ID())
		require.Equal(t, "DEBUG", lines["granted"]["level"])
		require.Equal(t, h.ID(), lines["granted"]["holder"])
		require.Contains(t, lines["granted"], "round_trips")
		require.Contains(t, lines["granted"], "waited")
		require.NotContains(t, lines["granted"], "token")
		require.Equal(t, "DEBUG", lines["released"]["level"])
		require.Equal(t, r.Hold.ID(), lines["released"]["holder"])
		require.Equal(t, "WARN", lines["lock lost"]["level"])
		require.Equal(t, h.ID(), lines["lock lost"]["holder"])
		require.NotEmpty(t, lines["lock lost"]["error"])
	})
}

func TestLogTellsOfTrouble(t *testing.T) {
	s := redistest.Start(t)
	realServer(t, s).addSilent(t, "l", "l-lock-"+someID)
	var log bytes.Buffer // complete when the clients are closed
	logger := tether.WithLogger(slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	run := func(o *redis.Options, opts ...tether.LockOption) {
		c := clientOf(t, redis.NewClient(o), logger)
		if h, err := c.TryAcquire(t.Context(), "l", opts...); err == nil {
			require.NoError(t, h.Release(t.Context()))
		}
		require.NoError(t, c.Close())
	}
	short := tether.WithUnavailableTimeout(shortUnavailable)
	run(limitedUser(t, s, "-client|kill"), short)
	run(limitedUser(t, s, "-subscribe"), short)
	run(limitedUser(t, s), short, tether.Fenced())
	lines := map[string]map[string]any{}
	for _, line := range logLines(t, &log) {
		require.NotContains(t, line, "label")
		lines[line["msg"].(string)] = line
	}
	require.Equal(t, "WARN", lines["reap denied"]["level"])
	require.Contains(t, lines["reap denied"]["error"], "CLIENT|KILL")
	require.Equal(t, "DEBUG", lines["attempt failed"]["level"])
	require.Contains(t, lines["attempt failed"]["error"], "SUBSCRIBE")
	require.NotContains(t, lines["attempt failed"], "retry", "a try has no next attempt")
	require.Equal(t, "WARN", lines["reaped"]["level"])
	require.Equal(t, someID, lines["reaped"]["holder"])
	require.Contains(t, lines["reaped"]["addr"], "127.0.0.1:")
	require.Positive(t, lines["granted"]["token"])
}

// A log handler is code of the program, like an observer: its panic is recovered.
func TestPanicInALogHandlerHarmsNothing(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		seen := 0
		c := s.client(t, tether.WithLogger(slog.New(slog.NewTextHandler(panickingWriter{}, &slog.HandlerOptions{Level: slog.LevelDebug}))),
			tether.WithObserver(func(tether.Event) { seen++; panic("and the observer") }))
		h, err := c.Acquire(t.Context(), "l")
		require.NoError(t, err)
		require.NoError(t, h.Release(t.Context()))
		require.NoError(t, c.Close())
		require.Equal(t, 3, seen)
	})
}

type panickingWriter struct{}

func (panickingWriter) Write([]byte) (int, error) { panic("disk full") }

// Events below the handler's level are not logged.
func TestLogKeepsToItsLevel(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		var log bytes.Buffer
		c := s.client(t, tether.WithLogger(slog.New(slog.NewJSONHandler(&log, nil))))
		h, err := c.Acquire(t.Context(), "l")
		require.NoError(t, err)
		require.NoError(t, h.Release(t.Context()))
		h, err = c.Acquire(t.Context(), "l")
		require.NoError(t, err)
		require.NoError(t, c.Close())
		lines := logLines(t, &log)
		require.Len(t, lines, 1)
		require.Equal(t, "lock lost", lines[0]["msg"])
		require.Equal(t, tether.ErrClosed.Error(), lines[0]["error"])
		require.Equal(t, h.ID(), lines[0]["holder"])
	})
}

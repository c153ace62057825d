package tether_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/internal/redistest"
)

func TestOptionsThatMakeNoSense(t *testing.T) {
	c := noDialClient(t)
	for what, opts := range map[string][]tether.LockOption{
		"WithMaxWait needs":            {tether.WithMaxWait(0)},
		"WithSelfCheck needs":          {tether.WithSelfCheck(time.Millisecond)},
		"WithUnavailableTimeout needs": {tether.WithUnavailableTimeout(-time.Second)},
		"WithPollInterval needs":       {tether.WithPollInterval(time.Microsecond)},
		"WithLabel needs":              {tether.WithLabel(strings.Repeat("x", 257))},
		"WithLabel needs UTF-8":        {tether.WithLabel("\xff")},
		"Shared and Fenced":            {tether.Fenced(), tether.Shared()},
		// A later valid value does not hide an invalid one.
		"WithMaxWait needs at least": {tether.WithMaxWait(-1), tether.WithMaxWait(time.Second)},
	} {
		_, err := c.Acquire(t.Context(), "l", opts...)
		wrong, ok := errors.AsType[*tether.ConfigError](err)
		require.True(t, ok, "%s: %v", what, err)
		require.Contains(t, wrong.Reason, what)
	}
}

func TestOptionsThatAreJustRight(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		h, err := s.client(t, tether.WithObserver(nil), tether.WithLogger(nil)).Acquire(t.Context(), "l",
			tether.WithMaxWait(time.Hour), tether.WithSelfCheck(10*time.Millisecond), tether.WithUnavailableTimeout(50*time.Millisecond),
			tether.WithPollInterval(time.Millisecond), tether.WithLabel(strings.Repeat("x", 256)), tether.OnLost(nil))
		require.NoError(t, err)
		require.NoError(t, h.Release(t.Context()))
	})
}

func TestSelfCheckKeepsAHold(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		l := s.client(t).Lock("l", tether.WithSelfCheck(20*time.Millisecond), tether.WithHealthCheck(time.Minute))
		events := l.Events()
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		for range 3 {
			health := awaitEvent[tether.HealthEvent](t, events)
			require.NoError(t, health.Err)
			require.Positive(t, health.RoundTrip)
		}
		require.NoError(t, h.Err())
		require.NoError(t, h.Release(t.Context()))
	})
}

func TestSelfCheckFindsAServerThatDeliversNothing(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		const every = 100 * time.Millisecond
		h, err := s.client(t).Acquire(t.Context(), "l", tether.WithSelfCheck(every), tether.WithHealthCheck(time.Minute))
		require.NoError(t, err)
		s.freeze(t)
		defer s.thaw(t)
		began := time.Now()
		<-h.Lost()
		require.Less(t, time.Since(began), 5*every)
		require.ErrorContains(t, h.Err(), "own ping")
	})
}

// A release wakes the next waiter, which need not wait for its next poll.
func TestPollIntervalDoesNotDelayAWake(t *testing.T) {
	s := realServer(t, redistest.Start(t))
	holder := s.acquire(t, s.client(t), "l")
	waiter := s.client(t).Lock("l", tether.WithPollInterval(time.Hour))
	events := waiter.Events()
	waiting := waiter.AcquireAsync(t.Context())
	awaitEvent[tether.WaitingEvent](t, events)
	s.eventually(t, func() bool { return s.subscribers(t, "l") == 1 }) // it sleeps
	began := time.Now()
	require.NoError(t, holder.Release(t.Context()))
	r := <-waiting
	require.NoError(t, r.Err)
	require.Less(t, time.Since(began), time.Second)
	require.NoError(t, r.Hold.Release(t.Context()))
}

func TestOwned(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		released, err := c.Acquire(t.Context(), "released")
		require.NoError(t, err)
		owned := func(h *tether.Hold) bool {
			owned, err := h.Owned(t.Context())
			require.NoError(t, err)
			return owned
		}
		require.True(t, owned(released))
		require.NoError(t, released.Release(t.Context()))
		require.False(t, owned(released))

		lost, err := c.Acquire(t.Context(), "lost")
		require.NoError(t, err)
		s.killConnections(t, "lost")
		<-lost.Lost()
		require.False(t, owned(lost))

		closed, err := c.Lock("closed").Acquire(t.Context())
		require.NoError(t, err)
		s.freeze(t)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err = closed.Owned(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded, "the server must say so")
		require.NoError(t, c.Close())
		require.False(t, owned(closed))
		s.thaw(t)
	})
}

package tether_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/internal/redistest"
)

func TestLabelsShow(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		label := "worker 7\n\"ü\""
		h, err := s.client(t).Acquire(t.Context(), "l", tether.WithLabel(label))
		require.NoError(t, err)
		defer func() { require.NoError(t, h.Release(t.Context())) }()
		c := s.client(t)
		_, err = c.TryAcquire(t.Context(), "l")
		held, ok := errors.AsType[*tether.HeldError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, label, held.Holders[0].Label)
		require.ErrorContains(t, err, h.ID()+` "worker 7\n\"ü\"" (exclusive`)
		seen, err := c.Probe(t.Context(), "l")
		require.NoError(t, err)
		require.Len(t, seen, 1)
		require.Equal(t, label, seen[0].Label)
		require.NotEmpty(t, seen[0].Addr)
		require.Contains(t, seen[0].String(), `"worker 7\n\"ü\"" (exclusive`)
		require.Contains(t, seen[0].String(), " at "+seen[0].Addr)
	})
}

func TestHoldersInWords(t *testing.T) {
	for want, h := range map[string]tether.Holder{
		"id (exclusive)":                      {ID: "id", Mode: "exclusive"},
		`id "nightly" (shared for 2s) at a:1`: {ID: "id", Mode: "shared", Label: "nightly", Held: 2 * time.Second, Addr: "a:1"},
		"legacy-0 (exclusive)":                {ID: "legacy-0", Mode: "exclusive", Legacy: true},
		"a legacy participant at a:1":         {Legacy: true, Addr: "a:1"},
		someID + " at a:1":                    {ID: someID, Addr: "a:1"},
	} {
		require.Equal(t, want, h.String())
	}
}

func TestMaxWait(t *testing.T) {
	const limit = 80 * time.Millisecond
	t.Run("somebody else holds", func(t *testing.T) {
		onServers(t, func(t *testing.T, s server) {
			h := s.acquire(t, s.client(t), "l")
			began := time.Now()
			_, err := s.client(t).Acquire(t.Context(), "l", tether.WithMaxWait(limit))
			require.GreaterOrEqual(t, time.Since(began), limit)
			held, ok := errors.AsType[*tether.HeldError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, h.ID(), held.Holders[0].ID)
			require.ErrorContains(t, err, "waited for 80ms")
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, 1, s.subscribers(t, "l"))
		})
	})
	t.Run("this Lock holds", func(t *testing.T) {
		onServers(t, func(t *testing.T, s server) {
			l := s.client(t).Lock("l", tether.WithMaxWait(limit))
			h, err := l.Acquire(t.Context())
			require.NoError(t, err)
			_, err = l.Acquire(t.Context())
			require.ErrorIs(t, err, tether.ErrHeld)
			require.ErrorContains(t, err, "held by this Lock: waited for 80ms")
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			require.NoError(t, h.Err(), "it limits the waiting, not the work")
			require.NoError(t, h.Release(t.Context()))
		})
	})
	t.Run("the context ends first", func(t *testing.T) {
		onServers(t, func(t *testing.T, s server) {
			s.acquire(t, s.client(t), "l")
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			_, err := s.client(t).Acquire(ctx, "l", tether.WithMaxWait(time.Minute))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorIs(t, err, tether.ErrHeld)
		})
	})
	// The error of a dial that times out is a context.DeadlineExceeded, although no
	// context of the caller's has ended.
	t.Run("the server cannot be reached", func(t *testing.T) {
		refused, late := errors.New("no route"), &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
		for _, dialError := range []error{refused, late} {
			c := clientOf(t, redis.NewClient(&redis.Options{}), tether.WithDialer(func(context.Context) (net.Conn, error) { return nil, dialError }))
			_, err := c.Acquire(t.Context(), "l", tether.WithMaxWait(limit))
			require.NotErrorIs(t, err, tether.ErrHeld)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "waited for 80ms")
			require.ErrorContains(t, err, dialError.Error())
			if dialError == refused {
				require.ErrorIs(t, err, refused)
				continue
			}
			found, ok := errors.AsType[*net.OpError](err)
			require.True(t, ok)
			require.Same(t, late, found)
			_, err = c.TryAcquire(t.Context(), "l")
			require.NotErrorIs(t, err, context.DeadlineExceeded, "no context has ended")
		}
	})
	t.Run("the server says nothing", func(t *testing.T) {
		onServers(t, func(t *testing.T, s server) {
			c := s.client(t)
			s.freeze(t)
			defer s.thaw(t)
			_, err := c.Acquire(t.Context(), "l", tether.WithMaxWait(limit))
			require.EqualError(t, err, `tether: acquire "l": waited for 80ms`)
		})
	})
}

// The error names the silent participants, as far as CLIENT LIST shows them.
func TestSilentParticipantsAreNamed(t *testing.T) {
	try := func(t *testing.T, s *redistest.Server, missing ...any) error {
		_, err := clientOf(t, redis.NewClient(limitedUser(t, s, missing...))).TryAcquire(t.Context(), "l", tether.WithUnavailableTimeout(shortUnavailable))
		require.NotErrorIs(t, err, tether.ErrHeld, "whether it holds is not known")
		return err
	}
	const addr = `127\.0\.0\.1:\d+`
	t.Run("under its name", func(t *testing.T) {
		s := redistest.Start(t)
		realServer(t, s).addSilent(t, "l", "l-lock-"+someID)
		require.Regexp(t, `; 1 participant does not answer: `+someID+` at `+addr+`, and cannot be found or disconnected: no permission for CLIENT\|KILL: `,
			try(t, s, "-client|kill").Error())
	})
	t.Run("nobody may look", func(t *testing.T) {
		s := redistest.Start(t)
		realServer(t, s).addSilent(t, "l", "l-lock-"+someID)
		require.Regexp(t, `; 1 participant does not answer, and cannot be found or disconnected: no permission for CLIENT\|LIST: `,
			try(t, s, "-client|list").Error())
	})
	t.Run("under another name", func(t *testing.T) {
		s := redistest.Start(t)
		realServer(t, s).addSilent(t, "l", "a-monitor")
		require.Regexp(t, `; 1 participant does not answer, subscribed under no name of this lock, perhaps from `+addr+`$`, try(t, s).Error())
	})
	t.Run("one of many", func(t *testing.T) {
		s := redistest.Start(t)
		for range 4 {
			realServer(t, s).addSilent(t, "l", "a-monitor")
		}
		require.Regexp(t, `; 4 participants do not answer, subscribed under no name of this lock by one of 4 connections$`, try(t, s).Error())
	})
	t.Run("beside a holder", func(t *testing.T) {
		s := redistest.Start(t)
		real := realServer(t, s)
		h := real.acquire(t, real.client(t), "l")
		real.addSilent(t, "l", "a-monitor")
		_, err := real.client(t).Acquire(t.Context(), "l", tether.WithUnavailableTimeout(shortUnavailable), tether.WithMaxWait(2*time.Second))
		held, ok := errors.AsType[*tether.HeldError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, 1, held.Silent)
		require.Len(t, held.Holders, 1)
		require.Equal(t, h.ID(), held.Holders[0].ID)
		require.Regexp(t, `; 1 participant does not answer, subscribed under no name of this lock, perhaps from `+addr+`( \(asked .* ago\))?: waited for 2s$`, err.Error())
	})
	t.Run("to a probe", func(t *testing.T) {
		s := redistest.Start(t)
		real := realServer(t, s)
		real.addSilent(t, "l", "l-lock-"+someID)
		seen, err := real.client(t).Probe(t.Context(), "l")
		require.Empty(t, seen)
		require.Regexp(t, `1 participant did not answer: `+someID+` at `+addr+`$`, err.Error())
	})
}

// Pub/sub knows no databases, fencing counters do.
func TestFencedInTwoDatabasesIsAConfigError(t *testing.T) {
	s := redistest.Start(t)
	h, err := clientOf(t, redis.NewClient(s.Options())).Acquire(t.Context(), "l", tether.Fenced())
	require.NoError(t, err)
	o := s.Options()
	o.DB = 5
	_, err = clientOf(t, redis.NewClient(o)).Acquire(t.Context(), "l", tether.Fenced())
	wrong, ok := errors.AsType[*tether.ConfigError](err)
	require.True(t, ok, "%v", err)
	require.Contains(t, wrong.Reason, "database 0")
	require.Contains(t, wrong.Reason, "database 5")
	require.NoError(t, h.Release(t.Context()))
}

// An acquire that meets a silent participant goes on until its context ends. Its error
// then says what was tried.
func TestAcquireGoesOnBesideASilentParticipant(t *testing.T) {
	acquire := func(t *testing.T, c *tether.Client, within, unavailable time.Duration) string {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		_, err := c.Acquire(ctx, "l", tether.WithUnavailableTimeout(unavailable))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, tether.ErrHeld, "whether it holds is not known")
		return err.Error()
	}
	const name = someID + ` at 127\.0\.0\.1:\d+`
	t.Run("within the time-out", func(t *testing.T) {
		s := realServer(t, redistest.Start(t))
		s.addSilent(t, "l", "l-lock-"+someID)
		require.Regexp(t, `; 1 participant does not answer: `+name+` \(asked \d+ms ago, disconnected after 4s without an answer\): context`,
			acquire(t, s.client(t), time.Second, 4*time.Second))
	})
	t.Run("nobody may disconnect it", func(t *testing.T) {
		s := redistest.Start(t)
		realServer(t, s).addSilent(t, "l", "l-lock-"+someID)
		c := clientOf(t, redis.NewClient(limitedUser(t, s, "-client|kill")))
		require.Regexp(t, `; 1 participant does not answer: `+name+`.*, and cannot be found or disconnected: no permission for CLIENT\|KILL: `,
			acquire(t, c, 5*shortUnavailable, shortUnavailable))
	})
	t.Run("disconnected at the end", func(t *testing.T) {
		s := realServer(t, redistest.Start(t))
		s.addSilent(t, "l", "l-lock-"+someID)
		l := s.client(t).Lock("l", tether.WithUnavailableTimeout(2*time.Second))
		events := l.Events()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		result := l.AcquireAsync(ctx)
		// A search keeps both response channels of its two pings. What is written
		// behind them then waits until the pause ends, but for the end of a
		// connection.
		require.Eventually(t, func() bool {
			n, err := s.admin.PubSubChannels(t.Context(), "l-*").Result()
			return err == nil && len(n) >= 3
		}, 10*time.Second, time.Millisecond)
		require.NoError(t, s.admin.Do(t.Context(), "CLIENT", "PAUSE", 60_000, "WRITE").Err())
		awaitEvent[tether.ReapedEvent](t, events)
		cancel()
		r := <-result
		require.NoError(t, s.admin.Do(t.Context(), "CLIENT", "UNPAUSE").Err())
		require.ErrorIs(t, r.Err, context.Canceled)
		require.Regexp(t, `; 1 participant does not answer: `+name+` \(disconnected, not yet asked again\): context canceled$`, r.Err.Error())
	})
}

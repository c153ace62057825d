package interop

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/wire"
)

// slowPoll is a poll interval in which a scenario ends before the next poll.
var slowPoll = tether.WithPollInterval(time.Second)

// scenarios are the sections of the transcript.
var scenarios = []struct {
	title string
	run   func(s *scenario)
	// word must occur in so many commands, or the scenario is run again. One poll in
	// eight of a sleeper is a whole attempt, and the first of these is random: it may
	// be in the scenario or not.
	word  string
	times int
}{
	{"Acquire and release, alone", func(s *scenario) {
		s.release(s.acquire(s.client))
	}, "", 0},
	{"With a fencing token", func(s *scenario) {
		s.release(s.acquire(s.client, tether.Fenced()))
	}, "", 0},
	{"A reader beside a reader", func(s *scenario) {
		defer s.release(s.acquire(s.other, tether.Shared()))
		s.release(s.acquire(s.client, tether.Shared()))
	}, "", 0},
	{"A try meets a holder", func(s *scenario) {
		defer s.release(s.acquire(s.other))
		_, err := s.client.TryAcquire(s.t.Context(), lockName)
		require.ErrorIs(s.t, err, tether.ErrHeld)
	}, "", 0},
	{"A try meets a holder, with fencing", func(s *scenario) {
		defer s.release(s.acquire(s.other))
		_, err := s.client.TryAcquire(s.t.Context(), lockName, tether.Fenced())
		require.ErrorIs(s.t, err, tether.ErrHeld)
	}, "", 0},
	{"A waiter sleeps, is woken, and is alone", func(s *scenario) {
		holder := s.acquire(s.other)
		waiting := s.client.Lock(lockName, slowPoll).AcquireAsync(s.t.Context())
		s.awaitSleepers(1)
		s.release(holder)
		s.release(s.granted(waiting))
	}, "response_channel", 2},
	{"A holder answers pings: of portalocker, of a probe, and of one who waits", func(s *scenario) {
		s.acquire(s.client)
		s.awaitHeldTime()
		s.awaitAnswer(`{"message": "ping", "response_channel": "answers-1"}`, "answers-1")
		s.awaitAnswer(`{"response_channel":"answers-2","message":"ping"}`, "answers-2")
		_, err := s.other.TryAcquire(s.t.Context(), lockName)
		require.ErrorIs(s.t, err, tether.ErrHeld)
	}, "", 0},
	{"A labelled holder that hands the lock over", func(s *scenario) {
		holder := s.acquire(s.client, tether.WithLabel(`the "one"`))
		s.awaitHeldTime()
		waiting := s.other.Lock(lockName, slowPoll).AcquireAsync(s.t.Context())
		s.awaitSleepers(1)
		s.release(holder)
		s.release(s.granted(waiting))
		// A holder that hands over takes a place in the queue, for its next
		// acquire. There is none here, so it passes its wake on.
		until(s.t, "the wake is passed on", func() bool { return s.count("EVALSHA") >= 2 })
	}, "holder_id", 1},
	{"A writer is elected, waits for a reader, is promoted and confirms", func(s *scenario) {
		reader := s.acquire(s.other, tether.Shared())
		waiting := s.client.Lock(lockName, tether.WithPollInterval(testTimeout)).AcquireAsync(s.t.Context())
		<-s.elected
		s.release(reader)
		s.release(s.granted(waiting))
	}, "", 0},
	{"A self-check", func(s *scenario) {
		s.acquire(s.client, tether.WithSelfCheck(time.Second))
		until(s.t, "a self-check", func() bool { return s.count("UNSUBSCRIBE") == 1 })
	}, "", 0},
	{"A health check", func(s *scenario) {
		s.acquire(s.client, tether.WithHealthCheck(100*time.Millisecond))
		until(s.t, "a health check", func() bool { return s.count("HELLO") >= 3 })
	}, "", 0},
	{"A frozen holder is reaped", func(s *scenario) {
		s.addSilentParticipant(highestID)
		s.release(s.acquire(s.client))
	}, "", 0},
	{"A channel that Redis refuses in a connection's name", func(s *scenario) {
		h, err := s.client.Acquire(s.t.Context(), "two words")
		require.NoError(s.t, err)
		s.release(h)
	}, "", 0},
}

func (s *scenario) acquire(c *tether.Client, opts ...tether.LockOption) *tether.Hold {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), testTimeout)
	defer cancel()
	h, err := c.Acquire(ctx, lockName, opts...)
	require.NoError(s.t, err)
	return h
}

func (s *scenario) release(h *tether.Hold) {
	s.t.Helper()
	require.NoError(s.t, h.Release(context.Background()))
}

// awaitHeldTime waits until a hold is older than a millisecond. The record of a
// younger one has no "held".
func (s *scenario) awaitHeldTime() {
	begin := time.Now()
	until(s.t, "a millisecond", func() bool { return time.Since(begin) > 2*time.Millisecond })
}

// granted waits for a grant.
func (s *scenario) granted(to <-chan tether.Result) *tether.Hold {
	s.t.Helper()
	r := <-to
	require.NoError(s.t, r.Err)
	return r.Hold
}

// awaitSleepers waits until there are n sleepers.
func (s *scenario) awaitSleepers(n int) {
	s.t.Helper()
	waiters := wire.WaitersChannel(lockName)
	until(s.t, "sleepers", func() bool {
		return subscribers(s.t, s.rdb, waiters) == n && subscribers(s.t, s.rdb, lockName) == 1
	})
}

// awaitAnswer publishes a ping and waits for the answer.
func (s *scenario) awaitAnswer(ping, to string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), testTimeout)
	defer cancel()
	sub := s.rdb.Subscribe(ctx, to)
	defer sub.Close()
	_, err := sub.Receive(ctx)
	require.NoError(s.t, err)
	require.NoError(s.t, s.rdb.Publish(ctx, lockName, ping).Err())
	_, err = sub.ReceiveMessage(ctx)
	require.NoError(s.t, err)
}

// addSilentParticipant adds a participant that is counted and never answers.
func (s *scenario) addSilentParticipant(id string) {
	s.t.Helper()
	o := s.server.Options()
	o.ClientName = wire.ConnName(lockName, id)
	frozen := redis.NewClient(o)
	sub := frozen.Subscribe(s.t.Context(), lockName)
	s.t.Cleanup(func() {
		_ = sub.Close() // it was reaped
		_ = frozen.Close()
	})
	_, err := sub.Receive(s.t.Context())
	require.NoError(s.t, err)
}

// count counts the commands so far that contain the word.
func (s *scenario) count(word string) int {
	n := 0
	for _, commands := range s.proxy.sent() {
		for _, words := range commands {
			if strings.Contains(strings.Join(words, " "), word) {
				n++
			}
		}
	}
	return n
}

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

// unhurried is a poll interval that leaves time between two polls.
var unhurried = tether.WithPollInterval(time.Second)

// scenes are the situations of the transcript.
var scenes = []struct {
	title string
	play  func(s *scene)
	// word is sent so many times, or the scene is played again: every eighth
	// poll of a sleeper is a whole attempt, from a random one on.
	word  string
	times int
}{
	{"Acquire and release, alone", func(s *scene) {
		s.release(s.acquire(s.client))
	}, "", 0},
	{"With a fencing token", func(s *scene) {
		s.release(s.acquire(s.client, tether.Fenced()))
	}, "", 0},
	{"A reader beside a reader", func(s *scene) {
		defer s.release(s.acquire(s.other, tether.Shared()))
		s.release(s.acquire(s.client, tether.Shared()))
	}, "", 0},
	{"A try meets a holder", func(s *scene) {
		defer s.release(s.acquire(s.other))
		_, err := s.client.TryAcquire(s.t.Context(), stage)
		require.ErrorIs(s.t, err, tether.ErrHeld)
	}, "", 0},
	{"A try meets a holder, with fencing", func(s *scene) {
		defer s.release(s.acquire(s.other))
		_, err := s.client.TryAcquire(s.t.Context(), stage, tether.Fenced())
		require.ErrorIs(s.t, err, tether.ErrHeld)
	}, "", 0},
	{"A waiter sleeps, is woken, and is alone", func(s *scene) {
		holder := s.acquire(s.other)
		waiting := s.client.Lock(stage, unhurried).AcquireAsync(s.t.Context())
		s.asleep(1)
		s.release(holder)
		s.release(s.granted(waiting))
	}, "response_channel", 2},
	{"A holder answers pings: of portalocker, of a probe, and of one who waits", func(s *scene) {
		s.acquire(s.client)
		s.held()
		s.answers(`{"message": "ping", "response_channel": "answers-1"}`, "answers-1")
		s.answers(`{"response_channel":"answers-2","message":"ping"}`, "answers-2")
		_, err := s.other.TryAcquire(s.t.Context(), stage)
		require.ErrorIs(s.t, err, tether.ErrHeld)
	}, "", 0},
	{"A labelled holder that hands the lock over", func(s *scene) {
		holder := s.acquire(s.client, tether.WithLabel(`the "one"`))
		s.held()
		waiting := s.other.Lock(stage, unhurried).AcquireAsync(s.t.Context())
		s.asleep(1)
		s.release(holder)
		s.release(s.granted(waiting))
		// Its place in the queue is not used, and goes to the next one.
		until(s.t, "the wake is passed on", func() bool { return s.count("EVALSHA") >= 2 })
	}, "holder_id", 1},
	{"A writer is elected, waits for a reader, is promoted and confirms", func(s *scene) {
		reader := s.acquire(s.other, tether.Shared())
		waiting := s.client.Lock(stage, tether.WithPollInterval(patience)).AcquireAsync(s.t.Context())
		<-s.elected
		s.release(reader)
		s.release(s.granted(waiting))
	}, "", 0},
	{"A self-check", func(s *scene) {
		s.acquire(s.client, tether.WithSelfCheck(time.Second))
		until(s.t, "a self-check", func() bool { return s.count("UNSUBSCRIBE") == 1 })
	}, "", 0},
	{"A health check", func(s *scene) {
		s.acquire(s.client, tether.WithHealthCheck(100*time.Millisecond))
		until(s.t, "a health check", func() bool { return s.count("HELLO") >= 3 })
	}, "", 0},
	{"A frozen holder is reaped", func(s *scene) {
		s.freeze(highest)
		s.release(s.acquire(s.client))
	}, "", 0},
	{"A channel that Redis refuses in a connection's name", func(s *scene) {
		h, err := s.client.Acquire(s.t.Context(), "two words")
		require.NoError(s.t, err)
		s.release(h)
	}, "", 0},
}

func (s *scene) acquire(c *tether.Client, opts ...tether.LockOption) *tether.Hold {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	h, err := c.Acquire(ctx, stage, opts...)
	require.NoError(s.t, err)
	return h
}

func (s *scene) release(h *tether.Hold) {
	s.t.Helper()
	require.NoError(s.t, h.Release(context.Background()))
}

// held waits until a hold has lasted for a millisecond: a shorter one says
// nothing of it in its record.
func (s *scene) held() {
	begin := time.Now()
	until(s.t, "a millisecond", func() bool { return time.Since(begin) > 2*time.Millisecond })
}

// granted waits for a grant.
func (s *scene) granted(to <-chan tether.Result) *tether.Hold {
	s.t.Helper()
	r := <-to
	require.NoError(s.t, r.Err)
	return r.Hold
}

// asleep waits until n waiters sleep.
func (s *scene) asleep(n int) {
	s.t.Helper()
	waiters := wire.WaitersChannel(stage)
	until(s.t, "sleepers", func() bool {
		return subscribers(s.t, s.rdb, waiters) == n && subscribers(s.t, s.rdb, stage) == 1
	})
}

// answers publishes a ping and waits for the answer.
func (s *scene) answers(ping, to string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	sub := s.rdb.Subscribe(ctx, to)
	defer sub.Close()
	_, err := sub.Receive(ctx)
	require.NoError(s.t, err)
	require.NoError(s.t, s.rdb.Publish(ctx, stage, ping).Err())
	_, err = sub.ReceiveMessage(ctx)
	require.NoError(s.t, err)
}

// freeze adds a participant that is counted and never answers.
func (s *scene) freeze(id string) {
	s.t.Helper()
	o := s.server.Options()
	o.ClientName = wire.ConnName(stage, id)
	frozen := redis.NewClient(o)
	sub := frozen.Subscribe(s.t.Context(), stage)
	s.t.Cleanup(func() {
		_ = sub.Close() // killed by then
		_ = frozen.Close()
	})
	_, err := sub.Receive(s.t.Context())
	require.NoError(s.t, err)
}

// count counts the commands so far that have the word in them.
func (s *scene) count(word string) int {
	n := 0
	for _, commands := range s.recorder.sent() {
		for _, words := range commands {
			if strings.Contains(strings.Join(words, " "), word) {
				n++
			}
		}
	}
	return n
}

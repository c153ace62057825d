package tether_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/internal/redistest"
)

// Every event of the machine has a public event, and every public event is logged.
func TestEveryEventHasAPublicForm(t *testing.T) {
	eventMethod := regexp.MustCompile(`(?m)^func \((\w+)\) event\(\)`)
	machine := eventMethod.FindAllStringSubmatch(readFile(t, "actor/effect.go"), -1)
	require.Greater(t, len(machine), 10)
	events, logged := readFile(t, "events.go"), readFile(t, "logging.go")
	for _, e := range machine {
		require.Contains(t, events, "case actor."+e[1]+":")
	}
	public := eventMethod.FindAllStringSubmatch(events, -1)
	require.Len(t, public, len(machine)+1, "theirs, and the one about dropped events")
	for _, e := range public {
		require.Contains(t, logged, "case "+e[1]+":")
	}
}

func TestGrantedEventTellsTheToken(t *testing.T) {
	s := realServer(t, redistest.Start(t))
	l := s.client(t).Lock("l", tether.Fenced())
	events := l.Events()
	last := int64(0)
	for range 3 {
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		granted := awaitEvent[tether.GrantedEvent](t, events)
		require.Equal(t, h.Token(), granted.Token)
		require.Greater(t, granted.Token, last)
		last = granted.Token
		require.NoError(t, h.Release(t.Context()))
	}
}

func TestWaitingEventTellsWhoIsWaitedForAndThePlace(t *testing.T) {
	s := realServer(t, redistest.Start(t))
	h, err := s.client(t).Acquire(t.Context(), "l", tether.WithLabel("the holder"))
	require.NoError(t, err)
	var results []<-chan tether.Result
	for place := 1; place <= 3; place++ {
		l := s.client(t).Lock("l")
		events := l.Events()
		results = append(results, l.AcquireAsync(t.Context()))
		waiting := awaitEvent[tether.WaitingEvent](t, events)
		require.Equal(t, place, waiting.Place)
		require.Zero(t, waiting.Silent)
		require.Len(t, waiting.Holders, 1)
		require.Equal(t, h.ID(), waiting.Holders[0].ID)
		require.Equal(t, "the holder", waiting.Holders[0].Label)
	}
	require.NoError(t, h.Release(t.Context()))
	for _, result := range results {
		r := <-result
		require.NoError(t, r.Err)
		require.NoError(t, r.Hold.Release(t.Context()))
	}
}

// shortUnavailable is an unavailable time-out for tests with a silent participant.
// A try needs a little more than one to find it, and ends after three at most. A
// shorter one would fail on a busy machine.
const shortUnavailable = 400 * time.Millisecond

func TestReapedEventTellsWho(t *testing.T) {
	for name, participant := range map[string]struct {
		connName string
		want     tether.Holder
	}{
		"with a record": {"l-lock-" + someID, tether.Holder{ID: someID}},
		"legacy":        {"l-lock", tether.Holder{Legacy: true}},
	} {
		t.Run(name, func(t *testing.T) {
			s := realServer(t, redistest.Start(t))
			s.addSilent(t, "l", participant.connName)
			l := s.client(t).Lock("l", tether.WithUnavailableTimeout(shortUnavailable))
			events := l.Events()
			h, err := l.TryAcquire(t.Context())
			require.NoError(t, err, "a try succeeds right after that")
			reaped := awaitEvent[tether.ReapedEvent](t, events)
			require.NotEmpty(t, reaped.Holder.Addr)
			participant.want.Addr = reaped.Holder.Addr
			require.Equal(t, participant.want, reaped.Holder)
			require.NoError(t, h.Release(t.Context()))
		})
	}
}

// limitedUser returns the options of a user that has all permissions but the
// missing ones.
func limitedUser(t *testing.T, s *redistest.Server, missing ...any) *redis.Options {
	t.Helper()
	s.MustDo(t, append([]any{"ACL", "SETUSER", "limited", "reset", "on", ">secret", "allchannels", "allkeys", "+@all"}, missing...)...)
	o := s.Options()
	o.Username, o.Password = "limited", "secret"
	return o
}

func TestReapDeniedEventTellsWhy(t *testing.T) {
	for missing, command := range map[string]string{"-client|list": "CLIENT|LIST", "-client|kill": "CLIENT|KILL"} {
		t.Run(missing, func(t *testing.T) {
			s := redistest.Start(t)
			realServer(t, s).addSilent(t, "l", "l-lock-"+someID)
			l := clientOf(t, redis.NewClient(limitedUser(t, s, missing))).Lock("l", tether.WithUnavailableTimeout(shortUnavailable))
			events := l.Events()
			_, err := l.TryAcquire(t.Context())
			require.NotErrorIs(t, err, tether.ErrHeld, "whether it holds is not known")
			require.ErrorContains(t, err, "1 participant does not answer")
			require.ErrorContains(t, err, "no permission for "+command)
			denied, ok := errors.AsType[*tether.PermissionError](awaitEvent[tether.ReapDeniedEvent](t, events).Err)
			require.True(t, ok)
			require.Equal(t, command, denied.Command)
			if strings.Contains(missing, "kill") {
				require.ErrorContains(t, err, someID+" at 127.0.0.1:")
			}
		})
	}
}

package interop

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/internal/redistest"
	"github.com/tetherlock/tether/wire"
)

// Peers reap every connection that has a participant's name and does not answer.
// So a connection may have such a name only while it is subscribed to the channel.
func TestConnectionNames(t *testing.T) {
	redistest.Require(t)
	s := newScenario(t, redistest.Start(t))
	require.Empty(t, s.names(), "there is no connection yet")

	reader := s.acquire(s.other, tether.Shared())
	before := s.names()
	require.Equal(t, []string{wire.ConnName(lockName, reader.ID())}, before, "holding, as a reader")

	ctx, cancel := context.WithCancel(t.Context())
	waiting := s.client.Lock(lockName).AcquireAsync(ctx)
	until(t, "acquiring, as the elected writer", func() bool { return len(s.participants()) == 2 })
	cancel()
	require.Error(t, (<-waiting).Err)
	until(t, "after giving up", func() bool { return len(s.participants()) == 1 })
	s.release(reader)
	until(t, "after the release", func() bool { return len(s.participants()) == 0 })

	holder := s.acquire(s.other)
	require.Equal(t, []string{wire.ConnName(lockName, holder.ID())}, s.participants(), "holding, as a writer")
	waiting = s.client.Lock(lockName).AcquireAsync(t.Context())
	s.awaitSleepers(1)
	until(t, "waiting, asleep", func() bool { return len(s.participants()) == 1 && len(s.names()) == 2 })
	require.Contains(t, s.names(), wire.IdleName)
	s.release(holder)
	r := <-waiting
	require.NoError(t, r.Err)
	until(t, "handed over", func() bool {
		p := s.participants()
		return len(p) == 1 && p[0] == wire.ConnName(lockName, r.Hold.ID())
	})
	s.release(r.Hold)
	until(t, "after the release", func() bool { return len(s.participants()) == 0 })
	for _, name := range s.names() {
		require.Equal(t, wire.IdleName, name)
	}
}

// names are the names of all connections that have one.
func (s *scenario) names() []string {
	list, err := s.rdb.ClientList(context.Background()).Result()
	require.NoError(s.t, err)
	var names []string
	for line := range strings.Lines(list) {
		for field := range strings.FieldsSeq(line) {
			if name, ok := strings.CutPrefix(field, "name="); ok && name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

func (s *scenario) participants() []string {
	var list []string
	for _, name := range s.names() {
		if _, ok := wire.ParseConnName(lockName, name); ok {
			list = append(list, name)
		}
	}
	return list
}

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

// Peers end every connection that bears a participant's name and does not
// answer. So only who is subscribed to the channel may bear one.
func TestConnectionNames(t *testing.T) {
	redistest.Require(t)
	s := newScene(t, redistest.Start(t))
	require.Empty(t, s.names(), "idle: nothing is connected")

	reader := s.acquire(s.other, tether.Shared())
	before := s.names()
	require.Equal(t, []string{wire.ConnName(stage, reader.ID())}, before, "holding, as a reader")

	ctx, cancel := context.WithCancel(t.Context())
	waiting := s.client.Lock(stage).AcquireAsync(ctx)
	until(t, "acquiring, as the elected writer", func() bool { return len(s.participants()) == 2 })
	cancel()
	require.Error(t, (<-waiting).Err)
	until(t, "after giving up", func() bool { return len(s.participants()) == 1 })
	s.release(reader)
	until(t, "after the release", func() bool { return len(s.participants()) == 0 })

	holder := s.acquire(s.other)
	require.Equal(t, []string{wire.ConnName(stage, holder.ID())}, s.participants(), "holding, as a writer")
	waiting = s.client.Lock(stage).AcquireAsync(t.Context())
	s.asleep(1)
	until(t, "waiting, asleep", func() bool { return len(s.participants()) == 1 && len(s.names()) == 2 })
	require.Contains(t, s.names(), wire.IdleName)
	s.release(holder)
	r := <-waiting
	require.NoError(t, r.Err)
	until(t, "handed over", func() bool {
		p := s.participants()
		return len(p) == 1 && p[0] == wire.ConnName(stage, r.Hold.ID())
	})
	s.release(r.Hold)
	until(t, "after the release", func() bool { return len(s.participants()) == 0 })
	for _, name := range s.names() {
		require.Equal(t, wire.IdleName, name)
	}
}

// names are the names of all connections that have one.
func (s *scene) names() []string {
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

func (s *scene) participants() []string {
	var list []string
	for _, name := range s.names() {
		if _, ok := wire.ParseConnName(stage, name); ok {
			list = append(list, name)
		}
	}
	return list
}

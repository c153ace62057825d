package tethertest_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/tethertest"
	"github.com/tetherlock/tether/wire"
)

// The probe script with go-redis: by an unknown hash, by its text, and by its
// hash.
func TestGoRedisProbes(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			s := tethertest.NewServer(t)
			o := s.Options()
			o.Protocol = protocol
			rdb := redis.NewClient(o)
			defer func() { require.NoError(t, rdb.Close()) }()
			ctx := t.Context()
			sub := rdb.Subscribe(ctx, "c")
			defer func() { require.NoError(t, sub.Close()) }()
			_, err := sub.Receive(ctx)
			require.NoError(t, err)

			probe := redis.NewScript(wire.ProbeScript)
			require.True(t, redis.HasErrorPrefix(probe.EvalSha(ctx, rdb, nil, "c", "ping").Err(), "NOSCRIPT"))
			for i := range 3 {
				ping := fmt.Sprint("ping ", i)
				n, err := probe.Run(ctx, rdb, nil, "c", ping).Int()
				require.NoError(t, err)
				require.Equal(t, 1, n)
				m, err := sub.ReceiveMessage(ctx)
				require.NoError(t, err)
				require.Equal(t, ping, m.Payload)
			}
		})
	}
}

// A participant that probes on its own connection receives its ping before the
// reply.
func TestProbeOnTheSubscribedConnection(t *testing.T) {
	s := tethertest.NewServer(t)
	c := dial(t, s)
	defer c.Close()
	c.ask(t, "HELLO", "3")
	request := wire.AppendCommand(nil, "SUBSCRIBE", "c")
	request = wire.AppendProbe(request, "c", "ping", false)
	request = wire.AppendProbe(request, "c", "ping", true)
	_, err := c.Write(wire.AppendProbe(request, "c", "pong", false))
	require.NoError(t, err)
	for i, want := range []wire.Kind{wire.Push, wire.Error, wire.Push, wire.Integer, wire.Push, wire.Integer} {
		v, err := c.Read()
		require.NoError(t, err)
		require.Equal(t, want, v.Kind, "frame %d", i)
	}
}

// A command that is not supported inside MULTI aborts the transaction, as an error
// does in Redis: a part of the transaction must not run.
func TestRefusedCommandSpoilsTheTransaction(t *testing.T) {
	s := tethertest.NewServer(t)
	c := dial(t, s)
	defer c.Close()
	require.Equal(t, "OK", c.ask(t, "MULTI").Str)
	require.Equal(t, "QUEUED", c.ask(t, "SET", "k", "v").Str)
	require.Equal(t, "ERR tethertest does not support PUBLISH inside MULTI", c.ask(t, "PUBLISH", "c", "x").Str)
	require.Equal(t, "EXECABORT Transaction discarded because of previous errors.", c.ask(t, "EXEC").Str)
	require.Equal(t, wire.Null, c.ask(t, "GET", "k").Kind)
	require.Equal(t, "PONG", c.ask(t, "PING").Str)
}

package tethertest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/tethertest"
)

// go-redis works with the server in both protocols, over TCP and in memory.
func TestGoRedis(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		for _, memory := range []bool{false, true} {
			t.Run(fmt.Sprintf("RESP%d memory=%t", protocol, memory), func(t *testing.T) {
				s := tethertest.NewServer(t, tethertest.WithPassword("ann", password))
				o := &redis.Options{Addr: s.Addr()}
				if memory {
					o = s.Options()
				}
				o.Protocol, o.Username, o.Password, o.DB, o.ClientName = protocol, "ann", password, 2, "me"
				rdb := redis.NewClient(o)
				t.Cleanup(func() { require.NoError(t, rdb.Close()) })
				ctx, cancel := context.WithTimeout(t.Context(), replyTimeout)
				defer cancel()
				t.Run("keys", func(t *testing.T) { useKeys(ctx, t, rdb) })
				t.Run("scripts", func(t *testing.T) { useScripts(ctx, t, rdb) })
				t.Run("pubsub", func(t *testing.T) { usePubSub(ctx, t, rdb) })
				t.Run("clients", func(t *testing.T) {
					require.Equal(t, "me", rdb.ClientGetName(ctx).Val())
					require.Contains(t, rdb.ClientList(ctx).Val(), " name=me ")
					require.Equal(t, "ann", rdb.ClientInfo(ctx).Val().User)
				})
			})
		}
	}
}

func useKeys(ctx context.Context, t *testing.T, rdb *redis.Client) {
	require.NoError(t, rdb.Set(ctx, "k", "v", time.Minute).Err())
	require.Equal(t, "v", rdb.Get(ctx, "k").Val())
	require.Equal(t, time.Minute, rdb.TTL(ctx, "k").Val())
	require.Equal(t, time.Duration(-2), rdb.TTL(ctx, "none").Val())
	require.ErrorIs(t, rdb.Get(ctx, "none").Err(), redis.Nil)
	require.False(t, rdb.SetNX(ctx, "k", "w", time.Minute).Val())
	require.Equal(t, int64(1), rdb.Incr(ctx, "n").Val())
	require.WithinDuration(t, time.Now(), rdb.Time(ctx).Val(), time.Minute)
	replies, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Incr(ctx, "n")
		p.TTL(ctx, "n")
		p.HSet(ctx, "h", "f", "v")
		p.HGetAll(ctx, "h")
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, int64(2), replies[0].(*redis.IntCmd).Val())
	require.Equal(t, map[string]string{"f": "v"}, replies[3].(*redis.MapStringStringCmd).Val())
}

func useScripts(ctx context.Context, t *testing.T, rdb *redis.Client) {
	script := redis.NewScript("return {KEYS[1], ARGV[1], redis.call('INCR', KEYS[1])}")
	for i := range int64(2) {
		got, err := script.Run(ctx, rdb, []string{"counter"}, "arg").Slice()
		require.NoError(t, err)
		require.Equal(t, []any{"counter", "arg", i + 1}, got)
	}
	require.Equal(t, []bool{true}, script.Exists(ctx, rdb).Val())
}

func usePubSub(ctx context.Context, t *testing.T, rdb *redis.Client) {
	sub := rdb.Subscribe(ctx, "c")
	defer sub.Close()
	require.NoError(t, sub.PSubscribe(ctx, "p*"))
	for range 2 {
		_, err := sub.Receive(ctx)
		require.NoError(t, err)
	}
	require.NoError(t, sub.Ping(ctx, "hello"))
	v, err := sub.Receive(ctx)
	require.NoError(t, err)
	require.Equal(t, "hello", v.(*redis.Pong).Payload)
	require.Equal(t, map[string]int64{"c": 1}, rdb.PubSubNumSub(ctx, "c").Val())
	require.Equal(t, int64(1), rdb.Publish(ctx, "c", "to c").Val())
	require.Equal(t, int64(1), rdb.Publish(ctx, "pattern", "to p").Val())
	for _, want := range []redis.Message{{Channel: "c", Payload: "to c"}, {Channel: "pattern", Pattern: "p*", Payload: "to p"}} {
		m, err := sub.ReceiveMessage(ctx)
		require.NoError(t, err)
		require.Equal(t, want, *m)
	}
}

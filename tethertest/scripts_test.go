package tethertest_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/tethertest"
)

func script(t *testing.T, name string) *redis.Script {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return redis.NewScript(string(text))
}

// A fencing token is the virtual time. Tokens rise even within one microsecond.
func TestVirtualTokens(t *testing.T) {
	withVirtualTime(t, func(t *testing.T, s *tethertest.Server) {
		rdb := redis.NewClient(s.Options())
		defer rdb.Close()
		ctx := t.Context()
		sub := dial(t, s)
		defer sub.Close()
		require.Equal(t, push("subscribe", "c"), sub.ask(t, "SUBSCRIBE", "c"))
		fence := script(t, "fence.lua")
		draw := func() int64 {
			reply, err := fence.Run(ctx, rdb, []string{"c-fence"}, "c").Slice()
			require.NoError(t, err)
			require.Len(t, reply, 2)
			require.Equal(t, int64(1), reply[0])
			token, err := strconv.ParseInt(reply[1].(string), 10, 64)
			require.NoError(t, err)
			return token
		}
		for range 3 {
			now := time.Now().UnixMicro()
			require.Equal(t, now, draw())
			require.Equal(t, now+1, draw())
			require.NoError(t, rdb.FlushAll(ctx).Err())
			require.Equal(t, now, draw())
			<-time.After(time.Hour)
		}
	})
}

// The wake script walks down a queue of the maximum length.
func TestWakeWalksALongQueue(t *testing.T) {
	s := tethertest.NewServer(t)
	rdb := redis.NewClient(s.Options())
	defer func() { require.NoError(t, rdb.Close()) }()
	last := dial(t, s)
	require.Equal(t, push("subscribe", "c-256"), last.ask(t, "SUBSCRIBE", "c-256"))
	var queue []any
	for i := range 256 {
		queue = append(queue, "c-"+strconv.Itoa(i+1), `["`+strconv.Itoa(i+1)+`","x"]`)
	}
	n, err := script(t, "wake.lua").Run(t.Context(), rdb, nil, queue...).Int()
	require.NoError(t, err)
	require.Equal(t, 256, n)
	require.NoError(t, last.SetDeadline(time.Now().Add(replyTimeout)))
	v, err := last.Read()
	require.NoError(t, err)
	require.Equal(t, `{"message":"wake","tether":{"queue":[]}}`, v.Elems[2].Str)
}

package tether_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/internal/redistest"
)

// acquireToken acquires and releases a fenced lock, and returns its token.
func acquireToken(t *testing.T, c *tether.Client) int64 {
	t.Helper()
	h, err := c.Acquire(t.Context(), "l", tether.Fenced())
	require.NoError(t, err)
	require.NoError(t, h.Release(t.Context()))
	return h.Token()
}

// Tokens rise from grant to grant, also when portalocker increments the counter by
// one, and when the counter is lost.
func TestTokensRise(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		ctx := t.Context()
		c, other := s.client(t), s.client(t)
		last := acquireToken(t, c)
		require.Positive(t, last)
		higher := func(token int64) {
			t.Helper()
			require.Greater(t, token, last)
			last = token
		}
		higher(acquireToken(t, c))
		higher(acquireToken(t, other))
		counter, err := s.admin.Incr(ctx, "l-fence").Result()
		require.NoError(t, err)
		higher(counter)
		higher(acquireToken(t, other))
		require.NoError(t, s.admin.FlushAll(ctx).Err())
		higher(acquireToken(t, c))

		// The counter may be ahead of the server's clock. Above 1<<53 a Lua number
		// cannot represent every integer, so that the script must not turn the
		// token into one.
		const far = 1<<53 + 1
		require.NoError(t, s.admin.Set(ctx, "l-fence", far, 0).Err())
		require.Equal(t, int64(far+1), acquireToken(t, c))
		require.Equal(t, int64(far+2), acquireToken(t, other))
	})
	t.Run("restart without data", func(t *testing.T) {
		r := redistest.Start(t)
		s := realServer(t, r)
		c := s.client(t)
		before := acquireToken(t, c)
		require.NoError(t, r.Restart())
		require.Greater(t, acquireToken(t, c), before)
	})
}

// A contended grant draws its token in the same script as the deciding probe.
// Otherwise tokens would not rise in the order of the grants.
func TestTokensRiseInContention(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		var granted []int64 // written only by the holder
		var contenders sync.WaitGroup
		for range 6 {
			l := s.client(t).Lock("l", tether.Fenced())
			contenders.Go(func() {
				for range 15 {
					err := l.Do(t.Context(), func(_ context.Context, h *tether.Hold) error {
						granted = append(granted, h.Token())
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		contenders.Wait()
		require.Len(t, granted, 6*15)
		require.True(t, slices.IsSorted(granted))
		require.Len(t, slices.Compact(granted), 6*15)
	})
}

// Without Fenced there is no token, and nothing is stored.
func TestNoTokenWithoutFenced(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		require.Zero(t, s.acquire(t, s.client(t), "l").Token())
		n, err := s.admin.DBSize(t.Context()).Result()
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

// The counter is in the database of the client's options, without an expiry.
func TestCounterLivesInTheDatabaseOfTheClient(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		o := s.options()
		o.DB = 3
		rdb := redis.NewClient(o)
		token := acquireToken(t, clientOf(t, rdb))
		stored, err := rdb.Get(t.Context(), "l-fence").Int64()
		require.NoError(t, err)
		require.Equal(t, token, stored)
		require.Equal(t, time.Duration(-1), rdb.TTL(t.Context(), "l-fence").Val(), "it never expires")
		require.Zero(t, s.admin.Exists(t.Context(), "l-fence").Val())
	})
}

// If the key of the counter has another value, acquire fails at once and leaves the
// channel.
func TestCounterThatIsNone(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		require.NoError(t, s.admin.LPush(t.Context(), "l-fence", "x").Err())
		_, err := c.Acquire(t.Context(), "l", tether.Fenced())
		require.ErrorContains(t, err, "WRONGTYPE")
		require.NotErrorIs(t, err, tether.ErrHeld)
		require.NoError(t, s.admin.Del(t.Context(), "l-fence").Err())
		require.NoError(t, s.admin.Set(t.Context(), "l-fence", "x", 0).Err())
		_, err = c.Acquire(t.Context(), "l", tether.Fenced())
		require.ErrorContains(t, err, "not an integer")
		s.awaitNoSubscribers(t, "l")
	})
}

// The README's ACL for fencing is enough together with the smallest one, and each
// of its permissions is needed.
func TestAdditionalACLs(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	s := redistest.Start(t)
	lines := regexp.MustCompile(`(?m)^ACL SETUSER (.*)$`).FindAllStringSubmatch(string(readme), -1)
	require.Len(t, lines, 3)
	words := func(i int) (args []any) {
		args = append(args, "ACL", "SETUSER")
		for word := range strings.FieldsSeq(strings.ReplaceAll(lines[i][1], "<name>", "l")) {
			args = append(args, word)
		}
		return args
	}
	s.MustDo(t, words(0)...)
	o := s.Options()
	o.Username, o.Password = "locks", "secret"
	take := func() error {
		c := clientOf(t, redis.NewClient(o))
		h, err := c.TryAcquire(t.Context(), "l", tether.Fenced())
		if err == nil {
			err = h.Release(t.Context())
		}
		return err
	}
	_, ok := errors.AsType[*tether.PermissionError](take())
	require.True(t, ok, "without access to the key")

	s.MustDo(t, words(2)...)
	require.NoError(t, take())
	for _, word := range words(2)[3:] {
		if w := word.(string); strings.HasPrefix(w, "+") {
			s.MustDo(t, "ACL", "SETUSER", "locks", "-"+strings.TrimPrefix(w, "+"))
			if w == "+set" { // only for a counter behind the clock
				s.MustDo(t, "DEL", "l-fence")
			}
			denied, ok := errors.AsType[*tether.PermissionError](take())
			require.True(t, ok, "without %s", w)
			require.Contains(t, denied.Command, strings.ToUpper(strings.TrimPrefix(w, "+")))
			s.MustDo(t, words(2)...)
		}
	}
}

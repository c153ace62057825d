package tether_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/internal/redistest"
)

// Leases on other kinds of servers and clients, and with errors of the server.

// leaseNames are names with all kinds of bytes. On a cluster the part in braces
// decides the slot, so that key, counter and channel of a name must agree on it.
var leaseNames = []string{
	"plain", "two words", "größe", "\x00\xff\r\n", "{tag}rest", "rest{tag}", "{tag}", "{", "{}", "{}x", "a{}b{c}", "a}b", "}{", "}", "a{b", "{{x}}",
	"a}{b", strings.Repeat("x", 300), "*", "a*[b]?",
}

// checkLeaseHandover checks that a second client's lease is granted when the first
// one releases.
func checkLeaseHandover(t *testing.T, first, second *tether.Client, name string) {
	t.Helper()
	h, err := first.Lease(name, tether.Fenced()).Acquire(t.Context())
	require.NoError(t, err, "%q", name)
	require.Positive(t, h.Token())
	owned, err := h.Owned(t.Context())
	require.NoError(t, err)
	require.True(t, owned)
	list, err := second.ProbeLease(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, h.ID(), list[0].ID)
	l := second.Lease(name, tether.Fenced())
	events := l.Events()
	waiting := l.AcquireAsync(t.Context())
	awaitEvent[tether.WaitingEvent](t, events)
	require.NoError(t, h.Release(t.Context()))
	r := <-waiting
	require.NoError(t, r.Err)
	require.Greater(t, r.Hold.Token(), h.Token())
	require.NoError(t, r.Hold.Release(t.Context()))
	require.NoError(t, l.Close())
}

func TestLeaseNames(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		a, b := s.client(t), s.client(t)
		for _, name := range leaseNames {
			checkLeaseHandover(t, a, b, name)
		}
		require.Len(t, s.admin.Keys(t.Context(), "*").Val(), len(leaseNames), "one counter each, and nothing else")
	})
}

func TestLeasesOnACluster(t *testing.T) {
	s := redistest.StartCluster1(t)
	cluster := func() *tether.Client {
		return clientOf(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.Addr}}))
	}
	a, b := cluster(), cluster()
	for _, name := range leaseNames {
		checkLeaseHandover(t, a, b, name)
	}
	// A release wakes a waiter on a cluster too.
	h, err := a.Lease(leaseKey).Acquire(t.Context())
	require.NoError(t, err)
	waiting := b.Lease(leaseKey, tether.WithPollInterval(time.Hour)).AcquireAsync(t.Context())
	realServer(t, s).eventually(t, func() bool { return len(s.MustDo(t, "PUBSUB", "CHANNELS", "{l}-released").([]any)) == 1 })
	require.NoError(t, h.Release(t.Context()))
	r := <-waiting
	require.NoError(t, r.Err)
	require.NoError(t, r.Hold.Release(t.Context()))

	_, err = a.Acquire(t.Context(), leaseKey)
	_, ok := errors.AsType[*tether.UnsupportedError](err)
	require.True(t, ok, "%v", err)
}

func TestLeasesOnARing(t *testing.T) {
	shards := map[string]string{"one": redistest.Start(t).Addr, "two": redistest.Start(t).Addr}
	ring := func() *tether.Client { return clientOf(t, redis.NewRing(&redis.RingOptions{Addrs: shards})) }
	a, b := ring(), ring()
	for _, name := range leaseNames {
		checkLeaseHandover(t, a, b, name)
	}
	for i := range 20 {
		checkLeaseHandover(t, a, b, fmt.Sprint("lock", i))
	}
}

// A ring whose shards are all down panics when it is subscribed to.
func TestARingThatLosesItsShards(t *testing.T) {
	s := redistest.Start(t)
	rdb := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": s.Addr}, HeartbeatFrequency: 20 * time.Millisecond})
	l := clientOf(t, rdb).Lease(leaseKey)
	h, err := clientOf(t, redis.NewClient(s.Options())).Lease(leaseKey, tether.WithTTL(time.Second)).Acquire(t.Context())
	require.NoError(t, err)
	waiting := l.AcquireAsync(t.Context())
	realServer(t, s).eventually(t, func() bool { return len(s.MustDo(t, "PUBSUB", "CHANNELS").([]any)) == 1 })
	require.NoError(t, s.Signal(9))
	realServer(t, s).eventually(t, func() bool { return rdb.Len() == 0 })
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // in which the waiter subscribes again
	defer cancel()
	_, err = clientOf(t, rdb).Lease(leaseKey).Acquire(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "shards are down")
	require.NoError(t, s.Restart())
	r := <-waiting
	require.NoError(t, r.Err)
	<-h.Lost()
	require.NoError(t, r.Hold.Release(t.Context()))
}

// The documented permissions are enough, and an error names what is missing.
func TestPermissionsOfALease(t *testing.T) {
	s := redistest.Start(t)
	user := func(t *testing.T, rules ...any) *tether.Client {
		s.MustDo(t, append([]any{"ACL", "SETUSER", "leases", "reset", "on", ">secret", "-@all", "resetchannels"}, rules...)...)
		o := s.Options()
		o.Username, o.Password, o.DisableIdentity = "leases", "secret", true
		return clientOf(t, redis.NewClient(o))
	}
	commands := []any{"+evalsha", "+eval", "+get", "+set", "+del", "+pexpire", "+pttl"}
	fenced := []any{"+incr", "+time", "~{l}-fence"}
	waking := []any{"+publish", "+subscribe", "&{l}-released"}
	with := func(rules ...[]any) (all []any) {
		all = append(all, "~l")
		for _, r := range rules {
			all = append(all, r...)
		}
		return all
	}
	s.MustDo(t, "SCRIPT", "FLUSH")

	t.Run("enough", func(t *testing.T) {
		c := user(t, with(commands, fenced, waking)...)
		checkLeaseHandover(t, c, c, leaseKey)
		h, err := c.Lease(leaseKey, tether.WithTTL(300*time.Millisecond)).Acquire(t.Context())
		require.NoError(t, err)
		waiting := c.Lease(leaseKey, tether.WithPollInterval(time.Hour)).AcquireAsync(t.Context())
		realServer(t, s).eventually(t, func() bool { return len(s.MustDo(t, "PUBSUB", "CHANNELS", "{l}-released").([]any)) == 1 })
		never(t, 600*time.Millisecond, func() bool { return h.Err() != nil })
		require.NoError(t, h.Release(t.Context()))
		r := <-waiting
		require.NoError(t, r.Err)
		require.NoError(t, r.Hold.Release(t.Context()))
	})
	t.Run("no messages", func(t *testing.T) {
		c := user(t, with(commands, fenced)...)
		checkLeaseHandover(t, c, c, leaseKey)
	})
	for name, rules := range map[string][]any{
		"-eval":   with(commands, []any{"-eval", "-evalsha"}),
		"-get":    with(commands, []any{"-get"}),
		"-set":    with(commands, []any{"-set"}),
		"no key":  append(commands, "~other"),
		"no time": with(commands, fenced, []any{"-time"}),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := user(t, rules...).Lease(leaseKey, tether.Fenced()).Acquire(t.Context())
			missing, ok := errors.AsType[*tether.PermissionError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, "EVAL", missing.Command)
		})
	}
	t.Run("taken away", func(t *testing.T) {
		l := user(t, with(commands)...).Lease(leaseKey, tether.WithTTL(2*time.Second), tether.WithRenewInterval(100*time.Millisecond))
		events := l.Events()
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		s.MustDo(t, "ACL", "SETUSER", "leases", "-pexpire")
		failed := awaitEvent[tether.HealthEvent](t, events)
		for failed.Err == nil {
			failed = awaitEvent[tether.HealthEvent](t, events)
		}
		_, ok := errors.AsType[*tether.PermissionError](failed.Err)
		require.True(t, ok, "%v", failed.Err)
		s.MustDo(t, "ACL", "SETUSER", "leases", "+pexpire")
		never(t, 2500*time.Millisecond, func() bool { return h.Err() != nil })
		require.NoError(t, h.Release(t.Context()))
	})
	t.Run("wrong password", func(t *testing.T) {
		o := s.Options()
		o.Username, o.Password = "leases", "wrong"
		_, err := clientOf(t, redis.NewClient(o)).Lease(leaseKey).Acquire(t.Context())
		_, ok := errors.AsType[*tether.AuthError](err)
		require.True(t, ok, "%v", err)
	})
}

func TestAServerThatForgetsScripts(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		l := s.client(t).Lease(leaseKey, tether.WithTTL(300*time.Millisecond))
		for range 3 {
			require.NoError(t, s.admin.ScriptFlush(t.Context()).Err())
			h, err := l.Acquire(t.Context())
			require.NoError(t, err)
			never(t, 400*time.Millisecond, func() bool {
				require.NoError(t, s.admin.ScriptFlush(t.Context()).Err())
				return h.Err() != nil
			})
			owned, err := h.Owned(t.Context())
			require.NoError(t, err)
			require.True(t, owned)
			require.NoError(t, s.admin.ScriptFlush(t.Context()).Err())
			require.NoError(t, h.Release(t.Context()))
		}
	})
}

// READONLY is retried: the replica may be promoted.
func TestAReplicaIsWaitedFor(t *testing.T) {
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	o := replica.Options()
	o.MaxRetries = -1
	l := clientOf(t, redis.NewClient(o)).Lease(leaseKey)
	_, err := l.TryAcquire(t.Context())
	require.ErrorContains(t, err, "READONLY")
	require.NotErrorIs(t, err, tether.ErrHeld)
	events := l.Events()
	waiting := l.AcquireAsync(t.Context())
	require.ErrorContains(t, awaitEvent[tether.AttemptFailedEvent](t, events).Err, "READONLY")
	replica.MustDo(t, "REPLICAOF", "NO", "ONE")
	r := <-waiting
	require.NoError(t, r.Err)
	require.NoError(t, r.Hold.Release(t.Context()))
}

// Errors that pass by themselves are retried. Others are returned at once.
func TestErrorsOfTheServerToALease(t *testing.T) {
	for message, passes := range map[string]bool{
		"LOADING Redis is loading the dataset in memory":                   true,
		"MOVED 3999 127.0.0.1:6381":                                        true,
		"CLUSTERDOWN Hash slot not served":                                 true,
		"OOM command not allowed when used memory > 'maxmemory'.":          true,
		"MISCONF Redis is configured to save RDB snapshots":                true,
		"CROSSSLOT Keys in request don't hash to the same slot":            false,
		"ERR unknown command 'EVALSHA', with args beginning with:":         false,
		"NOPERM this user has no permissions to run the 'evalsha' command": false,
	} {
		inVirtualTime(t, func(t *testing.T, f leaseFixture) {
			once := failFirst(1)
			f.hook.intercept("take", func(run func() error) error {
				if once(func() error { return nil }) != nil {
					return replyError(message)
				}
				return run()
			})
			h, err := f.c.Lease(leaseKey).Acquire(t.Context())
			if !passes {
				require.ErrorContains(t, err, message)
				return
			}
			require.NoError(t, err, message)
			require.NoError(t, h.Release(t.Context()))
		})
	}
}

// replyError is an error reply.
type replyError string

func (e replyError) Error() string { return string(e) }
func (replyError) RedisError()     {}

func TestAKeyOfAnotherTypeIsNoLease(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		require.NoError(t, s.admin.LPush(t.Context(), leaseKey, "a").Err())
		l := s.client(t).Lease(leaseKey, tether.WithTTL(300*time.Millisecond))
		_, err := l.Acquire(t.Context())
		require.ErrorContains(t, err, "WRONGTYPE")
		require.NoError(t, s.admin.Del(t.Context(), leaseKey).Err())

		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		overwrite := func() {
			require.NoError(t, s.admin.Del(t.Context(), leaseKey).Err())
			require.NoError(t, s.admin.LPush(t.Context(), leaseKey, "a").Err())
		}
		overwrite()
		<-h.Lost()
		require.ErrorContains(t, h.Err(), "taken by somebody else")
		require.NoError(t, s.admin.Del(t.Context(), leaseKey).Err())

		h, err = s.client(t).Lease(leaseKey).Acquire(t.Context())
		require.NoError(t, err)
		overwrite()
		_, ok := errors.AsType[*tether.LostError](h.Release(t.Context()))
		require.True(t, ok)
		require.Equal(t, "list", s.admin.Type(t.Context(), leaseKey).Val())
	})
}

// The program closes its redis.Client while a lease is held.
func TestAClosedClientUnderALease(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		rdb := redis.NewClient(s.options())
		c := tether.New(rdb)
		l := c.Lease(leaseKey, tether.WithTTL(300*time.Millisecond))
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		given, err := c.Lease("other").Acquire(t.Context())
		require.NoError(t, err)
		rival := c.Lease(leaseKey)
		events := rival.Events()
		waiting := rival.AcquireAsync(t.Context())
		awaitEvent[tether.WaitingEvent](t, events)
		require.NoError(t, rdb.Close())
		require.ErrorIs(t, (<-waiting).Err, redis.ErrClosed, "a retry would not help")
		began := time.Now()
		require.ErrorIs(t, given.Release(t.Context()), redis.ErrClosed)
		require.Less(t, time.Since(began), time.Second)
		<-h.Lost()
		_, err = l.Acquire(t.Context())
		require.ErrorIs(t, err, redis.ErrClosed)
		require.NoError(t, c.Close())
		s.eventually(t, func() bool { return len(s.admin.PubSubChannels(t.Context(), "*").Val()) == 0 })
	})
}

// An acquire is cancelled while the server is frozen. When the server goes on, it
// runs the set, and that key must be deleted.
func TestACancelledAcquireOnAFrozenServerLeavesNoKey(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		o := s.options()
		o.ReadTimeout = 100 * time.Millisecond
		l := clientOf(t, redis.NewClient(o)).Lease(leaseKey)
		for range 3 {
			s.freeze(t)
			ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
			_, err := l.Acquire(ctx)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			s.thaw(t)
			h, err := l.Acquire(t.Context())
			require.NoError(t, err)
			require.NoError(t, h.Release(t.Context()))
			never(t, 100*time.Millisecond, func() bool { return !s.keyIs(t, "")() })
		}
	})
}

package tether_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/internal/redistest"
	"github.com/tetherlock/tether/protocol"
	"github.com/tetherlock/tether/wire"
)

// checkHandover checks that a lock works through both clients: the second one is
// refused, waits, and is granted when the first one releases.
func checkHandover(t *testing.T, first, second redis.UniversalClient) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	one, two := clientOf(t, first), clientOf(t, second)
	h, err := one.Acquire(ctx, "turns")
	require.NoError(t, err)
	_, err = two.TryAcquire(ctx, "turns")
	require.ErrorIs(t, err, tether.ErrHeld)
	waiting := two.Lock("turns").AcquireAsync(ctx)
	require.NoError(t, h.Release(ctx))
	r := <-waiting
	require.NoError(t, r.Err)
	require.NoError(t, r.Hold.Release(ctx))
}

func TestKindsOfClients(t *testing.T) {
	t.Run("tcp", func(t *testing.T) {
		s := redistest.Start(t)
		checkHandover(t, redis.NewClient(s.Options()), redis.NewClient(s.Options()))
	})
	t.Run("unix socket", func(t *testing.T) {
		s := redistest.StartUnix(t)
		checkHandover(t, redis.NewClient(s.Options()), redis.NewClient(s.Options()))
	})
	t.Run("tls", func(t *testing.T) {
		s, _ := redistest.StartTLS(t)
		checkHandover(t, redis.NewClient(s.Options()), redis.NewClient(s.Options()))
	})
	t.Run("resp2 option and client name do not matter", func(t *testing.T) {
		s := redistest.Start(t)
		o := s.Options()
		o.Protocol, o.ClientName, o.DB = 2, "mine", 3
		checkHandover(t, redis.NewClient(o), redis.NewClient(s.Options()))
	})
	t.Run("wrapper", func(t *testing.T) {
		s := redistest.Start(t)
		type wrapper struct{ *redis.Client }
		checkHandover(t, wrapper{redis.NewClient(s.Options())}, redis.NewClient(s.Options()))
	})
	t.Run("dialer", func(t *testing.T) {
		s := redistest.Start(t)
		cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.Addr}})
		c := clientOf(t, cluster, tether.WithDialer(func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", s.Addr)
		}))
		h, err := c.TryAcquire(t.Context(), "l")
		require.NoError(t, err)
		seen, err := c.Probe(t.Context(), "l")
		require.NoError(t, err)
		require.Len(t, seen, 1)
		require.NoError(t, h.Release(t.Context()))
	})
}

func TestClusterClientsAndRingsNeedADialer(t *testing.T) {
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	for _, rdb := range []redis.UniversalClient{cluster, ring} {
		c := clientOf(t, rdb)
		_, err := c.Acquire(t.Context(), "l")
		unsupported, ok := errors.AsType[*tether.UnsupportedError](err)
		require.True(t, ok, "%v", err)
		require.ErrorContains(t, unsupported, "WithDialer")
		_, err = c.Lock("l").TryAcquire(t.Context())
		require.ErrorContains(t, err, "WithDialer")
		_, err = c.Probe(t.Context(), "l")
		require.ErrorContains(t, err, "WithDialer")
	}
}

func TestCredentials(t *testing.T) {
	s := redistest.Start(t)
	s.MustDo(t, "ACL", "SETUSER", "locks", "on", ">secret", "allchannels", "+@all")
	s.MustDo(t, "ACL", "SETUSER", "default", "on", "resetpass", ">main")
	plain := func() *redis.Options {
		o := s.Options()
		o.Password = "main"
		return o
	}
	for name, set := range map[string]func(o *redis.Options){
		"password":          func(o *redis.Options) { o.Password = "main" },
		"user and password": func(o *redis.Options) { o.Username, o.Password = "locks", "secret" },
		"provider": func(o *redis.Options) {
			o.Username, o.Password = "nobody", "wrong"
			o.CredentialsProvider = func() (string, string) { return "locks", "secret" }
		},
		"context provider goes first": func(o *redis.Options) {
			o.CredentialsProvider = func() (string, string) { return "nobody", "wrong" }
			o.CredentialsProviderContext = func(context.Context) (string, string, error) { return "locks", "secret", nil }
		},
		"streaming provider goes first": func(o *redis.Options) {
			o.CredentialsProviderContext = func(context.Context) (string, string, error) { return "nobody", "wrong", nil }
			o.StreamingCredentialsProvider = newStreamingProvider("locks", "secret")
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := s.Options()
			set(o)
			checkHandover(t, redis.NewClient(o), redis.NewClient(plain()))
		})
	}
	t.Run("wrong password", func(t *testing.T) {
		o := s.Options()
		o.Username, o.Password = "locks", "wrong"
		c := clientOf(t, redis.NewClient(o))
		_, err := c.Acquire(t.Context(), "l")
		_, ok := errors.AsType[*tether.AuthError](err)
		require.True(t, ok, "%v", err)
		_, err = c.Probe(t.Context(), "l")
		_, ok = errors.AsType[*tether.AuthError](err)
		require.True(t, ok, "%v", err)
	})
	t.Run("no password", func(t *testing.T) {
		_, err := clientOf(t, redis.NewClient(s.Options())).Acquire(t.Context(), "l")
		_, ok := errors.AsType[*tether.AuthError](err)
		require.True(t, ok, "%v", err)
	})
	t.Run("a provider is asked once more", func(t *testing.T) {
		o := s.Options()
		asked := 0
		o.CredentialsProvider = func() (string, string) {
			asked++ // only the dial asks, one at a time
			return "locks", map[bool]string{true: "secret", false: "outdated"}[asked > 1]
		}
		h, err := clientOf(t, redis.NewClient(o)).Acquire(t.Context(), "l")
		require.NoError(t, err)
		require.Equal(t, 2, asked)
		require.NoError(t, h.Release(t.Context()))
	})
	t.Run("not twice", func(t *testing.T) {
		o := s.Options()
		asked := 0
		o.CredentialsProvider = func() (string, string) { asked++; return "locks", "outdated" }
		_, err := clientOf(t, redis.NewClient(o)).Acquire(t.Context(), "l")
		_, ok := errors.AsType[*tether.AuthError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, 2, asked)
	})
}

// streamingProvider is a provider whose credentials change while sockets are open.
type streamingProvider struct {
	first     auth.Credentials
	listeners chan auth.CredentialsListener
	gone      chan struct{}
}

func newStreamingProvider(user, password string) *streamingProvider {
	return &streamingProvider{auth.NewBasicCredentials(user, password), make(chan auth.CredentialsListener, 16), make(chan struct{}, 16)}
}

func (p *streamingProvider) Subscribe(l auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	l.OnNext(p.first)
	p.listeners <- l
	return p.first, func() error { p.gone <- struct{}{}; return nil }, nil
}

func TestStreamingCredentialsLogInAgainOnTheLiveSocket(t *testing.T) {
	s := redistest.Start(t)
	for _, user := range []string{"old", "new"} {
		s.MustDo(t, "ACL", "SETUSER", user, "on", ">"+user, "allchannels", "+@all")
	}
	srv := realServer(t, s)
	o := s.Options()
	p := newStreamingProvider("old", "old")
	o.StreamingCredentialsProvider = p
	rdb := redis.NewClient(o)
	c := tether.New(rdb)
	h, err := c.Acquire(t.Context(), "l")
	require.NoError(t, err)
	user := func() string {
		for _, client := range srv.clientList(t) {
			if client["name"] == "l-lock-"+h.ID() {
				return client["user"]
			}
		}
		return ""
	}
	require.Equal(t, "old", user())
	(<-p.listeners).OnNext(auth.NewBasicCredentials("new", "new"))
	srv.eventually(t, func() bool { return user() == "new" })
	require.NoError(t, h.Err())
	require.NoError(t, h.Release(t.Context()))
	require.NoError(t, c.Close())
	<-p.gone // the socket is closed, and with it the subscription
	require.NoError(t, rdb.Close())
}

// A fresh socket has one write before the grant: an acquire of a free lock takes
// one round trip.
func TestFreshSocketAcquiresWithOneWrite(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		o := s.options()
		writes := make(chan string, 64)
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			var d net.Dialer
			conn, err := d.DialContext(ctx, network, addr)
			return recordingConn{conn, writes}, err
		}
		c := clientOf(t, redis.NewClient(o))
		h, err := c.Acquire(t.Context(), "l")
		require.NoError(t, err)
		require.Len(t, writes, 1)
		require.Equal(t, "HELLO 3 SETNAME l-lock-"+h.ID()+"|SUBSCRIBE l|PUBSUB NUMSUB l|HELLO 3", <-writes)
		require.NoError(t, h.Release(t.Context()))
		require.Equal(t, "UNSUBSCRIBE l", <-writes)
		h, err = c.Acquire(t.Context(), "m")
		require.NoError(t, err)
		require.Equal(t, "SUBSCRIBE m|PUBSUB NUMSUB m|HELLO 3 SETNAME m-lock-"+h.ID(), <-writes)
		require.NoError(t, h.Release(t.Context()))
	})
}

// recordingConn sends each write to a channel, as the words of its commands.
type recordingConn struct {
	net.Conn
	writes chan<- string
}

func (c recordingConn) Write(p []byte) (int, error) {
	var commands []string
	r := wire.NewReader(strings.NewReader(string(p)))
	for {
		v, err := r.Read()
		if err != nil {
			break
		}
		var words []string
		for _, e := range v.Elems {
			words = append(words, e.Text())
		}
		commands = append(commands, strings.Join(words, " "))
	}
	c.writes <- strings.Join(commands, "|")
	return c.Conn.Write(p)
}

func TestReplicaGrantsNothing(t *testing.T) {
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	c := clientOf(t, redis.NewClient(replica.Options()))
	_, err := c.TryAcquire(t.Context(), "l")
	require.ErrorIs(t, err, tether.ErrNotMaster)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = c.Acquire(ctx, "l")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "no master")
	realServer(t, replica).awaitNoSubscribers(t, "l")

	// An acquire waits for a master. When the replica is promoted, it is granted.
	waiting := c.Lock("l").AcquireAsync(t.Context())
	replica.MustDo(t, "REPLICAOF", "NO", "ONE")
	r := <-waiting
	require.NoError(t, r.Err)
	require.NoError(t, r.Hold.Release(t.Context()))
}

func TestDemotedMaster(t *testing.T) {
	const health = 200 * time.Millisecond
	other := redistest.Start(t)
	demote := func(s *redistest.Server) { s.MustDo(t, "REPLICAOF", "127.0.0.1", other.Port) }

	t.Run("while held", func(t *testing.T) {
		s := redistest.Start(t)
		h, err := clientOf(t, redis.NewClient(s.Options())).Acquire(t.Context(), "l", tether.WithHealthCheck(health))
		require.NoError(t, err)
		demote(s)
		began := time.Now()
		<-h.Lost()
		require.Less(t, time.Since(began), 2*health)
		require.ErrorIs(t, h.Err(), tether.ErrNotMaster)
		realServer(t, s).awaitNoSubscribers(t, "l")
	})
	t.Run("while its socket is idle", func(t *testing.T) {
		s := redistest.Start(t)
		c := clientOf(t, redis.NewClient(s.Options()))
		h, err := c.Acquire(t.Context(), "l")
		require.NoError(t, err)
		require.NoError(t, h.Release(t.Context()))
		demote(s)
		_, err = c.TryAcquire(t.Context(), "l")
		require.ErrorIs(t, err, tether.ErrNotMaster)
	})
	t.Run("while an attempt is paused", func(t *testing.T) {
		s := redistest.Start(t)
		srv := realServer(t, s)
		// A contender that counts more than one has to ping, and PUBLISH is held
		// up until the end of the pause.
		bystander := redis.NewClient(s.Options())
		defer func() { require.NoError(t, bystander.Close()) }()
		sub := bystander.Subscribe(t.Context(), "l")
		_, err := sub.Receive(t.Context())
		require.NoError(t, err)
		s.MustDo(t, "CLIENT", "PAUSE", "60000", "WRITE")
		l := clientOf(t, redis.NewClient(s.Options())).Lock("l")
		result := l.AcquireAsync(t.Context())
		srv.eventually(t, func() bool { return srv.subscribers(t, "l") == 2 })
		require.NoError(t, sub.Close())
		srv.eventually(t, func() bool { return srv.subscribers(t, "l") == 1 })
		// When the pause ends, the script counts one subscriber, but on a replica.
		demote(s)
		s.MustDo(t, "CLIENT", "UNPAUSE")
		events := l.Events()
		failed := awaitEvent[tether.AttemptFailedEvent](t, events)
		require.ErrorIs(t, failed.Err, tether.ErrNotMaster)
		require.Empty(t, result)
		require.NoError(t, l.Close())
	})
}

func TestSentinelFailover(t *testing.T) {
	const health = 300 * time.Millisecond
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	sentinel := redistest.StartSentinel(t, "main", master, replica)
	checkHandover(t, redis.NewFailoverClient(sentinel.FailoverOptions()), redis.NewFailoverClient(sentinel.FailoverOptions()))

	c := clientOf(t, redis.NewFailoverClient(sentinel.FailoverOptions()))
	h, err := c.Acquire(t.Context(), "l", tether.WithHealthCheck(health))
	require.NoError(t, err)
	waiter := clientOf(t, redis.NewFailoverClient(sentinel.FailoverOptions())).Lock("l", tether.WithHealthCheck(health))
	waiting := waiter.AcquireAsync(t.Context())
	next := sentinel.Failover(t)
	began := time.Now()
	<-h.Lost()
	require.Less(t, time.Since(began), 2*health)
	_, ok := errors.AsType[*tether.LostError](h.Err())
	require.True(t, ok)

	// Until Sentinel demotes the old master, it may grant the lock once more. Such
	// a hold is lost like the first one. Then the new master grants it.
	onNext := realServer(t, next)
	for r := <-waiting; onNext.subscribers(t, "l") == 0; r = <-waiter.AcquireAsync(t.Context()) {
		require.NoError(t, r.Err)
		<-r.Hold.Lost()
	}
	require.Equal(t, tether.Held, waiter.State())
}

// Sentinel may announce another master long before the old one changes its role or
// ends connections: it may be unreachable for Sentinel.
func TestSentinelMovesTheMasterAwayFromALiveOne(t *testing.T) {
	const health = 200 * time.Millisecond
	a, b := redistest.Start(t), redistest.Start(t)
	addr := make(chan string, 1)
	addr <- a.Addr
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "main", SentinelAddrs: []string{"127.0.0.1:1"}})
	rdb.Options().Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
		now := <-addr
		addr <- now
		var d net.Dialer
		return d.DialContext(ctx, network, now)
	}
	h, err := clientOf(t, rdb).Acquire(t.Context(), "l", tether.WithHealthCheck(health))
	require.NoError(t, err)
	<-addr
	addr <- b.Addr
	began := time.Now()
	<-h.Lost()
	require.Less(t, time.Since(began), 3*health)
	require.ErrorIs(t, h.Err(), tether.ErrMasterChanged)
}

func TestClusterNodeIsUnsupported(t *testing.T) {
	s := redistest.StartCluster1(t)
	c := clientOf(t, redis.NewClient(s.Options()))
	_, err := c.Acquire(t.Context(), "l")
	_, ok := errors.AsType[*tether.UnsupportedError](err)
	require.True(t, ok, "%v", err)
	require.ErrorContains(t, err, "cluster")
}

func TestEndedSocketIsNeverReplacedUnderAHold(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		o := s.options()
		dials := make(chan struct{}, 16)
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials <- struct{}{}
			var d net.Dialer
			return d.DialContext(ctx, network, addr)
		}
		l := clientOf(t, redis.NewClient(o)).Lock("l")
		events := l.Events()
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		s.killConnections(t, "l")
		<-h.Lost()
		<-h.Context().Done()
		require.Equal(t, tether.Lost, l.State())
		lost := awaitEvent[tether.LostEvent](t, events)
		// Event, Err and context have the same error, which wraps the socket's.
		require.Equal(t, h.Err(), error(lost.Err))
		require.Equal(t, h.Err(), context.Cause(h.Context()))
		var netErr net.Error
		require.True(t, errors.Is(h.Err(), net.ErrClosed) || errors.Is(h.Err(), io.EOF) || errors.As(h.Err(), &netErr), "%v", h.Err())
		never(t, 150*time.Millisecond, func() bool { return s.subscribers(t, "l") != 0 || len(dials) != 1 })
	})
}

func TestRefusedSubscribeNeverBecomesAGrant(t *testing.T) {
	s := redistest.Start(t)
	// The user may count, and somebody else is subscribed. The count after the
	// refused SUBSCRIBE is one, but that one is the other subscriber.
	s.MustDo(t, "ACL", "SETUSER", "locks", "on", ">secret", "resetchannels", "&other", "+@all")
	bystander := redis.NewClient(s.Options())
	defer func() { require.NoError(t, bystander.Close()) }()
	sub := bystander.Subscribe(t.Context(), "l")
	defer func() { require.NoError(t, sub.Close()) }()
	_, err := sub.Receive(t.Context())
	require.NoError(t, err)
	o := s.Options()
	o.Username, o.Password = "locks", "secret"
	c := clientOf(t, redis.NewClient(o))
	h, err := c.TryAcquire(t.Context(), "l")
	require.Nil(t, h)
	denied, ok := errors.AsType[*tether.PermissionError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, "SUBSCRIBE", denied.Command)
}

func TestMissingPermissionsAreNamed(t *testing.T) {
	s := redistest.Start(t)
	holder := clientOf(t, redis.NewClient(s.Options()))
	h, err := holder.Acquire(t.Context(), "l")
	require.NoError(t, err)
	defer func() { require.NoError(t, h.Release(t.Context())) }()
	for missing, command := range map[string]string{
		"-subscribe": "SUBSCRIBE", "-pubsub": "PUBSUB", "-evalsha": "EVALSHA", "-eval": "EVAL", "-unsubscribe": "UNSUBSCRIBE",
		"-publish": "PUBLISH",
	} {
		t.Run(missing, func(t *testing.T) {
			s.MustDo(t, "SCRIPT", "FLUSH")
			s.MustDo(t, "ACL", "SETUSER", "locks", "reset", "on", ">secret", "allchannels", "+@all", missing)
			o := s.Options()
			o.Username, o.Password = "locks", "secret"
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			_, err := clientOf(t, redis.NewClient(o)).Acquire(ctx, "l")
			if command == "UNSUBSCRIBE" {
				// The attempt is refused by the holder. Leaving the channel then
				// closes the socket instead.
				require.ErrorIs(t, err, tether.ErrHeld)
				return
			}
			denied, ok := errors.AsType[*tether.PermissionError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, command, denied.Command)
			if missing == "-subscribe" || missing == "-publish" {
				_, err = clientOf(t, redis.NewClient(o)).Probe(t.Context(), "l")
				denied, ok = errors.AsType[*tether.PermissionError](err)
				require.True(t, ok, "%v", err)
				require.Equal(t, command, denied.Command)
			}
		})
	}
}

// The smallest ACL of the README is enough, and each of its permissions is needed.
func TestSmallestACL(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	rule := regexp.MustCompile(`(?m)^ACL SETUSER (.*)$`).FindStringSubmatch(string(readme))
	require.NotNil(t, rule, "the README has no ACL")
	line := strings.ReplaceAll(rule[1], "<name>", "turns")
	args := []any{"ACL", "SETUSER"}
	for word := range strings.FieldsSeq(line) {
		args = append(args, word)
	}
	s := redistest.Start(t)
	s.MustDo(t, args...)
	o := s.Options()
	o.Username = args[2].(string)
	o.Password = regexp.MustCompile(`>(\S+)`).FindStringSubmatch(line)[1]
	again := *o
	checkHandover(t, redis.NewClient(o), redis.NewClient(&again))
	// Every single permission is needed.
	for _, word := range args[3:] {
		if w := word.(string); strings.HasPrefix(w, "+") {
			s.MustDo(t, "SCRIPT", "FLUSH") // EVAL is needed only when the server has no script
			s.MustDo(t, "ACL", "SETUSER", o.Username, "-"+strings.TrimPrefix(w, "+"))
			require.Error(t, acquireBesideHolder(t, o), "without %s", w)
			s.MustDo(t, args...)
		}
	}
}

// acquireBesideHolder acquires a lock, tries it with a second client, which must be
// refused, and releases it. It returns the first error of a missing permission.
func acquireBesideHolder(t *testing.T, o *redis.Options) error {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	one, two := *o, *o
	first, second := redis.NewClient(&one), redis.NewClient(&two)
	a, b := tether.New(first), tether.New(second)
	defer func() {
		for _, c := range []interface{ Close() error }{a, b, first, second} {
			require.NoError(t, c.Close())
		}
	}()
	h, err := a.Acquire(ctx, "turns")
	if err != nil {
		return err
	}
	_, err = b.TryAcquire(ctx, "turns")
	if !errors.Is(err, tether.ErrHeld) {
		return errors.Join(errors.New("not refused by the holder"), err)
	}
	return h.Release(ctx)
}

// scriptedServer is a server that answers every command with the result of a
// function. It returns its address.
func scriptedServer(t *testing.T, answer func(args []string) string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				r := wire.NewReader(conn)
				for {
					v, err := r.Read()
					if err != nil {
						return
					}
					var args []string
					for _, e := range v.Elems {
						args = append(args, e.Text())
					}
					if _, err := conn.Write([]byte(answer(args))); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

func TestServerWithoutRESP3IsUnsupported(t *testing.T) {
	for name, reply := range map[string]string{
		"unknown command":  "-ERR unknown command `HELLO`, with args beginning with: `3`, \r\n",
		"unknown protocol": "-NOPROTO unsupported protocol version\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			addr := scriptedServer(t, func(args []string) string {
				if args[0] == "HELLO" {
					return reply
				}
				return "+OK\r\n"
			})
			_, err := clientOf(t, redis.NewClient(&redis.Options{Addr: addr})).Acquire(t.Context(), "l")
			_, ok := errors.AsType[*tether.UnsupportedError](err)
			require.True(t, ok, "%v", err)
			require.ErrorContains(t, err, "HELLO")
		})
	}
}

func TestNonsenseIsUnsupported(t *testing.T) {
	addr := scriptedServer(t, func(args []string) string {
		if args[0] == "SUBSCRIBE" {
			return ">3\r\n$9\r\nsubscribe\r\n$1\r\nl\r\n:1\r\n"
		}
		return "+OK\r\n"
	})
	_, err := clientOf(t, redis.NewClient(&redis.Options{Addr: addr})).Acquire(t.Context(), "l")
	_, ok := errors.AsType[*tether.UnsupportedError](err)
	require.True(t, ok, "%v", err)
	require.ErrorContains(t, err, "PUBSUB")
}

func TestTroubleThatPassesIsRetried(t *testing.T) {
	for _, reply := range []string{
		"-LOADING Redis is loading the dataset in memory\r\n",
		"-READONLY You can't write against a read only replica.\r\n",
		"-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n",
		"-BUSY Redis is busy running a script.\r\n",
		"-ERR max number of clients reached\r\n",
	} {
		t.Run(strings.Fields(reply)[0], func(t *testing.T) {
			s := redistest.Start(t)
			failing := scriptedServer(t, func([]string) string { return reply })
			dials := 0
			o := s.Options()
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				dials++ // one dial at a time
				if dials < 4 {
					addr = failing
				}
				var d net.Dialer
				return d.DialContext(ctx, network, addr)
			}
			c := clientOf(t, redis.NewClient(o))
			_, err := c.TryAcquire(t.Context(), "l")
			require.ErrorContains(t, err, strings.TrimPrefix(strings.Fields(reply)[0], "-"), "a try spends one attempt")
			h, err := c.Acquire(t.Context(), "l")
			require.NoError(t, err)
			require.Equal(t, 4, dials)
			require.NoError(t, h.Release(t.Context()))
		})
	}
}

func TestRefusedConnectionIsRetried(t *testing.T) {
	s := redistest.Start(t)
	require.NoError(t, s.Signal(syscall.SIGKILL))
	c := clientOf(t, redis.NewClient(s.Options()))
	_, err := c.TryAcquire(t.Context(), "l")
	_, ok := errors.AsType[*net.OpError](err)
	require.True(t, ok, "%v", err)
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	_, err = c.Acquire(ctx, "l")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, ok = errors.AsType[*net.OpError](err)
	require.True(t, ok, "%v", err)
	require.ErrorContains(t, err, "refused")
	require.NotErrorIs(t, err, tether.ErrHeld)

	waiting := c.Lock("l").AcquireAsync(t.Context())
	require.NoError(t, s.Restart())
	r := <-waiting
	require.NoError(t, r.Err)
	require.NoError(t, r.Hold.Release(t.Context()))
}

// go-redis's TLS dialler ignores its context.
func TestTLSDialToABlackHoleReturnsWithTheContext(t *testing.T) {
	hole, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, hole.Close()) }()
	rdb := redis.NewClient(&redis.Options{
		Addr: hole.Addr().String(), DialTimeout: 2 * time.Second,
		TLSConfig: &tls.Config{ServerName: "nowhere"},
	})
	c := clientOf(t, rdb)
	for _, acquire := range []func(context.Context, string, ...tether.LockOption) (*tether.Hold, error){c.Acquire, c.TryAcquire} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		began := time.Now()
		_, err = acquire(ctx, "l")
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Less(t, time.Since(began), time.Second)
	}
	began := time.Now()
	require.NoError(t, c.Close())
	require.Less(t, time.Since(began), time.Second)
}

// The handshake must be done in the dial. A tls.Conn without one does it in its
// first write, which is not bounded by the caller's context.
func TestTLSHandshakeIsPartOfTheDial(t *testing.T) {
	hole, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, hole.Close()) }()
	rdb := redis.NewClient(&redis.Options{Addr: hole.Addr().String()})
	c := clientOf(t, rdb, tether.WithDialer(func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", hole.Addr().String())
		if err != nil {
			return nil, err
		}
		return tls.Client(conn, &tls.Config{ServerName: "nowhere"}), nil
	}))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err = c.Acquire(ctx, "l")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, c.Close())
	require.Less(t, time.Since(began), time.Second)
}

// A ping may name a response channel on which the holder's user may not publish.
// The refused answer must not end the hold: anybody could end it with such a ping.
func TestAnswerThatIsRefusedIsNoLoss(t *testing.T) {
	s := redistest.Start(t)
	s.MustDo(t, "ACL", "SETUSER", "locks", "on", ">secret", "resetchannels", "&l", "&l-*", "+@all")
	o := s.Options()
	o.Username, o.Password = "locks", "secret"
	l := clientOf(t, redis.NewClient(o)).Lock("l")
	events := l.Events()
	h, err := l.Acquire(t.Context())
	require.NoError(t, err)
	s.MustDo(t, "PUBLISH", "l", wire.EncodePing(protocol.Ping{Response: "elsewhere"}))
	for {
		if e := awaitEvent[tether.HealthEvent](t, events); e.Err != nil {
			_, ok := errors.AsType[*tether.PermissionError](e.Err)
			require.True(t, ok, "%v", e.Err)
			break
		}
	}
	require.NoError(t, h.Err())
	require.NoError(t, h.Release(t.Context()))
}

// blackholeConn is a connection that, once dead is closed, loses all writes without
// an error.
type blackholeConn struct {
	net.Conn
	dead <-chan struct{}
}

func (c blackholeConn) Write(p []byte) (int, error) {
	select {
	case <-c.dead:
		return len(p), nil
	default:
		return c.Conn.Write(p)
	}
}

func TestIdleSocketsThatAreSilentlyDeadCostOneWait(t *testing.T) {
	s := redistest.Start(t)
	o := s.Options()
	dead := make(chan struct{})
	dials := 0
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, addr)
		if dials++; dials <= 4 { // one dial at a time
			return blackholeConn{conn, dead}, err
		}
		return conn, err
	}
	c := clientOf(t, redis.NewClient(o))
	var holds []*tether.Hold
	for _, name := range []string{"a", "b", "c", "d"} {
		h, err := c.Acquire(t.Context(), name)
		require.NoError(t, err)
		holds = append(holds, h)
	}
	for _, h := range holds {
		require.NoError(t, h.Release(t.Context()))
	}
	close(dead)
	began := time.Now()
	for range 3 {
		h, err := c.TryAcquire(t.Context(), "l")
		require.NoError(t, err)
		require.NoError(t, h.Release(t.Context()))
	}
	require.Less(t, time.Since(began), 2*time.Second)
	require.Equal(t, 5, dials)
}

// The unsubscribe function of a streaming provider may block. It must not delay
// other locks or Close.
func TestSlowProviderHoldsNobodyUp(t *testing.T) {
	s := redistest.Start(t)
	o := s.Options()
	block := make(chan struct{})
	o.StreamingCredentialsProvider = slowProvider{block}
	c := clientOf(t, redis.NewClient(o))
	one, err := c.Acquire(t.Context(), "one")
	require.NoError(t, err)
	two, err := c.Acquire(t.Context(), "two")
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_ = one.Release(ended) // closes the connection
	began := time.Now()
	require.NoError(t, two.Release(t.Context()))
	three, err := c.Acquire(t.Context(), "three")
	require.NoError(t, err)
	require.NoError(t, three.Release(t.Context()))
	require.NoError(t, c.Close())
	require.Less(t, time.Since(began), time.Second)
	close(block)
}

type slowProvider struct{ block <-chan struct{} }

func (p slowProvider) Subscribe(auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	return auth.NewBasicCredentials("", ""), func() error { <-p.block; return nil }, nil
}

func TestWrongCertificateEndsAtOnce(t *testing.T) {
	s, _ := redistest.StartTLS(t)
	o := s.Options()
	o.TLSConfig = &tls.Config{ServerName: "127.0.0.1"} // without its authority
	_, err := clientOf(t, redis.NewClient(o)).Acquire(t.Context(), "l")
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	require.True(t, ok, "%v", err)
}

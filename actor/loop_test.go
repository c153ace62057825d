package actor

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/wire"
)

// server is the server's end of a lock's connection, which a test controls. A
// command that the lock writes is one string: its words, with spaces between them.
type server struct {
	t        *testing.T
	conn     net.Conn
	commands chan string
}

// expect requires that these are the next commands.
func (s *server) expect(commands ...string) {
	s.t.Helper()
	for _, want := range commands {
		got, open := <-s.commands
		require.True(s.t, open, "the socket is closed; wanted %s", want)
		require.Equal(s.t, want, got)
	}
}

// reply writes frames to the lock. A space stands for a line break.
func (s *server) reply(frames ...string) {
	s.t.Helper()
	_, err := s.conn.Write([]byte(strings.ReplaceAll(strings.Join(frames, ""), " ", "\r\n")))
	require.NoError(s.t, err)
}

const (
	subscribed   = ">3 $9 subscribe $1 C :1 "
	unsubscribed = ">3 $11 unsubscribe $1 C :0 "
	countOfOne   = "*2 $1 C :1 "
	master       = "%2 $4 role $6 master $4 mode $10 standalone "
	replica      = "%2 $4 role $7 replica $4 mode $10 standalone "
)

// read reads commands until the connection ends.
func (s *server) read() {
	defer close(s.commands)
	r := wire.NewReader(s.conn)
	for {
		v, err := r.Read()
		if err != nil {
			return
		}
		var words []string
		for _, e := range v.Elems {
			words = append(words, e.Text())
		}
		s.commands <- strings.Join(words, " ")
	}
}

// testEnvironment is the environment of one lock. Sockets are pipes, and effects
// for callers go to a channel.
type testEnvironment struct {
	t             *testing.T
	dials         chan struct{}     // a dial has begun
	sockets       chan net.Conn     // what dials end up with
	ignoreContext bool              // dials go on when their context has ended
	effects       chan Effect       // without events
	parked        chan *wire.Socket // idle sockets given back
	masterMoved   chan chan<- error // watches of the master
	ids           string            // of the next sockets, a letter each
}

func newTestEnvironment(t *testing.T) *testEnvironment {
	return &testEnvironment{
		t: t, dials: make(chan struct{}, 16), sockets: make(chan net.Conn), effects: make(chan Effect, 64),
		parked: make(chan *wire.Socket, 16), masterMoved: make(chan chan<- error, 16), ids: "abcdef",
	}
}

func (env *testEnvironment) start() *Loop {
	l := NewLoop(Config{
		Channel: "C", Waiters: func() string { return "WAIT" }, WakeChannel: func(id string) string { return "W" + id },
		Response: func() string { return "R" }, Jitter: func() float64 { return 0.5 },
		Health: 10 * time.Second, Reply: 5 * time.Second, Unavailable: time.Second, Poll: 100 * time.Millisecond,
	}, env)
	l.Start(nil, nil)
	return l
}

func (env *testEnvironment) Idle() *wire.Socket { return nil }

func (env *testEnvironment) DiscardIdle() {}

func (env *testEnvironment) Dial(ctx context.Context) (*wire.Socket, error) {
	env.dials <- struct{}{}
	ended := ctx.Done()
	if env.ignoreContext {
		ended = nil
	}
	select {
	case conn := <-env.sockets:
		id := env.ids[:1]
		env.ids = env.ids[1:]
		return wire.NewSocket(conn, id, wire.Login{}, nil), nil
	case <-ended:
		return nil, ctx.Err()
	}
}

func (env *testEnvironment) Park(s *wire.Socket, _ bool) { env.parked <- s }
func (env *testEnvironment) Watch(string) <-chan error {
	moved := make(chan error, 1)
	env.masterMoved <- moved
	return moved
}
func (env *testEnvironment) Unwatch(<-chan error) {}
func (env *testEnvironment) Ended()               { close(env.effects) }

// query is a message to the environment, which feeds the input to the machine and
// sends the state that the lock was in.
type query struct {
	input Input
	state chan State
}

func (env *testEnvironment) Handle(m any, s State, feed func(Input)) {
	q := m.(query)
	feed(q.input)
	q.state <- s
}

func (env *testEnvironment) Perform(e Effect) Input {
	if _, event := e.(Notify); !event {
		env.effects <- e
	}
	return nil
}

// connect waits for a dial and ends it with a new connection.
func (env *testEnvironment) connect() *server {
	<-env.dials
	here, there := net.Pipe()
	s := &server{env.t, there, make(chan string, 64)}
	go s.read()
	env.sockets <- here
	return s
}

// nextEffect receives the next effect, which must be of type E.
func nextEffect[E Effect](env *testEnvironment) E {
	env.t.Helper()
	e := <-env.effects
	of, ok := e.(E)
	require.True(env.t, ok, "%#v", e)
	return of
}

// acquired acquires the lock.
func (env *testEnvironment) acquired(l *Loop) *server {
	env.t.Helper()
	require.True(env.t, l.Send(Acquire{Call: 1}))
	s := env.connect()
	s.expect("HELLO 3 SETNAME C-lock-a", "SUBSCRIBE C", "PUBSUB NUMSUB C", "HELLO 3")
	s.reply(master, subscribed, countOfOne, master)
	require.Equal(env.t, "a", nextEffect[Grant](env).ID)
	return s
}

// close closes the lock. Its goroutines must end: the synctest bubble waits for
// them.
func (env *testEnvironment) close(l *Loop) {
	env.t.Helper()
	l.Send(Close{})
	for range env.effects {
	}
	<-l.Done()
	require.False(env.t, l.Send(Close{}), "the loop has ended")
	for len(env.parked) > 0 {
		(<-env.parked).Close()
	}
}

func TestLoopAcquiresAndReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newTestEnvironment(t)
		l := env.start()
		s := env.acquired(l)
		q := query{CheckOwned{Hold: 2, Call: 3}, make(chan State, 1)}
		l.Send(q)
		require.Equal(t, Held, <-q.state)
		require.Equal(t, OwnedAnswer{Call: 3}, nextEffect[OwnedAnswer](env))

		// A ping that arrives byte by byte, and junk after it.
		ping := ">3 $7 message $1 C $24 {\"response_channel\":\"X\"} >3 $7 message $1 C $4 junk "
		for i := range ping {
			s.reply(ping[i : i+1])
		}
		s.expect(`PUBLISH X {"holder_id":"a","mode":"exclusive","protocol":1,"elected":false}`)
		s.reply(":1 ")

		l.Send(Release{Hold: 1})
		require.NoError(t, nextEffect[End](env).Loss)
		s.expect("UNSUBSCRIBE C")
		s.reply(unsubscribed)
		require.NoError(t, nextEffect[Released](env).Err)

		// An acquire soon after it uses the same socket.
		l.Send(Acquire{Call: 2})
		s.expect("SUBSCRIBE C", "PUBSUB NUMSUB C", "HELLO 3 SETNAME C-lock-a")
		s.reply(subscribed, countOfOne, master)
		nextEffect[Grant](env)
		l.Send(Release{Hold: 2})
		s.expect("UNSUBSCRIBE C")
		s.reply(unsubscribed)
		nextEffect[End](env)
		nextEffect[Released](env)

		// The socket of an idle lock is parked after a delay.
		began := time.Now()
		parked := <-env.parked
		require.Equal(t, parkDelay, time.Since(began))
		parked.Close()
		env.close(l)
	})
}

func TestLoopChecksHealth(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		lost   string
	}{
		"no answer":         {"", "no answer in time"},
		"demoted":           {replica, "no master"},
		"an error":          {"-ERR ", "HELLO"},
		"nonsense":          {":1 ", "unexpected kind"},
		"unsolicited reply": {master + ":2 ", "nobody asked for"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := newTestEnvironment(t)
				l := env.start()
				s := env.acquired(l)
				began := time.Now()
				s.expect("HELLO 3")
				require.Equal(t, 10*time.Second, time.Since(began))
				s.reply(master)
				s.expect("HELLO 3")
				require.Equal(t, 20*time.Second, time.Since(began))
				if c.answer != "" {
					s.reply(c.answer)
				}
				require.ErrorContains(t, nextEffect[End](env).Loss, c.lost)
				if c.answer == "" {
					require.Equal(t, 25*time.Second, time.Since(began))
				}
				_, open := <-s.commands
				require.False(t, open, "the socket is closed")
				env.close(l)
			})
		})
	}
}

func TestLoopReportsSocketError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newTestEnvironment(t)
		l := env.start()
		s := env.acquired(l)
		began := time.Now()
		require.NoError(t, s.conn.Close())
		require.ErrorIs(t, nextEffect[End](env).Loss, io.EOF)
		require.Zero(t, time.Since(began))
		require.Empty(t, env.dials, "a lost socket is not replaced")
		env.close(l)
	})
}

// The server does not read. A blocked write must not block the lock: a cancelled
// call has its answer.
func TestLoopBoundsWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newTestEnvironment(t)
		l := env.start()
		require.True(t, l.Send(Acquire{Call: 1}))
		<-env.dials
		here, there := net.Pipe()
		env.sockets <- here
		began := time.Now()
		synctest.Wait() // until the write blocks
		l.Send(Cancel{Call: 1, Cause: context.Canceled})
		r := nextEffect[Refuse](env)
		require.LessOrEqual(t, time.Since(began), 600*time.Millisecond)
		require.ErrorIs(t, r.Refusal.Cause, context.Canceled)
		require.NoError(t, there.Close())
		env.close(l)
	})
}

func TestLoopClosesLateDials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newTestEnvironment(t)
		env.ignoreContext = true
		l := env.start()
		l.Send(Acquire{Call: 1})
		<-env.dials
		began := time.Now()
		l.Send(Cancel{Call: 1, Cause: context.Canceled})
		nextEffect[Refuse](env)
		require.Zero(t, time.Since(began), "a cancelled call does not wait for its dial")

		// The first dial succeeds when another one has begun.
		l.Send(Acquire{Call: 2})
		<-env.dials
		for range 2 {
			here, there := net.Pipe()
			env.sockets <- here
			synctest.Wait()
			_ = there.SetReadDeadline(time.Now().Add(time.Second))
			_, err := there.Read(make([]byte, 1))
			if errors.Is(err, io.EOF) {
				continue // of the first dial
			}
			require.NoError(t, err, "the connection of the second dial logs in")
			require.NoError(t, there.Close())
		}
		env.close(l)
		// A dial that ends after the loop closes its connection, too.
		for len(env.dials) > 0 {
			<-env.dials
			here, there := net.Pipe()
			env.sockets <- here
			_, err := there.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
		}
	})
}

func TestLoopReportsMasterChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newTestEnvironment(t)
		l := env.start()
		env.acquired(l)
		moved := errors.New("moved")
		(<-env.masterMoved) <- moved
		require.ErrorIs(t, nextEffect[End](env).Loss, moved)
		env.close(l)
	})
}

func TestLoopEndsWhenUnreferenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newTestEnvironment(t)
		l := env.start()
		l.Send(Unreferenced{})
		<-l.Done()
		require.False(t, l.Send(Acquire{Call: 1}))
	})
}

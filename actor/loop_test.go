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

// server is the other end of a lock's connection, in the hands of a test. What
// the lock writes comes as words, one string per command.
type server struct {
	t        *testing.T
	conn     net.Conn
	commands chan string
}

// expect takes the next commands.
func (s *server) expect(commands ...string) {
	s.t.Helper()
	for _, want := range commands {
		got, open := <-s.commands
		require.True(s.t, open, "the socket is closed; wanted %s", want)
		require.Equal(s.t, want, got)
	}
}

// say sends frames as they stand, apart from line breaks.
func (s *server) say(frames ...string) {
	s.t.Helper()
	_, err := s.conn.Write([]byte(strings.ReplaceAll(strings.Join(frames, ""), " ", "\r\n")))
	require.NoError(s.t, err)
}

const (
	subscribed   = ">3 $9 subscribe $1 C :1 "
	unsubscribed = ">3 $11 unsubscribe $1 C :0 "
	alone        = "*2 $1 C :1 "
	master       = "%2 $4 role $6 master $4 mode $10 standalone "
	replica      = "%2 $4 role $7 replica $4 mode $10 standalone "
)

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

// world is the host of one lock: sockets that are pipes, and the effects that
// callers would see.
type world struct {
	t       *testing.T
	dials   chan struct{}     // a dial has begun
	sockets chan net.Conn     // what dials end up with
	deaf    bool              // dials do not look at their context
	effects chan Effect       // without events
	parked  chan *wire.Socket //
	moved   chan chan<- error // who watches the master
	ids     string            // of the next sockets, a letter each
}

func newWorld(t *testing.T) *world {
	return &world{
		t: t, dials: make(chan struct{}, 16), sockets: make(chan net.Conn), effects: make(chan Effect, 64),
		parked: make(chan *wire.Socket, 16), moved: make(chan chan<- error, 16), ids: "abcdef",
	}
}

func (w *world) start() *Loop {
	l := NewLoop(Config{
		Channel: "C", Waiters: "WAIT", WakeChannel: func(id string) string { return "W" + id },
		Response: func() string { return "R" }, Jitter: func() float64 { return 0.5 },
		Health: 10 * time.Second, Reply: 5 * time.Second, Unavailable: time.Second, Poll: 100 * time.Millisecond,
	}, w)
	l.Start(nil, nil)
	return l
}

func (w *world) Idle() *wire.Socket { return nil }

func (w *world) DiscardIdle() {}

func (w *world) Dial(ctx context.Context) (*wire.Socket, error) {
	w.dials <- struct{}{}
	ended := ctx.Done()
	if w.deaf {
		ended = nil
	}
	select {
	case conn := <-w.sockets:
		id := w.ids[:1]
		w.ids = w.ids[1:]
		return wire.NewSocket(conn, id, wire.Login{}, nil), nil
	case <-ended:
		return nil, ctx.Err()
	}
}

func (w *world) Park(s *wire.Socket, _ bool)        { w.parked <- s }
func (w *world) Watch(_ string, moved chan<- error) { w.moved <- moved }
func (w *world) Unwatch(chan<- error)               {}
func (w *world) Ended()                             { close(w.effects) }

// query is a message to the host, which feeds the machine and tells the state.
type query struct {
	input Input
	state chan State
}

func (w *world) Handle(m any, s State, feed func(Input)) {
	q := m.(query)
	feed(q.input)
	q.state <- s
}

func (w *world) Perform(e Effect) Input {
	if _, event := e.(Notify); !event {
		w.effects <- e
	}
	return nil
}

// connect ends a dial with a new connection.
func (w *world) connect() *server {
	<-w.dials
	here, there := net.Pipe()
	s := &server{w.t, there, make(chan string, 64)}
	go s.read()
	w.sockets <- here
	return s
}

// effect takes the next effect, of a kind.
func effect[E Effect](w *world) E {
	w.t.Helper()
	e := <-w.effects
	of, ok := e.(E)
	require.True(w.t, ok, "%#v", e)
	return of
}

// held takes the lock.
func (w *world) held(l *Loop) *server {
	w.t.Helper()
	require.True(w.t, l.Send(Acquire{Call: 1}))
	s := w.connect()
	s.expect("HELLO 3 SETNAME C-lock-a", "SUBSCRIBE C", "PUBSUB NUMSUB C", "HELLO 3")
	s.say(master, subscribed, alone, master)
	require.Equal(w.t, "a", effect[Grant](w).ID)
	return s
}

// end closes the lock, whose goroutines must then be gone: the bubble waits
// for them.
func (w *world) end(l *Loop) {
	w.t.Helper()
	l.Send(Close{})
	for range w.effects {
	}
	<-l.Done()
	require.False(w.t, l.Send(Close{}), "it has ended")
	for len(w.parked) > 0 {
		(<-w.parked).Close()
	}
}

func TestLoopTakesHoldsAndReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l := w.start()
		s := w.held(l)
		q := query{CheckOwned{Hold: 2, Call: 3}, make(chan State, 1)}
		l.Send(q)
		require.Equal(t, Held, <-q.state)
		require.Equal(t, OwnedAnswer{Call: 3}, effect[OwnedAnswer](w))

		// A ping, byte by byte, and what is junk beside it.
		ping := ">3 $7 message $1 C $24 {\"response_channel\":\"X\"} >3 $7 message $1 C $4 junk "
		for i := range ping {
			s.say(ping[i : i+1])
		}
		s.expect(`PUBLISH X {"holder_id":"a","mode":"exclusive","protocol":1,"elected":false}`)
		s.say(":1 ")

		l.Send(Release{Hold: 1})
		require.NoError(t, effect[End](w).Loss)
		s.expect("UNSUBSCRIBE C")
		s.say(unsubscribed)
		require.NoError(t, effect[Released](w).Err)

		// The next one within a moment finds the socket.
		l.Send(Acquire{Call: 2})
		s.expect("SUBSCRIBE C", "PUBSUB NUMSUB C", "HELLO 3 SETNAME C-lock-a")
		s.say(subscribed, alone, master)
		effect[Grant](w)
		l.Send(Release{Hold: 2})
		s.expect("UNSUBSCRIBE C")
		s.say(unsubscribed)
		effect[End](w)
		effect[Released](w)

		// Left idle, it is put away.
		began := time.Now()
		parked := <-w.parked
		require.Equal(t, parkDelay, time.Since(began))
		parked.Close()
		w.end(l)
	})
}

func TestLoopChecksTheHealth(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		lost   string
	}{
		"no answer": {"", "no answer in time"},
		"demoted":   {replica, "no master"},
		"an error":  {"-ERR ", "HELLO"},
		"nonsense":  {":1 ", "unexpected kind"},
		"unasked":   {master + ":2 ", "nobody asked for"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				l := w.start()
				s := w.held(l)
				began := time.Now()
				s.expect("HELLO 3")
				require.Equal(t, 10*time.Second, time.Since(began))
				s.say(master)
				s.expect("HELLO 3")
				require.Equal(t, 20*time.Second, time.Since(began))
				if c.answer != "" {
					s.say(c.answer)
				}
				require.ErrorContains(t, effect[End](w).Loss, c.lost)
				if c.answer == "" {
					require.Equal(t, 25*time.Second, time.Since(began))
				}
				_, open := <-s.commands
				require.False(t, open, "the socket is closed")
				w.end(l)
			})
		})
	}
}

func TestLoopTellsTheSocketsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l := w.start()
		s := w.held(l)
		began := time.Now()
		require.NoError(t, s.conn.Close())
		require.ErrorIs(t, effect[End](w).Loss, io.EOF)
		require.Zero(t, time.Since(began))
		require.Empty(t, w.dials, "nothing takes its place")
		w.end(l)
	})
}

// A peer that does not read: the write must not hold the lock for ever, and
// its owner is told.
func TestLoopDoesNotWriteForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l := w.start()
		require.True(t, l.Send(Acquire{Call: 1}))
		<-w.dials
		here, there := net.Pipe()
		w.sockets <- here
		began := time.Now()
		synctest.Wait() // it is writing
		l.Send(Cancel{Call: 1, Cause: context.Canceled})
		r := effect[Refuse](w)
		require.LessOrEqual(t, time.Since(began), 600*time.Millisecond)
		require.ErrorIs(t, r.Refusal.Cause, context.Canceled)
		require.NoError(t, there.Close())
		w.end(l)
	})
}

func TestLoopClosesWhatArrivesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.deaf = true
		l := w.start()
		l.Send(Acquire{Call: 1})
		<-w.dials
		began := time.Now()
		l.Send(Cancel{Call: 1, Cause: context.Canceled})
		effect[Refuse](w)
		require.Zero(t, time.Since(began), "a dial that goes on holds nobody up")

		// Another dial has begun when the first one succeeds.
		l.Send(Acquire{Call: 2})
		<-w.dials
		for range 2 {
			here, there := net.Pipe()
			w.sockets <- here
			synctest.Wait()
			_ = there.SetReadDeadline(time.Now().Add(time.Second))
			_, err := there.Read(make([]byte, 1))
			if errors.Is(err, io.EOF) {
				continue // the late one
			}
			require.NoError(t, err, "the one that is awaited logs in")
			require.NoError(t, there.Close())
		}
		w.end(l)
		// One that is still out finds that nobody waits.
		for len(w.dials) > 0 {
			<-w.dials
			here, there := net.Pipe()
			w.sockets <- here
			_, err := there.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
		}
	})
}

func TestLoopFollowsTheMaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l := w.start()
		w.held(l)
		moved := errors.New("moved")
		(<-w.moved) <- moved
		require.ErrorIs(t, effect[End](w).Loss, moved)
		w.end(l)
	})
}

func TestLoopEndsWhenNobodyIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l := w.start()
		l.Send(Unreferenced{})
		<-l.Done()
		require.False(t, l.Send(Acquire{Call: 1}))
	})
}

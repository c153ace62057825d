// Package tethertest is a Redis in the process of a test, for code that uses
// tether: no server to install, connections that can be cut or frozen, and
// virtual time under testing/synctest.
//
//	func TestWorker(t *testing.T) {
//		s := tethertest.NewServer(t)
//		rdb := redis.NewClient(s.Options())
//		…
//		s.KillSubscribers("jobs") // the holder of the lock "jobs" loses it
//	}
//
// It speaks RESP2 and RESP3 and what tether and portalocker need: HELLO, AUTH,
// SELECT, PING, CLIENT, the subscribe family, PUBLISH, PUBSUB, ROLE, and from
// miniredis the commands of keys and scripts. Other clients see a Redis 7.0
// without ACLs, persistence and replication. Not supported are commands that
// block, and inside MULTI those that are not about keys and scripts. Some errors
// of rare commands, and of scripts that don't compile, are worded differently;
// their codes are the same.
//
// It is more lenient than Redis in that CLIENT SETINFO, which is younger than
// 7.0, is accepted, and that a server with the role of a replica still takes
// writes. A wrong number of arguments is found last: a connection that may not
// run the command, or has to wait for it, is told that instead. Lua's numbers of
// more than fourteen digits become text whole, where Redis's 1700000000000001 is
// "1.7e+15": a script that works with both has string.format. There are no inline
// commands, no sharded channels, and no CONFIG, ACL, CLIENT UNBLOCK or CLIENT
// REPLY.
package tethertest

import (
	"context"
	"net"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Server is one in-process server. It is safe for concurrent use.
type Server struct {
	inbox    chan any
	done     chan struct{}
	listener net.Listener // nil in memory
	running  *sync.WaitGroup
}

// Option configures a [Server].
type Option func(*config)

type config struct {
	user, password string
}

// WithPassword demands a login. The user is "default" if it is empty.
func WithPassword(user, password string) Option {
	return func(c *config) {
		c.user, c.password = user, password
		if user == "" {
			c.user = "default"
		}
	}
}

// TB is what NewServer needs of a [testing.TB].
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// NewServer starts a server on a free loopback port and closes it with the
// test.
func NewServer(t TB, opts ...Option) *Server {
	t.Helper()
	s, err := Start("127.0.0.1:0", opts...)
	if err != nil {
		t.Fatalf("tethertest: %v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// Start starts a server at a TCP address, such as "127.0.0.1:0" for a free
// port. With an empty address it is in memory: only [Server.Dial] and the
// clients of [Server.Options] reach it, nothing of it waits for the network,
// and time may be virtual. Close it when it is no longer needed.
func Start(addr string, opts ...Option) (*Server, error) {
	var c config
	for _, opt := range opts {
		opt(&c)
	}
	e, err := newEngine(c)
	if err != nil {
		return nil, err
	}
	s := &Server{inbox: e.inbox, done: e.done, running: e.running}
	if addr != "" {
		if s.listener, err = net.Listen("tcp", addr); err != nil {
			e.keys.Close()
			return nil, err
		}
		s.running.Go(s.accept)
	}
	s.running.Go(e.run)
	return s, nil
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.serve(conn)
	}
}

// serve hands a connection to the engine, or closes it.
func (s *Server) serve(conn net.Conn) {
	if !s.send(connected{conn}) {
		_ = conn.Close() // the server is closed, and so is this
	}
}

func (s *Server) send(m any) bool {
	select {
	case s.inbox <- m:
		return true
	case <-s.done:
		return false
	}
}

// Addr returns the host and port, and "memory" for a server in memory.
func (s *Server) Addr() string {
	if s.listener == nil {
		return "memory"
	}
	return s.listener.Addr().String()
}

// URL returns the address as redis.ParseURL takes it.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Dial returns a new connection in memory, a [net.Pipe], whatever address the
// server has.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	here, there := net.Pipe()
	if !s.send(connected{there}) {
		return nil, net.ErrClosed
	}
	return here, nil
}

// Options returns options of a client whose connections are made by
// [Server.Dial]. The login, if one is needed, is for the caller to fill in.
func (s *Server) Options() *redis.Options {
	return &redis.Options{
		Addr:   s.Addr(),
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx) },
	}
}

// KillSubscribers cuts all connections that are subscribed to a channel, and
// returns how many there were. A holder of the lock of that name loses it.
func (s *Server) KillSubscribers(channel string) int {
	return ask[int](s, func(reply chan<- int) any { return killSubscribers{channel, reply} })
}

// Subscribers returns how many connections are subscribed to a channel: who
// holds the lock of that name, and who is about to.
func (s *Server) Subscribers(channel string) int {
	return ask[int](s, func(reply chan<- int) any { return countSubscribers{channel, reply} })
}

// Freeze stops the server without ending a connection, like a link that is
// half-open: it accepts connections and what they write, but nothing is
// answered, delivered or noticed until [Server.Thaw]. The functions of Server
// itself work as before.
func (s *Server) Freeze() { s.send(freeze{true}) }

// Thaw lets a frozen server go on with what has come meanwhile.
func (s *Server) Thaw() { s.send(freeze{false}) }

// SetRole sets the role that the server tells: "master", which it is from the
// beginning, or "replica". Holds on a server that is demoted are lost with their
// next health check. Otherwise it goes on as before.
func (s *Server) SetRole(role string) { s.send(setRole{role}) }

// Close closes all connections and waits until everything has ended.
func (s *Server) Close() {
	if s.listener != nil {
		_ = s.listener.Close() // again, perhaps
	}
	s.send(stop{})
	s.running.Wait()
}

// ask sends a message with a way for the answer, and waits for that. A closed
// server answers with zero.
func ask[T any](s *Server, message func(reply chan<- T) any) T {
	reply := make(chan T, 1)
	if !s.send(message(reply)) {
		var none T
		return none
	}
	return <-reply
}

// Package tethertest provides an in-process Redis server for tests of code that
// uses tether. No Redis has to be installed, a test can cut connections and
// freeze the server, and time can be virtual (testing/synctest).
//
//	func TestWorker(t *testing.T) {
//		s := tethertest.NewServer(t)
//		rdb := redis.NewClient(s.Options())
//		…
//		s.KillSubscribers("jobs") // the holder of the lock "jobs" loses it
//	}
//
// The server speaks RESP2 and RESP3. It has the commands that tether and
// portalocker need: HELLO, AUTH, SELECT, PING, CLIENT, the subscribe commands,
// PUBLISH, PUBSUB and ROLE. The commands for keys and scripts are those of
// miniredis. To other clients it looks like a Redis 7.0 without ACLs, persistence
// and replication.
//
// It differs from Redis 7.0 in these points:
//
//   - Commands that block are not supported. Inside MULTI only commands for keys
//     and scripts are supported.
//   - There are no inline commands, no sharded channels, and no CONFIG, ACL,
//     CLIENT UNBLOCK or CLIENT REPLY.
//   - Some errors of rare commands, and of scripts that do not compile, have
//     another text, but the same code.
//   - CLIENT SETINFO, which is newer than 7.0, is accepted.
//   - A server with the role of a replica accepts writes.
//   - A wrong number of arguments is checked last. If the connection must not run
//     the command, or a pause postpones it, that comes first.
//   - In Lua, numbers of more than fourteen digits are converted to text exactly.
//     Redis converts 1700000000000001 to "1.7e+15". Use string.format in scripts
//     that must work with both.
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
	listener net.Listener // nil for a server in memory
	running  *sync.WaitGroup
}

// Option configures a [Server].
type Option func(*config)

type config struct {
	user, password string
}

// WithPassword makes the server require a login. An empty user means "default".
func WithPassword(user, password string) Option {
	return func(c *config) {
		c.user, c.password = user, password
		if user == "" {
			c.user = "default"
		}
	}
}

// TB is the part of [testing.TB] that [NewServer] uses.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// NewServer starts a server on a free loopback port, and closes it at the end of
// the test. If it cannot start, the test fails.
func NewServer(t TB, opts ...Option) *Server {
	t.Helper()
	s, err := Start("127.0.0.1:0", opts...)
	if err != nil {
		t.Fatalf("tethertest: %v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// Start starts a server at a TCP address, such as "127.0.0.1:0" for a free port.
// The error is that of listening there.
//
// With an empty address the server is in memory: it can be reached only with
// [Server.Dial], which the clients of [Server.Options] use. No goroutine of it
// waits for the network, so it can be used under testing/synctest.
//
// The caller must close the server.
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

// serve passes a connection to the engine, or closes it if the server is closed.
func (s *Server) serve(conn net.Conn) {
	if !s.send(connected{conn}) {
		_ = conn.Close()
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

// Addr returns the host and port, or "memory" for a server in memory.
func (s *Server) Addr() string {
	if s.listener == nil {
		return "memory"
	}
	return s.listener.Addr().String()
}

// URL returns the address in the form that redis.ParseURL accepts. For a server
// in memory it is of no use.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Dial returns a new in-memory connection to the server, a [net.Pipe], even if
// the server has a TCP address. It does not wait for a frozen server. If ctx has
// ended it returns the error of ctx, and if the server is closed
// [net.ErrClosed].
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

// Options returns options for a client that connects with [Server.Dial]. They are
// new for each call, and may be changed. With [WithPassword] the caller must set
// Username and Password.
func (s *Server) Options() *redis.Options {
	return &redis.Options{
		Addr:   s.Addr(),
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx) },
	}
}

// KillSubscribers closes all connections that are subscribed to a channel, and
// returns their number. A holder of the lock with that name loses it.
func (s *Server) KillSubscribers(channel string) int {
	return request[int](s, func(reply chan<- int) any { return killSubscribers{channel, reply} })
}

// Subscribers returns the number of connections that are subscribed to a channel.
// For the name of a lock these are its participants: the holders, and contenders
// in the middle of an attempt.
func (s *Server) Subscribers(channel string) int {
	return request[int](s, func(reply chan<- int) any { return countSubscribers{channel, reply} })
}

// Freeze stops the server without closing connections, like a half-open link. It
// still accepts connections and reads what they send, but runs no command,
// delivers no message, and does not notice that a connection has ended, until
// [Server.Thaw]. The methods of Server work as usual.
func (s *Server) Freeze() { s.send(freeze{true}) }

// Thaw ends [Server.Freeze]. The server handles what has arrived meanwhile, in
// order.
func (s *Server) Thaw() { s.send(freeze{false}) }

// SetRole sets the role that HELLO and ROLE report: "master", the default, or
// "replica". After a change to "replica", holds are lost at their next health
// check. The server does not change its behaviour otherwise.
func (s *Server) SetRole(role string) { s.send(setRole{role}) }

// Close closes the listener and all connections, and waits until all goroutines
// have ended. It may be called more than once.
func (s *Server) Close() {
	if s.listener != nil {
		_ = s.listener.Close() // may be closed already
	}
	s.send(stop{})
	s.running.Wait()
}

// request sends the engine a message with a reply channel, and waits for the
// reply. If the server is closed it returns the zero value.
func request[T any](s *Server, message func(reply chan<- T) any) T {
	reply := make(chan T, 1)
	if !s.send(message(reply)) {
		var none T
		return none
	}
	return <-reply
}

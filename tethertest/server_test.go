package tethertest_test

import (
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/tethertest"
	"github.com/tetherlock/tether/wire"
)

// peer is a connection to a server, and its reader.
type peer struct {
	net.Conn
	*wire.Reader
}

func (p *peer) Read() (wire.Value, error) { return p.Reader.Read() }

// dial returns an in-memory connection to a server. It sends nothing, so it works
// with a frozen server, too.
func dial(t *testing.T, s *tethertest.Server) *peer {
	t.Helper()
	conn, err := s.Dial(t.Context())
	require.NoError(t, err)
	return &peer{conn, wire.NewReader(conn)}
}

func (p *peer) ask(t *testing.T, args ...string) wire.Value {
	t.Helper()
	_, err := p.Write(wire.AppendCommand(nil, args...))
	require.NoError(t, err)
	v, err := p.Read()
	require.NoError(t, err)
	return v
}

func (p *peer) requireClosed(t *testing.T) {
	t.Helper()
	_, err := p.Read()
	require.ErrorIs(t, err, io.EOF)
}

// push returns the confirmation of a first subscription in RESP2.
func push(kind, channel string) wire.Value {
	return wire.Value{Kind: wire.Array, Elems: []wire.Value{
		{Kind: wire.BulkString, Str: kind}, {Kind: wire.BulkString, Str: channel}, {Kind: wire.Integer, Int: 1},
	}}
}

func TestKillSubscribers(t *testing.T) {
	s := tethertest.NewServer(t)
	a, b, other := dial(t, s), dial(t, s), dial(t, s)
	for _, c := range []*peer{a, b} {
		require.Equal(t, push("subscribe", "c"), c.ask(t, "SUBSCRIBE", "c"))
	}
	require.Equal(t, push("subscribe", "d"), other.ask(t, "SUBSCRIBE", "d"))
	require.Equal(t, 2, s.Subscribers("c"))
	require.Equal(t, 2, s.KillSubscribers("c"))
	require.Equal(t, 0, s.Subscribers("c"))
	require.Equal(t, 0, s.KillSubscribers("c"))
	a.requireClosed(t)
	b.requireClosed(t)
	require.Equal(t, "pong", other.ask(t, "PING").Elems[0].Str)
}

func TestSetRole(t *testing.T) {
	s := tethertest.NewServer(t)
	c := dial(t, s)
	role := func() (string, string) {
		v, ok := c.ask(t, "HELLO", "3").Lookup("role")
		require.True(t, ok)
		return v.Str, c.ask(t, "ROLE").Elems[0].Str
	}
	for _, want := range [][2]string{{"master", "master"}, {"replica", "slave"}, {"master", "master"}} {
		s.SetRole(want[0])
		hello, info := role()
		require.Equal(t, want, [2]string{hello, info})
	}
}

func TestClose(t *testing.T) {
	s, err := tethertest.Start("127.0.0.1:0")
	require.NoError(t, err)
	piped := dial(t, s)
	tcp, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	defer tcp.Close()
	_, err = tcp.Write(wire.AppendCommand(nil, "PING"))
	require.NoError(t, err)
	_, err = io.ReadFull(tcp, make([]byte, len("+PONG\r\n")))
	require.NoError(t, err)

	s.Close()
	piped.requireClosed(t)
	_, err = tcp.Read(make([]byte, 1))
	require.Error(t, err)
	_, err = net.Dial("tcp", s.Addr())
	require.Error(t, err)
	_, err = s.Dial(t.Context())
	require.ErrorIs(t, err, net.ErrClosed)
	require.Zero(t, s.Subscribers("c"))
	require.Zero(t, s.KillSubscribers("c"))
	s.Freeze()
	s.Thaw()
	s.SetRole("replica")
	s.Close()
}

func TestAddresses(t *testing.T) {
	s := tethertest.NewServer(t)
	require.Equal(t, "redis://"+s.Addr(), s.URL())
	_, err := tethertest.Start(s.Addr())
	require.Error(t, err, "the port is taken")

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Dial(ended)
	require.ErrorIs(t, err, context.Canceled)

	c := dial(t, s)
	id := strconv.FormatInt(c.ask(t, "CLIENT", "ID").Int, 10)
	require.Contains(t, c.ask(t, "CLIENT", "INFO").Str, " addr=pipe:"+id+" ")
}

// A subscriber that does not read does not block others. With too many unsent
// messages its connection is closed.
func TestSlowSubscriber(t *testing.T) {
	s := tethertest.NewServer(t)
	slow, publisher := dial(t, s), dial(t, s)
	require.Equal(t, push("subscribe", "c"), slow.ask(t, "SUBSCRIBE", "c"))
	megabyte := strings.Repeat("x", 1<<20)
	sent := 0
	for publisher.ask(t, "PUBLISH", "c", megabyte).Int == 1 {
		sent++
		require.Less(t, sent, 200)
	}
	require.Greater(t, sent, 30)
	require.Equal(t, 0, s.Subscribers("c"))
}

// If a subscriber's connection is closed while a script publishes, the server goes
// on sending to it without blocking.
func TestSlowSubscriberInABurst(t *testing.T) {
	s := tethertest.NewServer(t)
	slow, publisher := dial(t, s), dial(t, s)
	require.Equal(t, push("subscribe", "c"), slow.ask(t, "SUBSCRIBE", "c"))
	script := "local x = string.rep('x', 1048576) for i = 1, 80 do redis.call('PUBLISH', 'c', x) end return 'done'"
	require.NoError(t, publisher.SetDeadline(time.Now().Add(replyTimeout)))
	require.Equal(t, "done", publisher.ask(t, "EVAL", script, "0").Str)
	require.Equal(t, "PONG", publisher.ask(t, "PING").Str)
}

// Malformed input ends its connection, and no other.
func TestBrokenStream(t *testing.T) {
	s := tethertest.NewServer(t)
	other := dial(t, s)
	for name, input := range map[string]string{
		"a number":       ":1\r\n",
		"a number in it": "*2\r\n$3\r\nGET\r\n:1\r\n",
		"junk":           "GET / HTTP/1.1\r\n\r\n",
		"a bad length":   "*1\r\n$x\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, s)
			go func() { _, _ = c.Write([]byte(input)) }()
			for {
				v, err := c.Read()
				if err != nil {
					require.ErrorIs(t, err, io.EOF)
					break
				}
				require.Contains(t, v.Str, "ERR Protocol error")
			}
			require.Equal(t, "PONG", other.ask(t, "PING").Str)
		})
	}
	for _, nothing := range []string{"*0\r\n", "*-1\r\n"} {
		_, err := other.Write([]byte(nothing))
		require.NoError(t, err)
		require.Equal(t, "PONG", other.ask(t, "PING").Str)
	}
}

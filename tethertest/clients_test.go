package tethertest_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/tethertest"
	"github.com/tetherlock/tether/wire"
)

// onTargets runs a test with the in-process server, in memory and over TCP, and
// with a real Redis.
func onTargets(t *testing.T, test func(t *testing.T, dial func() *peer)) {
	for _, to := range []target{inMemory, overTCP, realRedis} {
		t.Run(to.name, func(t *testing.T) {
			connect := to.dial(t, false)
			test(t, func() *peer {
				conn, err := connect()
				require.NoError(t, err)
				t.Cleanup(func() { _ = conn.Close() })
				require.NoError(t, conn.SetDeadline(time.Now().Add(replyTimeout)))
				return &peer{conn, wire.NewReader(conn)}
			})
		})
	}
}

// fields parses the only line of a reply to CLIENT LIST.
func fields(t *testing.T, list wire.Value) (names []string, values map[string]string) {
	t.Helper()
	line, ended := strings.CutSuffix(list.Str, "\n")
	require.True(t, ended)
	values = map[string]string{}
	for field := range strings.SplitSeq(line, " ") {
		name, value, found := strings.Cut(field, "=")
		require.True(t, found, line)
		names = append(names, name)
		values[name] = value
	}
	return names, values
}

// CLIENT LIST has all fields of Redis 7.0, in the same order.
func TestClientFields(t *testing.T) {
	onTargets(t, func(t *testing.T, dial func() *peer) {
		c := dial()
		id := c.ask(t, "CLIENT", "ID")
		names, values := fields(t, c.ask(t, "CLIENT", "LIST", "ID", id.Text()))
		require.Equal(t, strings.Fields("id addr laddr fd name age idle flags db sub psub ssub multi qbuf qbuf-free argv-mem multi-mem "+
			"rbs rbp obl oll omem tot-mem events cmd user redir resp"), names)
		require.Equal(t, id.Text(), values["id"])
		for name, want := range map[string]string{
			"name": "", "age": "0", "idle": "0", "flags": "N", "db": "0", "sub": "0", "psub": "0", "ssub": "0", "multi": "-1",
			"events": "r", "cmd": "client|list", "user": "default", "redir": "-1", "resp": "2",
		} {
			require.Equal(t, want, values[name], name)
		}
		for _, name := range []string{"addr", "laddr"} {
			_, _, err := net.SplitHostPort(values[name])
			require.NoError(t, err)
		}
	})
}

// CLIENT LIST shows a transaction in flags and multi, also for a subscriber.
func TestClientInTransaction(t *testing.T) {
	onTargets(t, func(t *testing.T, dial func() *peer) {
		c, other := dial(), dial()
		id := c.ask(t, "CLIENT", "ID")
		c.ask(t, "HELLO", "3")
		c.ask(t, "SUBSCRIBE", "c")
		for _, want := range []struct{ command, flags, multi string }{
			{"PING", "P", "-1"}, {"MULTI", "Px", "0"}, {"GET k", "Px", "1"}, {"SET k v", "Px", "2"}, {"EXEC", "P", "-1"},
			{"MULTI", "Px", "0"}, {"GET k", "Px", "1"}, {"DISCARD", "P", "-1"}, {"MULTI", "Px", "0"}, {"RESET", "N", "-1"},
		} {
			c.ask(t, strings.Fields(want.command)...)
			_, values := fields(t, other.ask(t, "CLIENT", "LIST", "ID", id.Text()))
			require.Equal(t, [2]string{want.flags, want.multi}, [2]string{values["flags"], values["multi"]}, want.command)
		}
	})
}

// A command and a message both end the idle time.
func TestVirtualAge(t *testing.T) {
	withVirtualTime(t, func(t *testing.T, s *tethertest.Server) {
		c, other := dial(t, s), dial(t, s)
		defer c.Close()
		defer other.Close()
		id := c.ask(t, "CLIENT", "ID")
		require.Equal(t, push("subscribe", "c"), c.ask(t, "SUBSCRIBE", "c"))
		ages := func() [2]string {
			_, values := fields(t, other.ask(t, "CLIENT", "LIST", "ID", id.Text()))
			return [2]string{values["age"], values["idle"]}
		}
		<-time.After(90 * time.Second)
		require.Equal(t, [2]string{"90", "90"}, ages())
		require.Equal(t, int64(1), other.ask(t, "PUBLISH", "c", "x").Int)
		require.Equal(t, [2]string{"90", "0"}, ages())
		<-time.After(10 * time.Second)
		require.Equal(t, [2]string{"100", "10"}, ages())
		_, err := c.Read()
		require.NoError(t, err)
		c.ask(t, "PING")
		require.Equal(t, [2]string{"100", "0"}, ages())
	})
}

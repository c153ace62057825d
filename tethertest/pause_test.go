package tethertest_test

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/tethertest"
	"github.com/tetherlock/tether/wire"
)

func (p *peer) send(t *testing.T, args ...string) {
	t.Helper()
	_, err := p.Write(wire.AppendCommand(nil, args...))
	require.NoError(t, err)
}

// EXEC is postponed if a command of the transaction writes, even if the command was
// queued before the pause.
func TestPauseHoldsTheEndOfATransaction(t *testing.T) {
	onTargets(t, func(t *testing.T, dial func() *peer) {
		writer, reader, other := dial(), dial(), dial()
		id := writer.ask(t, "CLIENT", "ID")
		for _, c := range []*peer{writer, reader} {
			require.Equal(t, "OK", c.ask(t, "MULTI").Str)
			require.Equal(t, "QUEUED", c.ask(t, "GET", "k").Str)
		}
		require.Equal(t, "QUEUED", writer.ask(t, "SET", "k", "v").Str)
		require.Equal(t, "OK", other.ask(t, "CLIENT", "PAUSE", "100000", "WRITE").Str)
		writer.send(t, "EXEC")
		eventually(t, func() bool {
			_, values := fields(t, other.ask(t, "CLIENT", "LIST", "ID", id.Text()))
			return values["flags"] == "xb"
		})
		require.Len(t, reader.ask(t, "EXEC").Elems, 1)
		require.Equal(t, wire.Null, other.ask(t, "GET", "k").Kind)
		require.Equal(t, "OK", other.ask(t, "CLIENT", "UNPAUSE").Str)
		v, err := writer.Read()
		require.NoError(t, err)
		require.Len(t, v.Elems, 2)
		require.Equal(t, "v", other.ask(t, "GET", "k").Str)
	})
}

// A pause lasts as long as it says in virtual time. A second, shorter CLIENT PAUSE
// does not shorten it.
func TestVirtualPause(t *testing.T) {
	withVirtualTime(t, func(t *testing.T, s *tethertest.Server) {
		c, other := dial(t, s), dial(t, s)
		defer c.Close()
		defer other.Close()
		require.Equal(t, push("subscribe", "c"), c.ask(t, "SUBSCRIBE", "c"))
		for _, mode := range []string{"WRITE", "ALL"} {
			began := time.Now()
			request := wire.AppendCommand(nil, "CLIENT", "PAUSE", "60000", "WRITE")
			_, err := other.Write(wire.AppendCommand(request, "CLIENT", "PAUSE", "5000", mode))
			require.NoError(t, err)
			for range 2 {
				v, err := other.Read()
				require.NoError(t, err)
				require.Equal(t, "OK", v.Str)
			}
			require.Equal(t, int64(1), other.ask(t, "EVAL", "return redis.call('PUBLISH', 'c', 'x')", "0").Int)
			require.Equal(t, time.Minute, time.Since(began))
			v, err := c.Read()
			require.NoError(t, err)
			require.Equal(t, "x", v.Elems[2].Str)
		}
	})
}

// The mode ALL postpones every command, and none once the pause is over.
func TestVirtualPauseOfAll(t *testing.T) {
	withVirtualTime(t, func(t *testing.T, s *tethertest.Server) {
		c, other := dial(t, s), dial(t, s)
		defer c.Close()
		defer other.Close()
		require.Equal(t, "OK", other.ask(t, "CLIENT", "PAUSE", "1000").Str)
		began := time.Now()
		c.send(t, "SUBSCRIBE", "c")
		synctest.Wait()
		require.Equal(t, 0, s.Subscribers("c"))
		require.Equal(t, "OK", other.ask(t, "CLIENT", "UNPAUSE").Str, "UNPAUSE is postponed, too")
		require.Equal(t, time.Second, time.Since(began))
		v, err := c.Read()
		require.NoError(t, err)
		require.Equal(t, push("subscribe", "c"), v)
		require.Equal(t, int64(1), other.ask(t, "PUBLISH", "c", "x").Int)
		require.Equal(t, time.Second, time.Since(began))
	})
}

// The mode ALL ends with its pause, even if no command was postponed.
func TestVirtualPauseOfAllIsOver(t *testing.T) {
	withVirtualTime(t, func(t *testing.T, s *tethertest.Server) {
		c := dial(t, s)
		defer c.Close()
		require.Equal(t, "OK", c.ask(t, "CLIENT", "PAUSE", "1000").Str)
		<-time.After(2 * time.Second)
		began := time.Now()
		require.Equal(t, "OK", c.ask(t, "CLIENT", "PAUSE", "1000", "WRITE").Str)
		require.Equal(t, "PONG", c.ask(t, "PING").Str)
		require.Zero(t, time.Since(began))
		require.Equal(t, "OK", c.ask(t, "CLIENT", "UNPAUSE").Str)
		require.Equal(t, "OK", c.ask(t, "SET", "k", "v").Str)
		require.Zero(t, time.Since(began))
	})
}

// A postponed command may start another pause, which postpones the commands after
// it again.
func TestVirtualPauseBehindAPause(t *testing.T) {
	withVirtualTime(t, func(t *testing.T, s *tethertest.Server) {
		c, other := dial(t, s), dial(t, s)
		defer c.Close()
		defer other.Close()
		began := time.Now()
		require.Equal(t, "OK", other.ask(t, "CLIENT", "PAUSE", "1000").Str)
		request := wire.AppendCommand(nil, "CLIENT", "PAUSE", "1000")
		_, err := c.Write(wire.AppendCommand(request, "PING"))
		require.NoError(t, err)
		for i, want := range []string{"OK", "PONG"} {
			v, err := c.Read()
			require.NoError(t, err)
			require.Equal(t, want, v.Str)
			require.Equal(t, time.Duration(i+1)*time.Second, time.Since(began))
		}
	})
}

// If a pause ends while the server is frozen, the postponed commands run after the
// thaw. A server can be closed while commands are postponed.
func TestVirtualPauseAndFreeze(t *testing.T) {
	withVirtualTime(t, func(t *testing.T, s *tethertest.Server) {
		c, other := dial(t, s), dial(t, s)
		defer c.Close()
		defer other.Close()
		require.Equal(t, "OK", other.ask(t, "CLIENT", "PAUSE", "1000", "WRITE").Str)
		c.send(t, "SET", "k", "v")
		synctest.Wait()
		s.Freeze()
		for range 2 {
			require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
			_, err := c.Conn.Read(make([]byte, 1))
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			require.Equal(t, 0, s.Subscribers("c"), "this call does not end the freeze")
		}
		require.NoError(t, c.SetReadDeadline(time.Time{}))
		s.Thaw()
		v, err := c.Read()
		require.NoError(t, err)
		require.Equal(t, "OK", v.Str)

		require.Equal(t, "OK", other.ask(t, "CLIENT", "PAUSE", "1000", "WRITE").Str)
		c.send(t, "SET", "k", "w")
		synctest.Wait()
		s.Close()
		c.requireClosed(t)
	})
}

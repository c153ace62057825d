package tethertest_test

import (
	"context"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/tethertest"
	"github.com/tetherlock/tether/wire"
)

// onNetworks runs a test in memory and over TCP. Against a connection that
// nobody reads, they differ: the kernel buffers, a pipe does not.
func onNetworks(t *testing.T, test func(t *testing.T, s *tethertest.Server, dial func() net.Conn)) {
	t.Run("memory", func(t *testing.T) {
		s := tethertest.NewServer(t)
		test(t, s, func() net.Conn {
			conn, err := s.Dial(context.Background())
			require.NoError(t, err)
			t.Cleanup(func() { _ = conn.Close() })
			return conn
		})
	})
	t.Run("tcp", func(t *testing.T) {
		s := tethertest.NewServer(t)
		test(t, s, func() net.Conn {
			conn, err := net.Dial("tcp", s.Addr())
			require.NoError(t, err)
			t.Cleanup(func() { _ = conn.Close() })
			return conn
		})
	})
}

// writeOnly writes commands, and nobody reads the replies.
func writeOnly(t *testing.T, conn net.Conn, args ...string) {
	t.Helper()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err := conn.Write(wire.AppendCommand(nil, args...))
	require.NoError(t, err)
}

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !condition(); <-time.After(time.Millisecond) {
		require.True(t, time.Now().Before(limit), "it does not come true")
	}
}

// The requests of one who never reads the replies hold up nobody either.
func TestClientThatOnlyAsks(t *testing.T) {
	onNetworks(t, func(t *testing.T, s *tethertest.Server, dial func() net.Conn) {
		mute := dial()
		rdb := redis.NewClient(s.Options())
		defer func() { require.NoError(t, rdb.Close()) }()
		for range 1000 {
			writeOnly(t, mute, "PING", strings.Repeat("x", 1000))
		}
		require.NoError(t, rdb.Ping(t.Context()).Err())
	})
}

func TestCloseWithClients(t *testing.T) {
	onNetworks(t, func(t *testing.T, s *tethertest.Server, dial func() net.Conn) {
		silent, subscribed, deaf, half := dial(), dial(), dial(), dial()
		for _, conn := range []net.Conn{silent, half} {
			require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
		}
		writeOnly(t, subscribed, "SUBSCRIBE", "c")
		writeOnly(t, deaf, "SUBSCRIBE", "c")
		eventually(t, func() bool { return s.Subscribers("c") == 2 })
		rdb := redis.NewClient(s.Options())
		defer func() { require.NoError(t, rdb.Close()) }()
		for range 10 {
			require.NoError(t, rdb.Publish(t.Context(), "c", strings.Repeat("x", 1<<20)).Err())
		}
		_, err := io.WriteString(half, "*2\r\n$4\r\nPI")
		require.NoError(t, err)

		closed := make(chan struct{})
		go func() {
			s.Close()
			close(closed)
		}()
		select {
		case <-closed:
		case <-time.After(patience):
			require.Fail(t, "Close does not return")
		}
		for _, conn := range []net.Conn{silent, subscribed, half} {
			_, err := io.Copy(io.Discard, conn)
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
		}
		require.Error(t, rdb.Ping(t.Context()).Err())
	})
}

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

// onMemoryAndTCP runs a test in memory and over TCP. They differ for a client that
// does not read: the kernel buffers replies, a pipe does not.
func onMemoryAndTCP(t *testing.T, test func(t *testing.T, s *tethertest.Server, dial func() net.Conn)) {
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

// writeOnly writes a command without reading the reply.
func writeOnly(t *testing.T, conn net.Conn, args ...string) {
	t.Helper()
	require.NoError(t, conn.SetDeadline(time.Now().Add(replyTimeout)))
	_, err := conn.Write(wire.AppendCommand(nil, args...))
	require.NoError(t, err)
}

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	for limit := time.Now().Add(replyTimeout); !condition(); <-time.After(time.Millisecond) {
		require.True(t, time.Now().Before(limit), "the condition is not met in time")
	}
}

// A client that sends commands and never reads the replies does not block the
// server.
func TestClientThatNeverReads(t *testing.T) {
	onMemoryAndTCP(t, func(t *testing.T, s *tethertest.Server, dial func() net.Conn) {
		notReading := dial()
		rdb := redis.NewClient(s.Options())
		defer func() { require.NoError(t, rdb.Close()) }()
		for range 1000 {
			writeOnly(t, notReading, "PING", strings.Repeat("x", 1000))
		}
		require.NoError(t, rdb.Ping(t.Context()).Err())
	})
}

func TestCloseWithClients(t *testing.T) {
	onMemoryAndTCP(t, func(t *testing.T, s *tethertest.Server, dial func() net.Conn) {
		quiet, subscribed, notReading, partial := dial(), dial(), dial(), dial()
		for _, conn := range []net.Conn{quiet, partial} {
			require.NoError(t, conn.SetDeadline(time.Now().Add(replyTimeout)))
		}
		writeOnly(t, subscribed, "SUBSCRIBE", "c")
		writeOnly(t, notReading, "SUBSCRIBE", "c")
		eventually(t, func() bool { return s.Subscribers("c") == 2 })
		rdb := redis.NewClient(s.Options())
		defer func() { require.NoError(t, rdb.Close()) }()
		for range 10 {
			require.NoError(t, rdb.Publish(t.Context(), "c", strings.Repeat("x", 1<<20)).Err())
		}
		_, err := io.WriteString(partial, "*2\r\n$4\r\nPI")
		require.NoError(t, err)

		closed := make(chan struct{})
		go func() {
			s.Close()
			close(closed)
		}()
		select {
		case <-closed:
		case <-time.After(replyTimeout):
			require.Fail(t, "Close does not return")
		}
		for _, conn := range []net.Conn{quiet, subscribed, partial} {
			_, err := io.Copy(io.Discard, conn)
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
		}
		require.Error(t, rdb.Ping(t.Context()).Err())
	})
}

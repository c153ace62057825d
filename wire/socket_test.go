package wire

import (
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSocketDeliversWhatCameTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		closed := make(chan struct{})
		s := NewSocket(here, "id", Login{}, func() { close(closed) })
		require.True(t, s.Fresh())
		require.True(t, s.Quiet())

		// Two frames and half of a third in one piece: what is complete is not
		// held up by what is not.
		_, err := there.Write([]byte(":1\r\n:2\r\n$5\r\nhe"))
		require.NoError(t, err)
		b := <-s.Frames()
		require.NoError(t, b.Err)
		require.Equal(t, []Value{number(1), number(2)}, b.Frames)
		_, err = there.Write([]byte("llo\r\n"))
		require.NoError(t, err)
		require.Equal(t, []Value{bulk("hello")}, (<-s.Frames()).Frames)

		// The end comes behind what was sent before it.
		_, err = there.Write([]byte(":3\r\n"))
		require.NoError(t, err)
		require.NoError(t, there.Close())
		synctest.Wait()
		require.False(t, s.Quiet())
		require.Equal(t, []Value{number(3)}, (<-s.Frames()).Frames)
		require.Equal(t, io.EOF, (<-s.Frames()).Err)
		s.Close()
		<-closed
	})
}

// What is called behind the end may block for as long as it likes.
func TestSocketClosesBesideItsOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		block := make(chan struct{})
		s := NewSocket(here, "id", Login{}, func() { <-block })
		s.Close()
		_, err := there.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		close(block)
	})
}

// A socket whose owner does not take what comes: closing ends the reader.
func TestSocketClosesBesideAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		s := NewSocket(here, "id", Login{}, nil)
		go func() {
			for {
				if _, err := there.Write([]byte(":1\r\n")); err != nil {
					return
				}
			}
		}()
		synctest.Wait()
		s.Close()
	})
}

// Deadlines of writes are set for many writes at once, and are never over.
func TestSocketWritesForAsLongAsItLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		s := NewSocket(here, "id", Login{}, nil)
		read := make(chan error, 1)
		go func() {
			_, err := io.ReadFull(there, make([]byte, 20))
			read <- err
		}()
		for range 20 {
			require.NoError(t, s.Write([]byte("x")))
			<-time.After(900 * time.Millisecond)
		}
		require.NoError(t, <-read)
		require.False(t, s.Fresh())

		// Nobody reads any more.
		began := time.Now()
		require.Error(t, s.Write([]byte("x")))
		require.LessOrEqual(t, time.Since(began), 2*writeMax)
		require.GreaterOrEqual(t, time.Since(began), writeMin)
		s.Close()
		require.NoError(t, there.Close())
	})
}

// late is a connection whose first write finds its deadline passed.
type late struct {
	net.Conn
	part int // of it that has got through
	once bool
}

func (l *late) Write(p []byte) (int, error) {
	if l.once {
		return l.Conn.Write(p)
	}
	l.once = true
	n, err := l.Conn.Write(p[:l.part])
	if err != nil {
		return n, err
	}
	return n, os.ErrDeadlineExceeded
}

// The deadline of a write may pass before the kernel is asked at all, when the
// machine has no time for the goroutine.
func TestSocketPutsADeadlineOffOnce(t *testing.T) {
	for _, part := range []int{0, 3} {
		here, there := net.Pipe()
		s := NewSocket(&late{Conn: here, part: part}, "id", Login{}, nil)
		read := make(chan string, 1)
		go func() {
			b := make([]byte, 8)
			n, _ := io.ReadFull(there, b)
			read <- string(b[:n])
		}()
		require.NoError(t, s.Write([]byte("commands")))
		require.Equal(t, "commands", <-read)
		s.Close()
		require.NoError(t, there.Close())
	}
}

package tether_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
)

func TestOnLostIsCalledBehindTheLoss(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		type view struct {
			hold  *tether.Hold
			err   error
			cause error
			lost  bool
		}
		called := make(chan view, 8)
		l := s.client(t).Lock("l", tether.OnLost(func(h *tether.Hold) {
			called <- view{h, h.Err(), context.Cause(h.Context()), isClosed(h.Lost())()}
		}))
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		s.killConnections(t, "l")
		got := <-called
		require.Same(t, h, got.hold)
		_, ok := errors.AsType[*tether.LostError](got.err)
		require.True(t, ok)
		require.Equal(t, got.err, got.cause)
		require.True(t, got.lost)

		// The next hold is another one, and losing it is another loss.
		again, err := l.Acquire(t.Context())
		require.NoError(t, err)
		s.killConnections(t, "l")
		require.Same(t, again, (<-called).hold)
		require.Empty(t, called)
	})
}

func TestOnLostIsNotCalledForWhatTheProgramDoes(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		called := make(chan struct{}, 8)
		onLost := tether.OnLost(func(*tether.Hold) { called <- struct{}{} })
		for name, end := range map[string]func(*tether.Client, *tether.Lock, *tether.Hold) error{
			"release": func(_ *tether.Client, _ *tether.Lock, h *tether.Hold) error { return h.Release(t.Context()) },
			"lock":    func(_ *tether.Client, l *tether.Lock, _ *tether.Hold) error { return l.Close() },
			"client":  func(c *tether.Client, _ *tether.Lock, _ *tether.Hold) error { return c.Close() },
		} {
			c := s.client(t)
			l := c.Lock(name, onLost)
			h, err := l.Acquire(t.Context())
			require.NoError(t, err)
			require.NoError(t, end(c, l, h))
			s.awaitNoSubscribers(t, name)
		}
		never(t, 50*time.Millisecond, func() bool { return len(called) > 0 })
	})
}

func TestOnLostIsCalledForEachHoldOfASharedLock(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		lost := make(chan *tether.Hold, 8)
		l := s.client(t).Lock("l", tether.Shared(), tether.OnLost(func(h *tether.Hold) { lost <- h }))
		want := map[*tether.Hold]bool{}
		for range 3 {
			h, err := l.Acquire(t.Context())
			require.NoError(t, err)
			want[h] = true
		}
		released, err := l.Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, released.Release(t.Context()))
		s.killConnections(t, "l")
		for range 3 {
			h := <-lost
			require.True(t, want[h])
			delete(want, h)
		}
		never(t, 20*time.Millisecond, func() bool { return len(lost) > 0 })
	})
}

func TestOnLostHarmsNothing(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		block := make(chan struct{})
		called := make(chan error, 1)
		for name, fn := range map[string]func(*tether.Hold){
			"blocks":   func(*tether.Hold) { called <- nil; <-block },
			"panics":   func(*tether.Hold) { called <- nil; panic("out of order") },
			"exits":    func(*tether.Hold) { called <- nil; runtime.Goexit() },
			"releases": func(h *tether.Hold) { called <- h.Release(context.Background()) },
		} {
			logged := &logBuffer{lines: make(chan string, 64)}
			c := s.client(t, tether.WithLogger(slog.New(slog.NewTextHandler(logged, nil))))
			l := c.Lock("l", tether.OnLost(fn))
			h, err := l.Acquire(t.Context())
			require.NoError(t, err)
			s.killConnections(t, "l")
			err = <-called
			switch name {
			case "releases":
				_, ok := errors.AsType[*tether.LostError](err)
				require.True(t, ok, "%v", err)
			case "panics":
				s.eventually(t, func() bool {
					return bytes.Contains([]byte(<-logged.lines), []byte(`msg="panic in OnLost" lock=l holder=`+h.ID()+` panic="out of order"`))
				})
			}
			again, err := l.Acquire(t.Context())
			require.NoError(t, err, name)
			require.NoError(t, again.Release(t.Context()))
			began := time.Now()
			require.NoError(t, c.Close())
			require.Less(t, time.Since(began), 3*time.Second, name)
		}
		close(block)
	})
}

func TestInterruptSignalsTheOwnProcess(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, os.Interrupt)
		defer signal.Stop(signals)
		_, err := s.client(t).Acquire(t.Context(), "l", tether.OnLost(tether.Interrupt))
		require.NoError(t, err)
		s.killConnections(t, "l")
		require.Equal(t, os.Interrupt, <-signals)
	})
}

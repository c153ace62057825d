package tether_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/wire"
)

// Locks of one client with the same name and options share one local queue. On the
// server they are one participant.

func TestLocksOfOneClientAreOneParticipant(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		const locks, turns = 20, 10
		c := s.client(t)
		section := newCriticalSection()
		var wg sync.WaitGroup
		first, err := c.Lock("l").Acquire(t.Context())
		require.NoError(t, err)
		for range locks {
			l := c.Lock("l")
			results := l.AcquireAsync(t.Context())
			wg.Go(func() {
				r := <-results
				for range turns {
					if r.Err != nil {
						t.Error(r.Err)
						return
					}
					section.run(t)
					if err := r.Hold.Release(t.Context()); err != nil {
						t.Error(err)
					}
					r.Hold, r.Err = l.Acquire(t.Context())
				}
				if r.Err == nil {
					r.Err = r.Hold.Release(t.Context())
				}
				if r.Err != nil {
					t.Error(r.Err)
				}
			})
		}
		never(t, 50*time.Millisecond, func() bool {
			return s.subscribers(t, "l") != 1 || s.subscribers(t, wire.WaitersChannel("l")) != 0
		})
		before := s.clientList(t)
		require.NoError(t, first.Release(t.Context()))
		wg.Wait()
		s.awaitNoSubscribers(t, "l")
		require.Len(t, s.clientList(t), len(before), "one connection is enough for all")
	})
}

// Locks of one client that hand the lock on among themselves must let a waiter on
// another machine have its turn.
func TestForeignWaiterGetsItsTurnBesideALocalQueue(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 8 {
			l := c.Lock("l")
			wg.Go(func() {
				for ctx.Err() == nil {
					if h, err := l.Acquire(ctx); err == nil {
						_ = h.Release(t.Context()) // an error shows in the next acquire
					}
				}
			})
		}
		other := s.client(t).Lock("l")
		for range 20 {
			h, err := other.Acquire(t.Context())
			require.NoError(t, err)
			require.NoError(t, h.Release(t.Context()))
		}
		cancel()
		wg.Wait()
	})
}

func TestLocksOfOtherOptionsExcludeEachOther(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		h, err := c.Lock("l", tether.WithLabel("one")).Acquire(t.Context())
		require.NoError(t, err)
		for _, l := range []*tether.Lock{c.Lock("l"), c.Lock("l", tether.Shared()), c.Lock("l", tether.WithLabel("two"))} {
			_, err := l.TryAcquire(t.Context())
			held, ok := errors.AsType[*tether.HeldError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, h.ID(), held.Holders[0].ID)
			require.Equal(t, "one", held.Holders[0].Label)
		}
	})
}

// A HeldError names a holder of the same client like any other.
func TestHeldByAnotherLockOfTheClient(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		mine, yours := c.Lock("l", tether.WithLabel("night shift")), c.Lock("l", tether.WithLabel("night shift"))
		h, err := mine.Acquire(t.Context())
		require.NoError(t, err)

		_, err = yours.TryAcquire(t.Context())
		held, ok := errors.AsType[*tether.HeldError](err)
		require.True(t, ok, "%v", err)
		require.Len(t, held.Holders, 1)
		require.Equal(t, h.ID(), held.Holders[0].ID)
		require.Equal(t, "exclusive", held.Holders[0].Mode)
		require.ErrorContains(t, err, "night shift")

		_, err = mine.TryAcquire(t.Context())
		held, ok = errors.AsType[*tether.HeldError](err)
		require.True(t, ok, "%v", err)
		require.Empty(t, held.Holders)
		require.ErrorContains(t, err, "this Lock")
	})
}

// Each Lock of a local queue has its own state, its own events and its own Close.
func TestLocksOfALocalQueueAreIndependent(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		calls := make(chan string, 8)
		told := func(who string) tether.LockOption {
			return tether.OnLost(func(*tether.Hold) { calls <- who })
		}
		a, b := c.Lock("l", told("a")), c.Lock("l", told("b"))
		events := map[*tether.Lock]<-chan tether.Event{a: a.Events(), b: b.Events()}

		h, err := a.Acquire(t.Context())
		require.NoError(t, err)
		require.Equal(t, []tether.State{tether.Held, tether.Idle}, []tether.State{a.State(), b.State()})
		waiting := b.AcquireAsync(t.Context())
		require.Equal(t, []tether.State{tether.Held, tether.Acquiring}, []tether.State{a.State(), b.State()})
		require.NoError(t, h.Release(t.Context()))
		r := <-waiting
		require.NoError(t, r.Err)
		require.Equal(t, []tether.State{tether.Idle, tether.Held}, []tether.State{a.State(), b.State()})
		s.killConnections(t, "l")
		<-r.Hold.Lost()
		require.Equal(t, []tether.State{tether.Idle, tether.Lost}, []tether.State{a.State(), b.State()})
		require.Equal(t, "b", <-calls)

		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
		require.Equal(t, []string{"attempt", "granted", "released"}, slices.Collect(kindsOf(events[a])))
		require.Equal(t, []string{"granted", "lost"}, slices.Collect(kindsOf(events[b])))
		require.Empty(t, calls)
	})
}

func kindsOf(events <-chan tether.Event) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for e := range events {
			if !yield(kind(e)) {
				return
			}
		}
	}
}

func TestCloseOfOneLockOfALocalQueue(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		lost := make(chan struct{}, 1)
		holds := c.Lock("l", tether.OnLost(func(*tether.Hold) { lost <- struct{}{} }))
		waits, stays := c.Lock("l"), c.Lock("l")
		h, err := holds.Acquire(t.Context())
		require.NoError(t, err)
		waiting, staying := waits.AcquireAsync(t.Context()), stays.AcquireAsync(t.Context())

		events := waits.Events()
		require.NoError(t, waits.Close())
		require.Equal(t, tether.ErrClosed, (<-waiting).Err)
		_, open := <-events
		require.False(t, open)
		_, err = waits.Acquire(t.Context())
		require.Equal(t, tether.ErrClosed, err)
		require.Equal(t, tether.Idle, waits.State())
		_, open = <-waits.Events()
		require.False(t, open)
		require.NoError(t, waits.Close(), "again")
		require.NoError(t, h.Err(), "the hold of another Lock goes on")

		require.NoError(t, holds.Close())
		<-h.Lost()
		require.ErrorIs(t, h.Err(), tether.ErrClosed)
		require.ErrorIs(t, h.Release(t.Context()), tether.ErrClosed)
		r := <-staying
		require.NoError(t, r.Err, "the next one has it")

		require.NoError(t, r.Hold.Release(t.Context()))
		require.NoError(t, stays.Close())
		s.awaitNoSubscribers(t, "l")
		require.Empty(t, lost, "OnLost is not called for Close")

		again, err := c.Lock("l").Acquire(t.Context())
		require.NoError(t, err, "a new local queue begins")
		require.NoError(t, again.Release(t.Context()))
	})
}

// Close of the last Lock of a local queue returns when its participant has left
// the channel.
func TestCloseOfOneLockLeaves(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		l, idle := c.Lock("l"), c.Lock("l")
		_, err := l.Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, l.Close())
		require.Zero(t, s.subscribers(t, "l"))

		l = c.Lock("l")
		unread := l.AcquireAsync(t.Context())
		s.eventually(t, func() bool { return l.State() == tether.Held })
		require.NoError(t, l.Close())
		require.Equal(t, tether.ErrClosed, (<-unread).Err)
		s.awaitNoSubscribers(t, "l")
		require.NoError(t, idle.Close())
	})
}

func TestReadersOfALocalQueue(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		var locks []*tether.Lock
		var holds []*tether.Hold
		for range 3 {
			l := c.Lock("l", tether.Shared())
			h, err := l.Acquire(t.Context())
			require.NoError(t, err)
			locks, holds = append(locks, l), append(holds, h)
		}
		require.Equal(t, 1, s.subscribers(t, "l"))
		require.NoError(t, locks[0].Close())
		require.ErrorIs(t, holds[0].Err(), tether.ErrClosed)
		require.NoError(t, holds[1].Release(t.Context()))
		require.NoError(t, holds[2].Err())
		require.Equal(t, 1, s.subscribers(t, "l"))
		require.NoError(t, holds[2].Release(t.Context()))
		s.awaitNoSubscribers(t, "l")
	})
}

// A Lock that is dropped does not affect the other Locks of its local queue, and
// the last one leaves no goroutine.
func TestDroppedLockOfALocalQueue(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		h, err := c.Acquire(t.Context(), "l")
		require.NoError(t, err)
		require.NoError(t, h.Release(t.Context()))
		before := runtime.NumGoroutine() // one is for the idle socket
		kept := c.Lock("l")
		hold, err := c.Lock("l").Acquire(t.Context())
		require.NoError(t, err)
		for range 3 {
			runtime.GC()
		}
		require.NoError(t, hold.Err())
		waiting := kept.AcquireAsync(t.Context())
		require.NoError(t, hold.Release(t.Context()))
		r := <-waiting
		require.NoError(t, r.Err)
		require.NoError(t, r.Hold.Release(t.Context()))
		kept = nil
		s.eventually(t, func() bool {
			runtime.GC()
			return runtime.NumGoroutine() <= before
		})
	})
}

// Close and Acquire at the same time neither block for ever nor grant two holds.
func TestLocalQueueUnderCloses(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		c := s.client(t)
		section := newCriticalSection()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for i := range 40 {
					l := c.Lock("l")
					results := l.AcquireAsync(t.Context())
					if i%3 == 0 {
						if err := l.Close(); err != nil {
							t.Error(err)
						}
					}
					r := <-results
					switch {
					case errors.Is(r.Err, tether.ErrClosed) && i%3 == 0:
					case r.Err != nil:
						t.Error(r.Err)
					case i%3 == 0:
						t.Error("granted although it was closed first")
					default:
						section.run(t)
						if i%3 == 1 {
							r.Err = r.Hold.Release(t.Context())
						} else {
							r.Err = l.Close()
						}
						if r.Err != nil {
							t.Error(r.Err)
						}
					}
					if err := l.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		s.awaitNoSubscribers(t, "l")
	})
}

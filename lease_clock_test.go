package tether_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/tethertest"
)

// Time of leases, in virtual time. A bubble ends only when all that was started in
// it has ended, so none of these leaves a goroutine behind.

// bubble is a server in memory, and a client of it with a spy.
type bubble struct {
	*tethertest.Server
	server
	spy *spy
	c   *tether.Client
}

// relied is how long a lease is relied on from before it was set or renewed.
func relied(ttl time.Duration) time.Duration { return ttl - ttl/100 - 2*time.Millisecond }

func inVirtualTime(t *testing.T, test func(t *testing.T, b bubble)) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := tethertest.Start("")
		require.NoError(t, err)
		t.Cleanup(srv.Close)
		rdb := redis.NewClient(srv.Options())
		b := bubble{Server: srv, server: server{options: srv.Options, admin: adminClient(t, srv.Options())}, spy: spied(rdb), c: clientOf(t, rdb)}
		// The scripts are there from the beginning, so that each run is one command.
		warm := b.server.client(t).Lease("warm")
		h, err := warm.Acquire(t.Context())
		require.NoError(t, err)
		_, err = h.Owned(t.Context())
		require.NoError(t, err)
		<-time.After(21 * time.Second) // renewed
		require.NoError(t, h.Release(t.Context()))
		require.NoError(t, warm.Close())
		test(t, b)
	})
}

// next reads events until one of a kind comes, however long that takes.
func next[E tether.Event](events <-chan tether.Event) E {
	for {
		if e, ok := (<-events).(E); ok {
			return e
		}
	}
}

// take acquires the lease "l".
func (b bubble) take(t *testing.T, opts ...tether.LockOption) (*tether.Lock, *tether.Hold) {
	t.Helper()
	l := b.c.Lease(leaseKey, opts...)
	h, err := l.Acquire(t.Context())
	require.NoError(t, err)
	return l, h
}

func TestALeaseIsRenewedForAsLongAsItIsHeld(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, b bubble) {
		_, h := b.take(t)
		<-time.After(10 * time.Second)
		for range 2 * 6 {
			<-time.After(10 * time.Minute)
			require.NoError(t, h.Err())
			require.Equal(t, h.ID(), b.admin.Get(t.Context(), leaseKey).Val())
			require.Greater(t, b.admin.PTTL(t.Context(), leaseKey).Val(), 49*time.Second)
		}
		require.Equal(t, 2*60*3, b.spy.runs("renew"), "three a minute, by default")
		require.NoError(t, h.Release(t.Context()))
		require.True(t, b.keyIs(t, "")())
		<-time.After(24 * time.Hour)
		require.Equal(t, 2*60*3, b.spy.runs("renew"))
		require.Equal(t, 1, b.spy.runs("drop"))
	})
}

func TestRenewalsEndWithTheLock(t *testing.T) {
	for name, end := range map[string]func(b bubble, l *tether.Lock) error{
		"lock":   func(_ bubble, l *tether.Lock) error { return l.Close() },
		"client": func(b bubble, _ *tether.Lock) error { return b.c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, b bubble) {
				l, h := b.take(t, tether.WithTTL(10*time.Second), tether.WithRenewInterval(time.Second))
				<-time.After(90*time.Second + time.Second/2)
				runs := b.spy.runs("renew")
				require.Equal(t, 90, runs)
				require.NoError(t, end(b, l))
				require.ErrorIs(t, h.Err(), tether.ErrClosed)
				require.True(t, b.keyIs(t, "")())
				<-time.After(time.Hour)
				require.Equal(t, runs, b.spy.runs("renew"))
			})
		})
	}
}

// Nobody answers any more: the lease is lost to the millisecond before the key
// can expire, counted from before the last renewal that succeeded was sent.
func TestALeaseIsLostBeforeAnybodyElseCanHaveIt(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, b bubble) {
		l, h := b.take(t)
		events := l.Events()
		rival := b.server.client(t).Lease(leaseKey)
		began := time.Now()
		<-time.After(50 * time.Second) // the last renewal is ten seconds old
		waiting := rival.AcquireAsync(t.Context())
		synctest.Wait()
		b.Freeze()
		<-h.Lost()
		require.Equal(t, 40*time.Second+relied(time.Minute), time.Since(began))
		require.ErrorContains(t, h.Err(), "not renewed in time")
		require.Equal(t, tether.Lost, l.State())
		require.Empty(t, waiting)
		b.Thaw()
		synctest.Wait()
		require.NotEqual(t, h.ID(), b.admin.Get(t.Context(), leaseKey).Val(), "what was left of it is taken away")
		failed := next[tether.HealthEvent](events)
		for failed.Err == nil {
			failed = next[tether.HealthEvent](events)
		}
		require.NotErrorIs(t, failed.Err, context.DeadlineExceeded, "no context of the caller's has ended")
		r := <-waiting
		require.NoError(t, r.Err)
		require.ErrorIs(t, h.Release(t.Context()), h.Err())
		require.NoError(t, r.Hold.Err())
		require.NoError(t, r.Hold.Release(t.Context()))
	})
}

// An error is no loss: it is told, and the renewal comes again at once.
func TestARenewalThatFailsIsRepeated(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, b bubble) {
		l, h := b.take(t)
		events := l.Events()
		for n := 1; n < 30; n++ {
			b.spy.on("renew", breaks(n))
			for range n {
				require.ErrorContains(t, next[tether.HealthEvent](events).Err, "closed")
			}
			failed := time.Now()
			require.NoError(t, next[tether.HealthEvent](events).Err)
			require.LessOrEqual(t, time.Since(failed), 1500*time.Millisecond)
		}
		require.NoError(t, h.Err())
		require.NoError(t, h.Release(t.Context()))
	})
}

func TestALateReplyToARenewalIsNoLoss(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, b bubble) {
		_, h := b.take(t)
		b.spy.on("renew", later(35*time.Second)) // longer than the interval
		<-time.After(time.Hour)
		require.NoError(t, h.Err())
		// Two are under way when it is given back.
		require.NoError(t, h.Release(t.Context()))
		<-time.After(time.Minute)
		require.True(t, b.keyIs(t, "")())
	})
}

// The reply to a grant is there when the key is about to expire: it is not
// believed, but asked for again.
func TestAGrantThatComesTooLateIsNotReturned(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, b bubble) {
		l := b.c.Lease(leaseKey, tether.WithTTL(2*time.Second))
		events := l.Events()
		b.spy.on("take", func(run func() error) error {
			b.spy.on("", nil)
			return later(relied(2 * time.Second))(run)
		})
		began := time.Now()
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		require.ErrorContains(t, next[tether.AttemptFailedEvent](events).Err, "too late")
		require.Greater(t, time.Since(began), relied(2*time.Second))
		require.Greater(t, b.admin.PTTL(t.Context(), leaseKey).Val(), 1900*time.Millisecond)
		require.NoError(t, h.Err())
		require.NoError(t, h.Release(t.Context()))

		// A try does not ask again, and leaves no key.
		b.spy.on("take", later(2*time.Second))
		_, err = l.TryAcquire(t.Context())
		require.ErrorContains(t, err, "too late")
		require.NotErrorIs(t, err, tether.ErrHeld)
		synctest.Wait()
		require.True(t, b.keyIs(t, "")())
	})
}

// The context ends while the key is being set. The caller need not wait for that.
func TestACancelledAcquireLeavesNoKey(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, b bubble) {
		l := b.c.Lease(leaseKey)
		b.spy.on("take", later(2*time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := l.Acquire(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, tether.ErrHeld)
		require.Equal(t, time.Second, time.Since(began))
		require.NotEmpty(t, b.admin.Get(t.Context(), leaseKey).Val(), "it is set by now")

		b.spy.on("", nil)
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2*time.Second, time.Since(began), "the next one does not wait for the key to expire")
		require.NoError(t, h.Release(t.Context()))
		require.True(t, b.keyIs(t, "")())
	})
}

// A lock that is closed meanwhile cleans up as well.
func TestACloseDuringTheSetLeavesNoKey(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, b bubble) {
		l := b.c.Lease(leaseKey)
		b.spy.on("take", later(5*time.Second))
		waiting := l.AcquireAsync(t.Context())
		synctest.Wait()
		began := time.Now()
		require.NoError(t, l.Close())
		require.Equal(t, time.Second, time.Since(began))
		require.ErrorIs(t, (<-waiting).Err, tether.ErrClosed)
		require.False(t, b.keyIs(t, "")())
		<-time.After(4 * time.Second)
		synctest.Wait()
		require.True(t, b.keyIs(t, "")())
	})
}

// The reply was lost behind a script that was run: its own key is not waited for.
func TestALostReplyToTheSetIsNotWaitedOut(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, b bubble) {
		l := b.c.Lease(leaseKey, tether.Fenced())
		lost := breaks(1)
		b.spy.on("take", func(run func() error) error {
			err := run()
			if broken := lost(func() error { return nil }); broken != nil {
				return broken
			}
			return err
		})
		began := time.Now()
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		require.Less(t, time.Since(began), time.Second)
		require.Equal(t, h.ID(), b.admin.Get(t.Context(), leaseKey).Val())
		require.EqualValues(t, h.Token(), b.last(t), "nobody has drawn a later token")
		require.NoError(t, h.Release(t.Context()))
	})
}

func (b bubble) last(t *testing.T) int64 {
	t.Helper()
	n, err := b.admin.Get(t.Context(), "{l}-fence").Int64()
	require.NoError(t, err)
	return n
}

// The reply to a release was lost: that is no loss of the lease.
func TestALostReplyToAReleaseIsNoLoss(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, b bubble) {
		_, h := b.take(t)
		lost := breaks(1)
		b.spy.on("drop", func(run func() error) error {
			err := run()
			if broken := lost(func() error { return nil }); broken != nil {
				return broken
			}
			return err
		})
		require.NoError(t, h.Release(t.Context()))
		require.Equal(t, 2, b.spy.runs("drop"))
	})
}

// Nobody answers a release: the caller is told after five seconds, and the key is
// deleted when that is possible.
func TestAReleaseThatIsNotConfirmed(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, b bubble) {
		l, h := b.take(t)
		b.Freeze()
		began := time.Now()
		err := h.Release(t.Context())
		require.ErrorContains(t, err, `release of "l" not confirmed, the key goes by itself after its TTL`)
		require.Equal(t, 5*time.Second, time.Since(began))
		require.ErrorIs(t, h.Err(), tether.ErrReleased)
		_, err = l.TryAcquire(t.Context())
		require.NotErrorIs(t, err, tether.ErrHeld, "nobody knows")
		require.Regexp(t, "timeout|no answer in time", err.Error()) // whoever loses patience first
		b.Thaw()
		h, err = l.Acquire(t.Context())
		require.NoError(t, err)
		require.Less(t, time.Since(began), 30*time.Second)
		require.NoError(t, h.Release(t.Context()))
		require.True(t, b.keyIs(t, "")())
	})
}

// A release wakes those that wait, also when they look only once an hour.
func TestAReleaseOfALeaseWakes(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, b bubble) {
		_, h := b.take(t, tether.WithPollInterval(time.Hour))
		var waiting []<-chan tether.Result
		for range 3 {
			waiting = append(waiting, b.server.client(t).Lease(leaseKey, tether.WithPollInterval(time.Hour)).AcquireAsync(t.Context()))
		}
		<-time.After(time.Minute)
		for range waiting {
			began := time.Now()
			require.NoError(t, h.Release(t.Context()))
			var r tether.Result
			select {
			case r = <-waiting[0]:
			case r = <-waiting[1]:
			case r = <-waiting[2]:
			}
			require.NoError(t, r.Err)
			require.Zero(t, time.Since(began))
			h = r.Hold
		}
		require.NoError(t, h.Release(t.Context()))
		synctest.Wait()
		require.Empty(t, b.admin.PubSubChannels(t.Context(), "*").Val(), "nobody listens any more")
	})
}

// Between the look at the key and the subscription nobody tells of a release.
func TestAReleaseBeforeTheSubscriptionIsNotMissed(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, b bubble) {
		_, h := b.take(t)
		o := b.options()
		dial, dials := o.Dialer, 0
		o.Dialer = func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
			if dials++; dials == 2 { // the first one is for commands
				if err := h.Release(ctx); err != nil {
					return nil, err
				}
			}
			return dial(ctx, network, addr)
		}
		waiter := clientOf(t, redis.NewClient(o)).Lease(leaseKey, tether.WithPollInterval(time.Hour))
		began := time.Now()
		next, err := waiter.Acquire(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2, dials)
		require.Zero(t, time.Since(began))
		require.NoError(t, next.Release(t.Context()))
	})
}

// Another program tells nobody of its release. It is waited for until its key
// expires, or is seen to be gone.
func TestAForeignHolderOfALeaseIsWaitedFor(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, b bubble) {
		require.NoError(t, b.admin.Set(t.Context(), leaseKey, "foreign", 7*time.Second).Err())
		l := b.c.Lease(leaseKey, tether.WithPollInterval(time.Hour))
		began := time.Now()
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		require.InDelta(t, 7*time.Second, time.Since(began), float64(5*time.Millisecond))
		require.NoError(t, h.Release(t.Context()))

		require.NoError(t, b.admin.Set(t.Context(), leaseKey, "foreign", 0).Err()) // it never expires
		waiting := b.c.Lease(leaseKey).AcquireAsync(t.Context())
		<-time.After(time.Minute)
		require.Empty(t, waiting)
		began = time.Now()
		require.NoError(t, b.admin.Del(t.Context(), leaseKey).Err())
		r := <-waiting
		require.NoError(t, r.Err)
		require.LessOrEqual(t, time.Since(began), 150*time.Millisecond)
		require.NoError(t, r.Hold.Release(t.Context()))
	})
}

// A server that is down for the whole time, and one that says nothing.
func TestWaitsForALeaseEnd(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, b bubble) {
		require.NoError(t, b.admin.Set(t.Context(), leaseKey, "foreign", 0).Err())
		l := b.c.Lease(leaseKey, tether.WithMaxWait(10*time.Second))
		began := time.Now()
		_, err := l.Acquire(t.Context())
		require.ErrorIs(t, err, tether.ErrHeld)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "foreign (exclusive): waited for 10s")
		require.Equal(t, 10*time.Second, time.Since(began))

		b.Freeze()
		began = time.Now()
		_, err = l.Acquire(t.Context())
		require.NotErrorIs(t, err, tether.ErrHeld)
		require.ErrorContains(t, err, "waited for 10s")
		require.Equal(t, 10*time.Second, time.Since(began))
		began = time.Now()
		_, err = b.c.Lease(leaseKey).TryAcquire(t.Context())
		require.NotErrorIs(t, err, tether.ErrHeld)
		require.ErrorContains(t, err, "no answer in time")
		require.Equal(t, 3*time.Second, time.Since(began), "a try is bounded")
		b.Thaw()
	})
}

// A client without time-outs waits for a dead connection for ever. The lease does
// not.
func TestAConnectionThatHangsIsNotWaitedForForEver(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, b bubble) {
		hang, stuck := make(chan struct{}), breaks(1)
		b.spy.on("take", func(run func() error) error {
			if stuck(func() error { return nil }) != nil {
				<-hang
			}
			return run()
		})
		began := time.Now()
		_, h := b.take(t)
		require.Less(t, time.Since(began), 16*time.Second)
		require.NoError(t, h.Release(t.Context()))
		close(hang) // the key is set behind the release, and taken away
		synctest.Wait()
		require.Equal(t, 3, b.spy.runs("take")+b.spy.runs("drop")-1, "two of each")
		require.True(t, b.keyIs(t, "")())
	})
}

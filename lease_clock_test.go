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

// The time behaviour of leases, in virtual time. A synctest bubble ends when all of
// its goroutines have ended, so that each test also shows that none is left.

// leaseFixture is an in-process server, and a client with a hook.
type leaseFixture struct {
	*tethertest.Server
	server
	hook *scriptHook
	c    *tether.Client
}

// reliedFor is how long a holder relies on a lease, counted from before it sends the
// set or the renewal. It is shorter than the TTL because of clock drift.
func reliedFor(ttl time.Duration) time.Duration { return ttl - ttl/100 - 2*time.Millisecond }

func inVirtualTime(t *testing.T, test func(t *testing.T, f leaseFixture)) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := tethertest.Start("")
		require.NoError(t, err)
		t.Cleanup(srv.Close)
		rdb := redis.NewClient(srv.Options())
		f := leaseFixture{Server: srv, server: server{options: srv.Options, admin: adminClient(t, srv.Options())}, hook: addScriptHook(rdb), c: clientOf(t, rdb)}
		// Load all scripts into the server, so that each run is one command.
		warm := f.server.client(t).Lease("warm")
		h, err := warm.Acquire(t.Context())
		require.NoError(t, err)
		_, err = h.Owned(t.Context())
		require.NoError(t, err)
		<-time.After(21 * time.Second) // until the first renewal
		require.NoError(t, h.Release(t.Context()))
		require.NoError(t, warm.Close())
		test(t, f)
	})
}

// nextEvent reads events until one of type E comes.
func nextEvent[E tether.Event](events <-chan tether.Event) E {
	for {
		if e, ok := (<-events).(E); ok {
			return e
		}
	}
}

// take acquires the lease "l".
func (f leaseFixture) take(t *testing.T, opts ...tether.LockOption) (*tether.Lock, *tether.Hold) {
	t.Helper()
	l := f.c.Lease(leaseKey, opts...)
	h, err := l.Acquire(t.Context())
	require.NoError(t, err)
	return l, h
}

func TestALeaseIsRenewedForAsLongAsItIsHeld(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f leaseFixture) {
		_, h := f.take(t)
		<-time.After(10 * time.Second)
		for range 2 * 6 {
			<-time.After(10 * time.Minute)
			require.NoError(t, h.Err())
			require.Equal(t, h.ID(), f.admin.Get(t.Context(), leaseKey).Val())
			require.Greater(t, f.admin.PTTL(t.Context(), leaseKey).Val(), 49*time.Second)
		}
		require.Equal(t, 2*60*3, f.hook.runs("renew"), "three a minute, by default")
		require.NoError(t, h.Release(t.Context()))
		require.True(t, f.keyIs(t, "")())
		<-time.After(24 * time.Hour)
		require.Equal(t, 2*60*3, f.hook.runs("renew"))
		require.Equal(t, 1, f.hook.runs("drop"))
	})
}

func TestRenewalsEndWithTheLock(t *testing.T) {
	for name, end := range map[string]func(f leaseFixture, l *tether.Lock) error{
		"lock":   func(_ leaseFixture, l *tether.Lock) error { return l.Close() },
		"client": func(f leaseFixture, _ *tether.Lock) error { return f.c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, f leaseFixture) {
				l, h := f.take(t, tether.WithTTL(10*time.Second), tether.WithRenewInterval(time.Second))
				<-time.After(90*time.Second + time.Second/2)
				runs := f.hook.runs("renew")
				require.Equal(t, 90, runs)
				require.NoError(t, end(f, l))
				require.ErrorIs(t, h.Err(), tether.ErrClosed)
				require.True(t, f.keyIs(t, "")())
				<-time.After(time.Hour)
				require.Equal(t, runs, f.hook.runs("renew"))
			})
		})
	}
}

// When the server answers nothing any more, the lease is lost before the key can
// expire. The time counts from before the last successful renewal was sent.
func TestALeaseIsLostBeforeAnybodyElseCanHaveIt(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f leaseFixture) {
		l, h := f.take(t)
		events := l.Events()
		rival := f.server.client(t).Lease(leaseKey)
		began := time.Now()
		<-time.After(50 * time.Second) // the last renewal is ten seconds old
		waiting := rival.AcquireAsync(t.Context())
		synctest.Wait()
		f.Freeze()
		<-h.Lost()
		require.Equal(t, 40*time.Second+reliedFor(time.Minute), time.Since(began))
		require.ErrorContains(t, h.Err(), "not renewed in time")
		require.Equal(t, tether.Lost, l.State())
		require.Empty(t, waiting)
		f.Thaw()
		synctest.Wait()
		require.NotEqual(t, h.ID(), f.admin.Get(t.Context(), leaseKey).Val(), "the lost lease's key is deleted")
		failed := nextEvent[tether.HealthEvent](events)
		for failed.Err == nil {
			failed = nextEvent[tether.HealthEvent](events)
		}
		require.NotErrorIs(t, failed.Err, context.DeadlineExceeded, "no context of the caller's has ended")
		r := <-waiting
		require.NoError(t, r.Err)
		require.ErrorIs(t, h.Release(t.Context()), h.Err())
		require.NoError(t, r.Hold.Err())
		require.NoError(t, r.Hold.Release(t.Context()))
	})
}

// A renewal that fails is no loss. There is a HealthEvent, and it is repeated.
func TestARenewalThatFailsIsRepeated(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f leaseFixture) {
		l, h := f.take(t)
		events := l.Events()
		for n := 1; n < 30; n++ {
			f.hook.intercept("renew", failFirst(n))
			for range n {
				require.ErrorContains(t, nextEvent[tether.HealthEvent](events).Err, "closed")
			}
			failed := time.Now()
			require.NoError(t, nextEvent[tether.HealthEvent](events).Err)
			require.LessOrEqual(t, time.Since(failed), 1500*time.Millisecond)
		}
		require.NoError(t, h.Err())
		require.NoError(t, h.Release(t.Context()))
	})
}

func TestALateReplyToARenewalIsNoLoss(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f leaseFixture) {
		_, h := f.take(t)
		f.hook.intercept("renew", delayReply(35*time.Second)) // longer than the interval
		<-time.After(time.Hour)
		require.NoError(t, h.Err())
		// Two renewals are under way at the release.
		require.NoError(t, h.Release(t.Context()))
		<-time.After(time.Minute)
		require.True(t, f.keyIs(t, "")())
	})
}

// If the reply to the set comes when the key is about to expire, it is not a grant.
// The acquire sets the key again.
func TestAGrantThatComesTooLateIsNotReturned(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f leaseFixture) {
		l := f.c.Lease(leaseKey, tether.WithTTL(2*time.Second))
		events := l.Events()
		f.hook.intercept("take", func(run func() error) error {
			f.hook.intercept("", nil)
			return delayReply(reliedFor(2 * time.Second))(run)
		})
		began := time.Now()
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		require.ErrorContains(t, nextEvent[tether.AttemptFailedEvent](events).Err, "too late")
		require.Greater(t, time.Since(began), reliedFor(2*time.Second))
		require.Greater(t, f.admin.PTTL(t.Context(), leaseKey).Val(), 1900*time.Millisecond)
		require.NoError(t, h.Err())
		require.NoError(t, h.Release(t.Context()))

		// A try does not repeat the set, and leaves no key.
		f.hook.intercept("take", delayReply(2*time.Second))
		_, err = l.TryAcquire(t.Context())
		require.ErrorContains(t, err, "too late")
		require.NotErrorIs(t, err, tether.ErrHeld)
		synctest.Wait()
		require.True(t, f.keyIs(t, "")())
	})
}

// The context ends while the set is under way. The acquire returns at once, and the
// key is deleted when the reply comes.
func TestACancelledAcquireLeavesNoKey(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f leaseFixture) {
		l := f.c.Lease(leaseKey)
		f.hook.intercept("take", delayReply(2*time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := l.Acquire(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, tether.ErrHeld)
		require.Equal(t, time.Second, time.Since(began))
		require.NotEmpty(t, f.admin.Get(t.Context(), leaseKey).Val(), "it is set by now")

		f.hook.intercept("", nil)
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2*time.Second, time.Since(began), "the next one does not wait for the key to expire")
		require.NoError(t, h.Release(t.Context()))
		require.True(t, f.keyIs(t, "")())
	})
}

// The same for a Close while the set is under way.
func TestACloseDuringTheSetLeavesNoKey(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f leaseFixture) {
		l := f.c.Lease(leaseKey)
		f.hook.intercept("take", delayReply(5*time.Second))
		waiting := l.AcquireAsync(t.Context())
		synctest.Wait()
		began := time.Now()
		require.NoError(t, l.Close())
		require.Equal(t, time.Second, time.Since(began))
		require.ErrorIs(t, (<-waiting).Err, tether.ErrClosed)
		require.False(t, f.keyIs(t, "")())
		<-time.After(4 * time.Second)
		synctest.Wait()
		require.True(t, f.keyIs(t, "")())
	})
}

// The set was done, but its reply is lost. The next set finds the lease's own key,
// and must not wait until it expires.
func TestALostReplyToTheSetIsNotWaitedOut(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f leaseFixture) {
		l := f.c.Lease(leaseKey, tether.Fenced())
		lost := failFirst(1)
		f.hook.intercept("take", func(run func() error) error {
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
		require.Equal(t, h.ID(), f.admin.Get(t.Context(), leaseKey).Val())
		require.EqualValues(t, h.Token(), f.lastToken(t), "nobody has drawn a later token")
		require.NoError(t, h.Release(t.Context()))
	})
}

func (f leaseFixture) lastToken(t *testing.T) int64 {
	t.Helper()
	n, err := f.admin.Get(t.Context(), "{l}-fence").Int64()
	require.NoError(t, err)
	return n
}

// The reply to a release is lost. The repeated release finds no key, which is not a
// loss of the lease.
func TestALostReplyToAReleaseIsNoLoss(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f leaseFixture) {
		_, h := f.take(t)
		lost := failFirst(1)
		f.hook.intercept("drop", func(run func() error) error {
			err := run()
			if broken := lost(func() error { return nil }); broken != nil {
				return broken
			}
			return err
		})
		require.NoError(t, h.Release(t.Context()))
		require.Equal(t, 2, f.hook.runs("drop"))
	})
}

// A release that is not answered returns an error after five seconds. The key is
// deleted when the server answers again.
func TestAReleaseThatIsNotConfirmed(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f leaseFixture) {
		l, h := f.take(t)
		f.Freeze()
		began := time.Now()
		err := h.Release(t.Context())
		require.ErrorContains(t, err, `release of "l" not confirmed, the key goes by itself after its TTL`)
		require.Equal(t, 5*time.Second, time.Since(began))
		require.ErrorIs(t, h.Err(), tether.ErrReleased)
		_, err = l.TryAcquire(t.Context())
		require.NotErrorIs(t, err, tether.ErrHeld, "nobody knows")
		require.Regexp(t, "timeout|no answer in time", err.Error()) // of the client or of the lock, whichever is first
		f.Thaw()
		h, err = l.Acquire(t.Context())
		require.NoError(t, err)
		require.Less(t, time.Since(began), 30*time.Second)
		require.NoError(t, h.Release(t.Context()))
		require.True(t, f.keyIs(t, "")())
	})
}

// A release wakes the waiters. They do not depend on their poll.
func TestAReleaseOfALeaseWakes(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f leaseFixture) {
		_, h := f.take(t, tether.WithPollInterval(time.Hour))
		var waiting []<-chan tether.Result
		for range 3 {
			waiting = append(waiting, f.server.client(t).Lease(leaseKey, tether.WithPollInterval(time.Hour)).AcquireAsync(t.Context()))
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
		require.Empty(t, f.admin.PubSubChannels(t.Context(), "*").Val(), "nobody listens any more")
	})
}

// A release may come between a waiter's read of the key and its subscription. The
// waiter gets no message, and must read the key again after it has subscribed.
func TestAReleaseBeforeTheSubscriptionIsNotMissed(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f leaseFixture) {
		_, h := f.take(t)
		o := f.options()
		dial, dials := o.Dialer, 0
		o.Dialer = func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
			if dials++; dials == 2 { // the second dial is for the subscription
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

// Another program publishes no message at its release. The waiter is granted when
// the key expires, or at the next poll.
func TestAForeignHolderOfALeaseIsWaitedFor(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f leaseFixture) {
		require.NoError(t, f.admin.Set(t.Context(), leaseKey, "foreign", 7*time.Second).Err())
		l := f.c.Lease(leaseKey, tether.WithPollInterval(time.Hour))
		began := time.Now()
		h, err := l.Acquire(t.Context())
		require.NoError(t, err)
		require.InDelta(t, 7*time.Second, time.Since(began), float64(5*time.Millisecond))
		require.NoError(t, h.Release(t.Context()))

		require.NoError(t, f.admin.Set(t.Context(), leaseKey, "foreign", 0).Err()) // it never expires
		waiting := f.c.Lease(leaseKey).AcquireAsync(t.Context())
		<-time.After(time.Minute)
		require.Empty(t, waiting)
		began = time.Now()
		require.NoError(t, f.admin.Del(t.Context(), leaseKey).Err())
		r := <-waiting
		require.NoError(t, r.Err)
		require.LessOrEqual(t, time.Since(began), 150*time.Millisecond)
		require.NoError(t, r.Hold.Release(t.Context()))
	})
}

// Waits and tries end in time, beside a holder and with a server that answers
// nothing.
func TestWaitsForALeaseEnd(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f leaseFixture) {
		require.NoError(t, f.admin.Set(t.Context(), leaseKey, "foreign", 0).Err())
		l := f.c.Lease(leaseKey, tether.WithMaxWait(10*time.Second))
		began := time.Now()
		_, err := l.Acquire(t.Context())
		require.ErrorIs(t, err, tether.ErrHeld)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "foreign (exclusive): waited for 10s")
		require.Equal(t, 10*time.Second, time.Since(began))

		f.Freeze()
		began = time.Now()
		_, err = l.Acquire(t.Context())
		require.NotErrorIs(t, err, tether.ErrHeld)
		require.ErrorContains(t, err, "waited for 10s")
		require.Equal(t, 10*time.Second, time.Since(began))
		began = time.Now()
		_, err = f.c.Lease(leaseKey).TryAcquire(t.Context())
		require.NotErrorIs(t, err, tether.ErrHeld)
		require.ErrorContains(t, err, "no answer in time")
		require.Equal(t, 3*time.Second, time.Since(began), "a try is bounded")
		f.Thaw()
	})
}

// A client without time-outs waits for ever for a reply on a dead connection. The
// lease tries again meanwhile.
func TestAConnectionThatHangsIsNotWaitedForForEver(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, f leaseFixture) {
		hang, stuck := make(chan struct{}), failFirst(1)
		f.hook.intercept("take", func(run func() error) error {
			if stuck(func() error { return nil }) != nil {
				<-hang
			}
			return run()
		})
		began := time.Now()
		_, h := f.take(t)
		require.Less(t, time.Since(began), 16*time.Second)
		require.NoError(t, h.Release(t.Context()))
		close(hang) // the late set comes after the release, and its key is deleted
		synctest.Wait()
		require.Equal(t, 3, f.hook.runs("take")+f.hook.runs("drop")-1, "two of each")
		require.True(t, f.keyIs(t, "")())
	})
}

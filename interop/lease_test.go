package interop

import (
	"bufio"
	"context"
	_ "embed"
	"fmt"
	"io"
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/internal/redistest"
)

//go:embed testdata/lease.py
var leaseProgram string

// redisPy is a process with a lock of redis-py.
type redisPy struct {
	input io.Writer
	lines *bufio.Scanner
}

func startRedisPy(t *testing.T, s *redistest.Server, name string, ttl time.Duration) *redisPy {
	t.Helper()
	host, port, err := net.SplitHostPort(s.Addr)
	require.NoError(t, err)
	cmd := exec.Command(pythons[0].interpreter(t), "-c", leaseProgram, host, port, name, fmt.Sprint(ttl.Seconds()))
	cmd.SysProcAttr = childAttr()
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, input.Close())
		require.NoError(t, cmd.Wait())
	})
	return &redisPy{input, bufio.NewScanner(output)}
}

// send sends a command, and answer waits for its answer.
func (p *redisPy) send(t *testing.T, command string, args ...any) {
	t.Helper()
	_, err := fmt.Fprintln(p.input, fmt.Sprintf(command, args...))
	require.NoError(t, err)
}

func (p *redisPy) answer(t *testing.T) string {
	t.Helper()
	require.True(t, p.lines.Scan(), "the process has ended")
	return p.lines.Text()
}

func (p *redisPy) do(t *testing.T, command string, args ...any) string {
	t.Helper()
	p.send(t, command, args...)
	return p.answer(t)
}

// leases returns a client on the shared server.
func leases(t *testing.T) (*tether.Client, *redis.Client) {
	t.Helper()
	pythons[0].interpreter(t) // skips the test before anything is started
	rdb := redis.NewClient(shared.Options())
	c := tether.New(rdb)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		require.NoError(t, rdb.Close())
	})
	return c, rdb
}

func TestALeaseAndRedisPyExcludeEachOther(t *testing.T) {
	c, rdb := leases(t)
	const name = "lease:turns"
	p := startRedisPy(t, shared, name, 10*time.Second)
	l := c.Lease(name, tether.WithTTL(5*time.Second))

	// tether first.
	h, err := l.Acquire(t.Context())
	require.NoError(t, err)
	require.Equal(t, "False", p.do(t, "acquire 0"))
	require.Equal(t, "True", p.do(t, "locked"))
	require.Equal(t, "False", p.do(t, "owned"))
	// redis-py does not delete a key of another holder.
	require.Equal(t, "LockError", p.do(t, "release"))
	p.send(t, "acquire 20") // it waits
	require.NoError(t, h.Release(t.Context()))
	require.Equal(t, "True", p.answer(t))

	// Python first.
	_, err = l.TryAcquire(t.Context())
	held, ok := err.(*tether.HeldError)
	require.True(t, ok, "%v", err)
	require.Equal(t, rdb.Get(t.Context(), name).Val(), held.Holders[0].ID)
	require.Positive(t, held.Holders[0].TTL)
	waiting := l.AcquireAsync(t.Context())
	require.Equal(t, "True", p.do(t, "owned"))
	require.Equal(t, "True", p.do(t, "extend 1"))
	require.Equal(t, "True", p.do(t, "release"))
	r := <-waiting
	require.NoError(t, r.Err)
	require.Equal(t, "False", p.do(t, "owned"))
	require.NoError(t, r.Hold.Release(t.Context()))
	require.Equal(t, "False", p.do(t, "locked"))
}

// A lock of redis-py that is renewed stays held. One that is not renewed is
// granted to the waiter when it expires.
func TestALeaseWaitsForAnExpiryOfRedisPy(t *testing.T) {
	c, _ := leases(t)
	const name = "lease:expiry"
	p := startRedisPy(t, shared, name, 600*time.Millisecond)
	require.Equal(t, "True", p.do(t, "acquire 0"))
	require.Equal(t, "True", p.do(t, "renew 0.1"))
	l := c.Lease(name, tether.WithPollInterval(time.Minute))
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	_, err := l.Acquire(ctx)
	require.ErrorIs(t, err, tether.ErrHeld)
	require.Equal(t, "True", p.do(t, "release"))

	q := startRedisPy(t, shared, name, 600*time.Millisecond)
	require.Equal(t, "True", q.do(t, "acquire 0"))
	began := time.Now()
	h, err := l.Acquire(t.Context()) // its poll is a minute away
	require.NoError(t, err)
	require.Less(t, time.Since(began), 20*time.Second)
	require.Equal(t, "LockNotOwnedError", q.do(t, "reacquire"))
	require.Equal(t, "LockNotOwnedError", q.do(t, "release"))
	require.NoError(t, h.Err())
	require.NoError(t, h.Release(t.Context()))
}

// With the token of a lease, redis-py can renew and release it: key, value and
// comparison are the same.
func TestRedisPyRenewsAndReleasesWithTheTokenOfALease(t *testing.T) {
	c, rdb := leases(t)
	const name = "lease:token"
	h, err := c.Lease(name, tether.WithTTL(2*time.Second), tether.WithRenewInterval(time.Second)).Acquire(t.Context())
	require.NoError(t, err)
	p := startRedisPy(t, shared, name, 30*time.Second)
	require.Equal(t, "True", p.do(t, "set_token %s", h.ID()))
	require.Equal(t, "True", p.do(t, "owned"))
	require.Equal(t, "True", p.do(t, "reacquire"))
	require.Greater(t, rdb.PTTL(t.Context(), name).Val(), 20*time.Second)
	require.Equal(t, "True", p.do(t, "release"))
	<-h.Lost() // at its next renewal
	require.ErrorContains(t, h.Err(), "deleted")
}

// A program that waits with redis-py is granted the lease of a killed tether
// process when the key expires.
func TestRedisPyTakesAnExpiredLease(t *testing.T) {
	c, rdb := leases(t)
	const name = "lease:crash"
	h, err := c.Lease(name, tether.WithTTL(time.Second)).Acquire(t.Context())
	require.NoError(t, err)
	p := startRedisPy(t, shared, name, 10*time.Second)
	// After a crash the holder's key is still there, and nobody renews it.
	id := h.ID()
	require.NoError(t, h.Release(t.Context()))
	require.NoError(t, rdb.Set(t.Context(), name, id, time.Second).Err())
	require.Equal(t, "True", p.do(t, "acquire 20"))
	require.Equal(t, "True", p.do(t, "release"))
}

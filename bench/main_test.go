package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/internal/redistest"
)

// TestMain lets the test binary be a worker or an etcd, too.
func TestMain(m *testing.M) {
	played, err := playRole()
	if !played {
		orderLimit = 15 * time.Second // the longest TTL, and more
		// The race detector has each of the many workers sleep for a second at
		// its end.
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
		os.Exit(m.Run())
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// small is a run that does a little of everything.
func small(t *testing.T) *bench {
	t.Helper()
	redistest.Require(t)
	b, err := newBench(options{rounds: 1, duration: 50 * time.Millisecond, quick: true}, &progress{out: io.Discard, begin: time.Now()})
	require.NoError(t, err)
	t.Cleanup(b.end)
	return b
}

// TestSections runs each section with every peer that there is; the figures mean
// nothing. A peer that does not work is an error, but not one that falls silent: with
// the race detector rueidislock misses releases every now and then, and what the
// run does about that is to leave it out.
func TestSections(t *testing.T) {
	for _, s := range sections() {
		t.Run(s.name, func(t *testing.T) {
			b := small(t)
			c := &chapter{name: s.name, title: s.title, work: s.work}
			require.NoError(t, s.run(b, c))
			for _, err := range b.failed {
				require.ErrorIs(t, err, errNoAnswer)
			}
			require.NotEmpty(t, c.tables)
			require.NotEmpty(t, c.verdicts)
			for _, table := range c.tables {
				require.NotEmpty(t, table.rows)
				for _, row := range table.rows {
					require.Len(t, row, len(table.head))
				}
			}
			for i := range c.charts {
				requireXML(t, c.charts[i].svg())
			}
		})
	}
}

// TestEveryPeerHandsOver holds the wrappers of the peers to what a lock is: a
// waiter is granted nothing before the holder releases.
func TestEveryPeerHandsOver(t *testing.T) {
	b := small(t)
	for _, p := range b.field(notQuick, waits) {
		t.Run(p.id(), func(t *testing.T) {
			for attempt := 1; ; attempt++ {
				took, err := handedOver(t, b, p)
				if errors.Is(err, errNoAnswer) && attempt < 3 {
					continue
				}
				require.NoError(t, err)
				require.Positive(t, took, "nobody is granted a lock before its release was called")
				return
			}
		})
	}
}

func handedOver(t *testing.T, b *bench, p *peer) (time.Duration, error) {
	one, err := b.pairOf(p, pinning{})
	require.NoError(t, err)
	defer crew{one.holder, one.waiter}.end()
	_, err = one.holder.tell(order{Do: doAcquire, Name: one.name})
	require.NoError(t, err)
	return one.handOver()
}

func TestWorkerThatHasGoneIsAnError(t *testing.T) {
	b := small(t)
	m, err := b.hire(peerOf(own), pinning{}, 0)
	require.NoError(t, err)
	m.kill()
	_, err = m.tell(order{Do: doUsage})
	require.ErrorContains(t, err, errEnded.Error())
	_, err = m.tell(order{Do: doUsage})
	require.Error(t, err, "and stays one")
}

func TestUnknownOrderIsAnError(t *testing.T) {
	b := small(t)
	m, err := b.hire(peerOf(own), pinning{}, 0)
	require.NoError(t, err)
	defer m.end()
	_, err = m.tell(order{Do: "dance"})
	require.ErrorContains(t, err, "dance")
}

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

// TestMain lets the test binary run as a worker or as etcd.
func TestMain(m *testing.M) {
	ran, err := runRole()
	if !ran {
		responseTimeout = 15 * time.Second // more than the longest TTL
		// With the race detector every process sleeps for a second before it
		// exits, and there are many workers.
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
		os.Exit(m.Run())
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// quickBench is the shortest run.
func quickBench(t *testing.T) *bench {
	t.Helper()
	redistest.Require(t)
	b, err := newBench(options{rounds: 1, duration: 50 * time.Millisecond, quick: true}, &progress{out: io.Discard, begin: time.Now()})
	require.NoError(t, err)
	t.Cleanup(b.close)
	return b
}

// TestSections runs each section with every peer; the figures mean nothing. A peer
// that fails is an error, but a peer that does not respond is not: with the race
// detector rueidislock sometimes misses a release, and the run then leaves it out.
func TestSections(t *testing.T) {
	for _, s := range sections() {
		t.Run(s.name, func(t *testing.T) {
			b := quickBench(t)
			sec := &reportSection{name: s.name, title: s.title, about: s.about}
			require.NoError(t, s.run(b, sec))
			for _, err := range b.failed {
				require.ErrorIs(t, err, errNoResponse)
			}
			require.NotEmpty(t, sec.tables)
			require.NotEmpty(t, sec.targets)
			for _, table := range sec.tables {
				require.NotEmpty(t, table.rows)
				for _, row := range table.rows {
					require.Len(t, row, len(table.head))
				}
			}
			for i := range sec.charts {
				requireXML(t, sec.charts[i].svg())
			}
		})
	}
}

// TestEveryPeerHandsOver checks the wrappers of the peers: a waiter is granted the
// lock only after the holder has released it.
func TestEveryPeerHandsOver(t *testing.T) {
	b := quickBench(t)
	for _, p := range b.selectPeers(notTether20ms, notFloor) {
		t.Run(p.id(), func(t *testing.T) {
			for attempt := 1; ; attempt++ {
				took, err := handOverOnce(t, b, p)
				if errors.Is(err, errNoResponse) && attempt < 3 {
					continue
				}
				require.NoError(t, err)
				require.Positive(t, took, "nobody is granted a lock before its release was called")
				return
			}
		})
	}
}

func handOverOnce(t *testing.T, b *bench, p *peer) (time.Duration, error) {
	pr, err := b.startPair(p, pinning{})
	require.NoError(t, err)
	defer workers{pr.holder, pr.waiter}.stop()
	_, err = pr.holder.call(request{Task: taskAcquire, Name: pr.name})
	require.NoError(t, err)
	return pr.handOver()
}

func TestWorkerThatHasExitedIsAnError(t *testing.T) {
	b := quickBench(t)
	wp, err := b.startWorker(peerByID(tetherLibrary), pinning{}, 0)
	require.NoError(t, err)
	wp.kill()
	_, err = wp.call(request{Task: taskUsage})
	require.ErrorContains(t, err, errProcessEnded.Error())
	_, err = wp.call(request{Task: taskUsage})
	require.Error(t, err, "and stays one")
}

func TestUnknownTaskIsAnError(t *testing.T) {
	b := quickBench(t)
	wp, err := b.startWorker(peerByID(tetherLibrary), pinning{}, 0)
	require.NoError(t, err)
	defer wp.stop()
	_, err = wp.call(request{Task: "dance"})
	require.ErrorContains(t, err, "dance")
}

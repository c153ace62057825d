// Package stress runs locks under fault injection and checks the history.
//
// Eight worker processes acquire several locks of one redis-server, as writers
// with fencing tokens and as readers. Processes are stopped and continued, killed
// and started again. Connections are ended. The server is paused, its scripts and
// its data are flushed, and it is killed and started again.
//
// Every grant and its end, every fault and every decision of the store are
// entries of one file, the history. The store is the resource that the locks
// protect: it refuses a write with a lower token than it has seen. [checker] says
// what must hold of a history.
//
// TETHER_STRESS sets how long the test runs, for example TETHER_STRESS=3m.
package stress

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tetherlock/tether/internal/redistest"
)

func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		runWorker()
	}
	goleak.VerifyTestMain(m)
}

const (
	workerCount = 8
	// defaultDuration is how long the test runs without TETHER_STRESS.
	defaultDuration = 4 * time.Second
	// unavailable and health are options of the locks. They are short, so that
	// there are many reaps and failed health checks in little time.
	unavailable = 400 * time.Millisecond
	health      = time.Second
	// noticeTime is the longest time in which a holder must be told of its loss. It
	// is long enough for a busy machine.
	noticeTime = 500 * time.Millisecond
)

// stressDuration is how long the test runs.
func stressDuration(t *testing.T) time.Duration {
	text := os.Getenv("TETHER_STRESS")
	if text == "" {
		return defaultDuration
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}

func TestStress(t *testing.T) {
	s := runStress(t, stressDuration(t), config{}, true)
	require.Empty(t, s.violations)
	require.NotZero(t, s.stats.writers)
	require.NotZero(t, s.stats.readers)
}

// A checker that never finds anything would pass every history. Here some workers
// write down holds that they do not have, and violations must be found.
func TestHoldsWithoutTheLockAreFound(t *testing.T) {
	s := runStress(t, time.Second, config{SkipLock: true}, false)
	require.NotEmpty(t, s.violations)
}

// runStress runs the workers for a duration, and returns the checker of their
// history.
func runStress(t *testing.T, d time.Duration, o config, withFaults bool) *checker {
	server := redistest.Start(t)
	path := filepath.Join(t.ArtifactDir(), "history")
	j, err := openHistory(path)
	require.NoError(t, err)
	store := startStore(t, j)
	o.Redis, o.Store, o.History = server.Addr, store.addr(), path
	o.Writers, o.Readers = []string{"a", "b", "mixed", "a-lock-b"}, []string{"mixed", "a-lock-b"}
	o.Unavailable, o.Health = unavailable, health

	processes := startWorkers(t, o, j)
	done := make(chan struct{})
	faults := startFaults(server, j, processes, o, withFaults, done)
	<-time.After(d)
	close(done)
	require.NoError(t, faults())

	for _, c := range processes {
		require.NoError(t, c.input.Close())
	}
	for _, c := range processes {
		c.await(t, 2*finalTimeout)
	}
	store.close()
	checkServerIsClean(t, server)
	require.NoError(t, j.file.Close())
	return checkHistory(t, path)
}

// startWorkers starts the worker processes.
func startWorkers(t *testing.T, o config, j *historyFile) []*workerProcess {
	var processes []*workerProcess
	for i := range workerCount {
		c := &workerProcess{config: o, name: fmt.Sprintf("w%d", i), history: j}
		require.NoError(t, c.launch())
		t.Cleanup(func() { _ = c.cmd.Process.Kill() }) // it has ended unless the test failed
		processes = append(processes, c)
	}
	return processes
}

// startFaults starts the fault injection, which goes on until done is closed. The
// function that it returns waits until the last fault is over.
func startFaults(server *redistest.Server, j *historyFile, processes []*workerProcess, o config, withFaults bool, done <-chan struct{}) func() error {
	ctx, cancel := context.WithCancel(context.Background())
	var all, watching sync.WaitGroup
	errs := make(chan error, len(processes)+1)
	watching.Go(func() { watchStalls(ctx, j, "") })
	// A pause holds up commands of this client too, and after a restart its
	// connection is broken.
	admin := server.Options()
	admin.ReadTimeout, admin.MaxRetries = time.Minute, 3
	r := &serverFaults{server: server, admin: redis.NewClient(admin), history: j, config: o, done: done}
	if withFaults {
		all.Go(func() { errs <- r.run() })
		for _, c := range processes {
			all.Go(func() { errs <- c.injectFaults(o.Unavailable, done) })
		}
	}
	return func() error {
		all.Wait()
		cancel()
		watching.Wait()
		close(errs)
		_, err := r.do("CLIENT", "UNPAUSE")
		for e := range errs {
			err = errors.Join(err, e)
		}
		return errors.Join(err, r.admin.Close())
	}
}

// checkServerIsClean checks that no subscription and no connection of the workers
// is left.
func checkServerIsClean(t *testing.T, server *redistest.Server) {
	require.Empty(t, server.MustDo(t, "PUBSUB", "CHANNELS"))
	require.Eventually(t, func() bool {
		text, err := server.Do("CLIENT", "LIST")
		return err == nil && strings.Count(text.(string), "\n") == 1
	}, 5*time.Second, 10*time.Millisecond, "only this connection is left")
}

// checkHistory checks the history and logs its statistics. Every SIGKILL may cut
// off one line.
func checkHistory(t *testing.T, path string) *checker {
	history, torn, err := readHistory(path)
	require.NoError(t, err)
	c := &checker{unavailable: unavailable, health: health, noticeTime: noticeTime}
	c.check(history)
	t.Logf("\n%v\n%d violations", c.stats, len(c.violations))
	require.LessOrEqual(t, torn, c.stats.kills, "torn lines")
	return c
}

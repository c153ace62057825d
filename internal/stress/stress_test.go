// Package stress lets processes take locks while everything around them goes
// wrong, and judges what has come of it.
//
// Eight worker processes work on several locks of one redis-server, as writers
// with fencing tokens and as readers. They are stopped and continued, killed
// and started again; their connections are ended, and the server pauses,
// forgets its scripts and its data, and is killed and started again. Each grant
// and its end are written to one file, and every write under a lock goes to a
// store that checks the token. What must hold of the file is said at [judge].
//
// TETHER_STRESS sets for how long, for example TETHER_STRESS=3m.
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
		work()
	}
	goleak.VerifyTestMain(m)
}

const (
	workers = 8
	// plain is how long the stress takes if nothing else is said.
	plain = 4 * time.Second
	// unavailable and health are options of the locks: short, so that much
	// happens.
	unavailable = 400 * time.Millisecond
	health      = time.Second
	// tell is how long a holder may need to learn of its loss, on a machine
	// that has other things to do.
	tell = 500 * time.Millisecond
)

// budget is how long the stress takes.
func budget(t *testing.T) time.Duration {
	text := os.Getenv("TETHER_STRESS")
	if text == "" {
		return plain
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}

func TestStress(t *testing.T) {
	s := play(t, budget(t), orders{}, true)
	require.Empty(t, s.violations)
	require.NotZero(t, s.tally.writers)
	require.NotZero(t, s.tally.readers)
}

// A judge who finds nothing has to find something where there is something:
// here some holds begin without the lock.
func TestCheatsAreFound(t *testing.T) {
	s := play(t, time.Second, orders{Cheat: true}, false)
	require.NotEmpty(t, s.violations)
}

// play lets workers work, for a duration, and judges them.
func play(t *testing.T, d time.Duration, o orders, torment bool) *judge {
	server := redistest.Start(t)
	path := filepath.Join(t.ArtifactDir(), "history")
	j, err := openJournal(path)
	require.NoError(t, err)
	store := startStore(t, j)
	o.Redis, o.Store, o.Journal = server.Addr, store.addr(), path
	o.Writers, o.Readers = []string{"a", "b", "mixed", "a-lock-b"}, []string{"mixed", "a-lock-b"}
	o.Unavailable, o.Health = unavailable, health

	crew := muster(t, o, j)
	over := make(chan struct{})
	faults := beset(server, j, crew, o, torment, over)
	<-time.After(d)
	close(over)
	require.NoError(t, faults())

	for _, c := range crew {
		require.NoError(t, c.input.Close())
	}
	for _, c := range crew {
		c.await(t, 2*final)
	}
	store.close()
	leavesNothing(t, server)
	require.NoError(t, j.file.Close())
	return verdict(t, path)
}

// muster starts the workers.
func muster(t *testing.T, o orders, j *journal) []*crewman {
	var crew []*crewman
	for i := range workers {
		c := &crewman{orders: o, name: fmt.Sprintf("w%d", i), journal: j}
		require.NoError(t, c.launch())
		t.Cleanup(func() { _ = c.cmd.Process.Kill() }) // it has ended unless the test failed
		crew = append(crew, c)
	}
	return crew
}

// beset starts everything that goes wrong, until the end. The function that it
// returns waits until all is quiet again.
func beset(server *redistest.Server, j *journal, crew []*crewman, o orders, torment bool, over <-chan struct{}) func() error {
	ctx, cancel := context.WithCancel(context.Background())
	var all, beating sync.WaitGroup
	errs := make(chan error, len(crew)+1)
	beating.Go(func() { watchStalls(ctx, j, "") })
	// A command waits for the end of a pause, and behind a restart it finds its
	// connection dead.
	admin := server.Options()
	admin.ReadTimeout, admin.MaxRetries = time.Minute, 3
	r := &tormentor{server: server, admin: redis.NewClient(admin), journal: j, orders: o, over: over}
	if torment {
		all.Go(func() { errs <- r.run() })
		for _, c := range crew {
			all.Go(func() { errs <- c.haunt(o.Unavailable, over) })
		}
	}
	return func() error {
		all.Wait()
		cancel()
		beating.Wait()
		close(errs)
		_, err := r.do("CLIENT", "UNPAUSE")
		for e := range errs {
			err = errors.Join(err, e)
		}
		return errors.Join(err, r.admin.Close())
	}
}

// leavesNothing checks that the workers have left nothing at the server.
func leavesNothing(t *testing.T, server *redistest.Server) {
	require.Empty(t, server.MustDo(t, "PUBSUB", "CHANNELS"))
	require.Eventually(t, func() bool {
		text, err := server.Do("CLIENT", "LIST")
		return err == nil && strings.Count(text.(string), "\n") == 1
	}, 5*time.Second, 10*time.Millisecond, "only the one that asks is connected")
}

func verdict(t *testing.T, path string) *judge {
	history, torn, err := readHistory(path)
	require.NoError(t, err)
	s := &judge{unavailable: unavailable, health: health, tell: tell}
	s.judge(history)
	t.Logf("\n%v\n%d violations", s.tally, len(s.violations))
	require.LessOrEqual(t, torn, s.tally.kills, "torn lines")
	return s
}

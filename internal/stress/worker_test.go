package stress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/tetherlock/tether"
)

// workerEnv makes the test binary a worker process.
const workerEnv = "TETHER_STRESS_WORKER"

// config is the configuration of a worker process, as JSON in its environment.
type config struct {
	Who, Redis, Store, History string
	// Writers and Readers are names of locks, to be acquired exclusive and shared.
	Writers, Readers []string
	// Unavailable and Health are options of the locks.
	Unavailable, Health time.Duration
	// SkipLock makes some holds begin without the lock.
	SkipLock bool
}

const (
	// A process has a timer of stallCheckInterval. If the timer is later than
	// stalledAfter, the process did not run.
	stallCheckInterval = 10 * time.Millisecond
	stalledAfter       = 60 * time.Millisecond
	// waitTimeout is for acquires during the faults, finalTimeout for the last one
	// of each lock, after the faults.
	waitTimeout  = 5 * time.Second
	finalTimeout = 30 * time.Second
)

// runWorker is the main function of a worker process. It acquires locks until its
// input is closed, and then each lock once more, which must succeed.
func runWorker() {
	var o config
	if err := json.Unmarshal([]byte(os.Getenv(workerEnv)), &o); err != nil {
		panic(err)
	}
	j, err := openHistory(o.History)
	if err != nil {
		panic(err)
	}
	w := &worker{config: o, history: j, rdb: redis.NewClient(&redis.Options{Addr: o.Redis})}
	w.client = tether.New(w.rdb)
	w.add(entry{Kind: started})
	ctx, cancel := context.WithCancel(context.Background())
	watching := sync.WaitGroup{}
	watching.Go(func() { watchStalls(ctx, j, o.Who) })
	w.run()
	w.check(w.client.Close())
	w.check(w.rdb.Close())
	cancel()
	watching.Wait()
	w.check(goleak.Find())
	w.add(entry{Kind: finished})
	os.Exit(0)
}

type worker struct {
	config
	history *historyFile
	rdb     *redis.Client
	client  *tether.Client
	holds   atomic.Int64
}

func (w *worker) add(e entry) {
	e.Who = w.Who
	w.history.add(e)
}

func (w *worker) check(err error) {
	if err != nil {
		w.add(entry{Kind: workerError, Text: err.Error()})
	}
}

// watchStalls adds an entry whenever the process did not run.
func watchStalls(ctx context.Context, j *historyFile, who string) {
	tick := time.NewTicker(stallCheckInterval)
	defer tick.Stop()
	for then := clock(); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := clock()
		if now-then > stalledAfter {
			j.add(entry{Kind: stall, Who: who, Then: then})
		}
		then = now
	}
}

// run acquires locks until the input is closed.
func (w *worker) run() {
	done := make(chan struct{})
	var running, input sync.WaitGroup
	input.Go(func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // an error ends the input as well
		close(done)
	})
	for _, name := range w.Writers {
		running.Go(func() { w.runLock(name, writer, done) })
	}
	for _, name := range w.Readers {
		running.Go(func() { w.runLock(name, reader, done) })
	}
	running.Wait()
	input.Wait()
}

// lockWorker is a goroutine that acquires one lock.
type lockWorker struct {
	*worker
	name, mode string
	options    []tether.LockOption
	lock       *tether.Lock
	store      *storeClient
}

// runLock acquires one lock again and again.
func (w *worker) runLock(name, mode string, done <-chan struct{}) {
	store, err := dialStore(w.Store)
	if err != nil {
		w.check(err)
		return
	}
	defer store.close()
	h := &lockWorker{worker: w, name: name, mode: mode, store: store, options: []tether.LockOption{
		tether.WithUnavailableTimeout(w.Unavailable), tether.WithHealthCheck(w.Health), tether.WithLabel(w.Who),
	}}
	if mode == reader {
		h.options = append(h.options, tether.Shared())
	} else {
		h.options = append(h.options, tether.Fenced())
	}
	h.lock = w.client.Lock(name, h.options...)
	defer func() { w.check(h.lock.Close()) }()
	for {
		select {
		case <-done:
			if !h.acquireOnce(h.lock.Acquire, finalTimeout, false) {
				w.check(fmt.Errorf("no %s of %s, although the faults are over", mode, name))
			}
			return
		case <-time.After(rand.N(3 * time.Millisecond)):
			h.acquireOnce(h.randomAcquire())
		}
	}
}

type acquire func(context.Context) (*tether.Hold, error)

// randomAcquire picks a way to acquire the lock, and a time-out. A try may end
// before the time-out, a wait may not.
func (h *lockWorker) randomAcquire() (ask acquire, within time.Duration, isTry bool) {
	once := func(ctx context.Context) (*tether.Hold, error) { return h.client.Acquire(ctx, h.name, h.options...) }
	async := func(ctx context.Context) (*tether.Hold, error) {
		r := <-h.lock.AcquireAsync(ctx)
		return r.Hold, r.Err
	}
	switch n := rand.IntN(20); {
	case h.SkipLock && n < 7:
		return nil, 0, false
	case n < 2:
		return h.lock.TryAcquire, waitTimeout, true
	case n < 4:
		return once, waitTimeout, false
	case n < 5:
		return async, rand.N(20 * time.Millisecond), false
	case n < 7:
		return h.lock.Acquire, rand.N(20 * time.Millisecond), false
	case n < 9: // long enough to notice a silent participant, too short to reap it
		return h.lock.Acquire, rand.N(time.Second), false
	default:
		return h.lock.Acquire, waitTimeout, false
	}
}

// acquireOnce acquires the lock and works under it. It returns false if it does
// not get the lock.
func (h *lockWorker) acquireOnce(ask acquire, within time.Duration, isTry bool) bool {
	asked := clock()
	if ask == nil {
		h.workUnderLock(nil, entry{Token: int64(asked / time.Microsecond)})
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	hold, err := ask(ctx)
	if err != nil {
		e := entry{Then: asked, N: int64(within)}
		if isTry {
			e.N = 0
		}
		h.addFailure(err, e)
		return false
	}
	h.workUnderLock(hold, entry{Token: hold.Token(), ID: hold.ID(), Then: asked})
	return true
}

// addFailure adds the entry of an acquire that failed. e says when the acquire
// began and how long it could take. An error that will not pass by itself, such as
// a missing permission, is a workerError: no fault causes it.
func (h *lockWorker) addFailure(err error, e entry) {
	e.Lock, e.Mode, e.Text = h.name, h.mode, err.Error()
	_, wrong := errors.AsType[*tether.ConfigError](err)
	_, unsupported := errors.AsType[*tether.UnsupportedError](err)
	_, permission := errors.AsType[*tether.PermissionError](err)
	switch {
	case wrong, unsupported, permission, errors.Is(err, tether.ErrClosed):
		h.check(err)
		return
	case errors.Is(err, context.DeadlineExceeded):
		e.Kind = cancelled
	case errors.Is(err, tether.ErrHeld):
		e.Kind = denied
	default:
		e.Kind = failed
	}
	h.add(e)
}

// workUnderLock writes to the store under a hold, which is nil with SkipLock. The
// end entry comes before the release. Otherwise the next holder's begin entry
// could come first, and look like an overlap.
func (h *lockWorker) workUnderLock(hold *tether.Hold, e entry) {
	e.Kind, e.Lock, e.Mode, e.Hold = begin, h.name, h.mode, int(h.holds.Add(1))
	h.add(e)
	var done <-chan struct{}
	if hold != nil {
		done = hold.Lost()
	}
	h.writeToStore(done, e)
	if hold == nil {
		h.add(entry{Kind: end, Hold: e.Hold})
		return
	}
	loss, isLost := errors.AsType[*tether.LostError](hold.Err())
	if !isLost {
		h.add(entry{Kind: end, Hold: e.Hold})
		ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
		defer cancel()
		loss, isLost = errors.AsType[*tether.LostError](hold.Release(ctx)) // the checker finds other errors in the history
	}
	if isLost {
		h.add(entry{Kind: lost, Hold: e.Hold, Then: time.Duration(loss.At.UnixNano()), Text: loss.Error()})
	}
}

// writeToStore writes to the store and waits, until the hold is lost. One in fifty
// takes long, so that faults happen during the hold.
func (h *lockWorker) writeToStore(done <-chan struct{}, e entry) {
	rounds, pause := 1+rand.IntN(2), time.Millisecond
	if rand.IntN(50) == 0 {
		rounds, pause = 10, 30*time.Millisecond
	}
	for range rounds {
		if h.mode == writer {
			ok, err := h.store.put(write{Who: h.Who, Lock: h.name, Hold: e.Hold, Token: e.Token})
			h.check(err)
			if !ok {
				return
			}
		}
		select {
		case <-done:
			return
		case <-time.After(rand.N(pause)):
		}
	}
}

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

// orders are what a worker is told at its start.
type orders struct {
	Who, Redis, Store, Journal string
	// Writers and Readers are the locks to take; Readers are shared.
	Writers, Readers []string
	// Unavailable and Health are options of the locks.
	Unavailable, Health time.Duration
	// Cheat begins some holds without the lock.
	Cheat bool
}

const (
	// beat is how often a process looks whether it runs, and stalledAfter how
	// late a look may be.
	beat         = 10 * time.Millisecond
	stalledAfter = 60 * time.Millisecond
	// patient is how long most waits may take, and final the last one, when
	// nothing disturbs any more.
	patient = 5 * time.Second
	final   = 30 * time.Second
)

// work is the life of a worker process: it takes locks until its input ends,
// takes each once more, and leaves.
func work() {
	var o orders
	if err := json.Unmarshal([]byte(os.Getenv(workerEnv)), &o); err != nil {
		panic(err)
	}
	j, err := openJournal(o.Journal)
	if err != nil {
		panic(err)
	}
	w := &worker{orders: o, journal: j, rdb: redis.NewClient(&redis.Options{Addr: o.Redis})}
	w.client = tether.New(w.rdb)
	w.add(entry{Kind: started})
	ctx, cancel := context.WithCancel(context.Background())
	beating := sync.WaitGroup{}
	beating.Go(func() { watchStalls(ctx, j, o.Who) })
	w.run()
	w.check(w.client.Close())
	w.check(w.rdb.Close())
	cancel()
	beating.Wait()
	w.check(goleak.Find())
	w.add(entry{Kind: left})
	os.Exit(0)
}

type worker struct {
	orders
	journal *journal
	rdb     *redis.Client
	client  *tether.Client
	holds   atomic.Int64
}

func (w *worker) add(e entry) {
	e.Who = w.Who
	w.journal.add(e)
}

func (w *worker) check(err error) {
	if err != nil {
		w.add(entry{Kind: trouble, Text: err.Error()})
	}
}

// watchStalls notes when the process has not run.
func watchStalls(ctx context.Context, j *journal, who string) {
	tick := time.NewTicker(beat)
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

// run works until the input ends.
func (w *worker) run() {
	over := make(chan struct{})
	var hands, input sync.WaitGroup
	input.Go(func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // whatever ends it is the end
		close(over)
	})
	for _, name := range w.Writers {
		hands.Go(func() { w.take(name, writer, over) })
	}
	for _, name := range w.Readers {
		hands.Go(func() { w.take(name, reader, over) })
	}
	hands.Wait()
	input.Wait()
}

// hand is one goroutine's work on one lock.
type hand struct {
	*worker
	name, mode string
	options    []tether.LockOption
	lock       *tether.Lock
	store      *storeClient
}

// take takes one lock again and again.
func (w *worker) take(name, mode string, over <-chan struct{}) {
	store, err := dialStore(w.Store)
	if err != nil {
		w.check(err)
		return
	}
	defer store.close()
	h := &hand{worker: w, name: name, mode: mode, store: store, options: []tether.LockOption{
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
		case <-over:
			if !h.turn(h.lock.Acquire, final, false) {
				w.check(fmt.Errorf("no %s of %s, though all is quiet", mode, name))
			}
			return
		case <-time.After(rand.N(3 * time.Millisecond)):
			h.turn(h.way())
		}
	}
}

type acquire func(context.Context) (*tether.Hold, error)

// way is how a lock is asked for, for how long, and whether that is a try.
func (h *hand) way() (ask acquire, within time.Duration, try bool) {
	once := func(ctx context.Context) (*tether.Hold, error) { return h.client.Acquire(ctx, h.name, h.options...) }
	async := func(ctx context.Context) (*tether.Hold, error) {
		r := <-h.lock.AcquireAsync(ctx)
		return r.Hold, r.Err
	}
	switch n := rand.IntN(20); {
	case h.Cheat && n < 7:
		return nil, 0, false
	case n < 2:
		return h.lock.TryAcquire, patient, true
	case n < 4:
		return once, patient, false
	case n < 5:
		return async, rand.N(20 * time.Millisecond), false
	case n < 7:
		return h.lock.Acquire, rand.N(20 * time.Millisecond), false
	default:
		return h.lock.Acquire, patient, false
	}
}

// turn asks for the lock once, and works under it if it gets it.
func (h *hand) turn(ask acquire, within time.Duration, try bool) bool {
	asked := clock()
	if ask == nil {
		h.work(nil, entry{Token: int64(asked / time.Microsecond)})
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	hold, err := ask(ctx)
	if err != nil {
		e := entry{Then: asked, N: int64(within)}
		if try {
			e.N = 0
		}
		h.refused(err, e)
		return false
	}
	h.work(hold, entry{Token: hold.Token(), ID: hold.ID(), Then: asked})
	return true
}

// refused notes an acquire that got nothing. Whatever trying again would not
// mend is trouble.
func (h *hand) refused(err error, e entry) {
	e.Lock, e.Mode, e.Text = h.name, h.mode, err.Error()
	_, wrong := errors.AsType[*tether.ConfigError](err)
	_, unsupported := errors.AsType[*tether.UnsupportedError](err)
	_, permission := errors.AsType[*tether.PermissionError](err)
	switch {
	case wrong, unsupported, permission, errors.Is(err, tether.ErrClosed):
		h.check(err)
	case errors.Is(err, context.DeadlineExceeded):
		e.Kind = gaveUp
		h.add(e)
	case errors.Is(err, tether.ErrHeld):
		e.Kind = denied
		h.add(e)
	default:
		e.Kind = failed
		h.add(e)
	}
}

// work is what is done under a hold, nil for a cheat's. The end is noted before
// the release, so that whatever comes behind the release in the history comes
// behind the end.
func (h *hand) work(hold *tether.Hold, e entry) {
	e.Kind, e.Lock, e.Mode, e.Hold = begin, h.name, h.mode, int(h.holds.Add(1))
	h.add(e)
	var over <-chan struct{}
	if hold != nil {
		over = hold.Lost()
	}
	h.use(over, e)
	if hold == nil {
		h.add(entry{Kind: end, Hold: e.Hold})
		return
	}
	loss, isLost := errors.AsType[*tether.LostError](hold.Err())
	if !isLost {
		h.add(entry{Kind: end, Hold: e.Hold})
		ctx, cancel := context.WithTimeout(context.Background(), patient)
		defer cancel()
		loss, isLost = errors.AsType[*tether.LostError](hold.Release(ctx)) // the history shows what else is wrong
	}
	if isLost {
		h.add(entry{Kind: lost, Hold: e.Hold, Then: time.Duration(loss.At.UnixNano()), Text: loss.Error()})
	}
}

// use writes to the store and takes its time, until the hold is lost. Some
// work is long, so that it is met by whatever happens.
func (h *hand) use(over <-chan struct{}, e entry) {
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
		case <-over:
			return
		case <-time.After(rand.N(pause)):
		}
	}
}

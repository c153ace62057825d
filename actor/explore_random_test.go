package actor

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRandomSchedules lets locks and portalocker peers of one name meet on a
// model of Redis in random order: streams that are slow, connections that are
// killed, participants that freeze, calls that are cancelled, nodes that are
// demoted, writes that are paused, scripts that are forgotten. A failing seed is
// printed with what happened; TETHER_SEED plays it again, TETHER_STEPS sets the
// budget.
func TestRandomSchedules(t *testing.T) {
	explore(t, envNumber(t, "TETHER_STEPS", randomSteps), randomWorld)
}

// TestWakesAlone has locks only, and a poll that never comes: without crashes
// the wakes bring everybody in.
func TestWakesAlone(t *testing.T) {
	explore(t, envNumber(t, "TETHER_STEPS", randomSteps)/4, wakeWorld)
}

// stepsOfWorld is how long a world is disturbed before it comes to its end.
const stepsOfWorld = 3_000

// explore plays worlds until the budget is used up.
func explore(t *testing.T, steps int, build func(seed uint64) *model) {
	t.Helper()
	if seed := envNumber(t, "TETHER_SEED", 0); seed != 0 {
		requireNoDefect(t, uint64(seed), build)
		return
	}
	played, grants, longest := 0, 0, 0
	for seed := uint64(1); played < steps; seed++ {
		w := build(seed)
		if w.play() != nil {
			requireNoDefect(t, seed, build)
		}
		played += w.steps
		grants += w.grants
		longest = max(longest, w.steps-stepsOfWorld)
	}
	t.Logf("%d steps, %d grants, the longest end took %d steps", played, grants, longest)
	require.Greater(t, grants, played/1000, "a world in which nobody holds shows nothing")
}

// requireNoDefect plays a world with a transcript.
func requireNoDefect(t *testing.T, seed uint64, build func(seed uint64) *model) {
	t.Helper()
	w := build(seed)
	w.logging = true
	d := w.play()
	if d == nil {
		return
	}
	for _, line := range w.log[max(0, len(w.log)-envNumber(t, "TETHER_LINES", 150)):] {
		t.Log(line)
	}
	t.Fatalf("%s (TETHER_SEED=%d, step %d)", d.text, seed, w.steps)
}

func envNumber(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, variable)
	return n
}

// play disturbs a world for a while, and lets it come to its end.
func (w *model) play() (found *defect) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case defect:
			found = &r
		default:
			found = &defect{fmt.Sprintf("panic: %v\n%s", r, debug.Stack())}
		}
	}()
	for w.steps < stepsOfWorld {
		w.move()
	}
	w.finish()
	return nil
}

func newModel(seed uint64) *model {
	return &model{rand: rand.New(rand.NewPCG(seed, 0)), now: dawn, redis: redis{apart: mutant(countAndPingApart)}}
}

func randomWorld(seed uint64) *model {
	w := newModel(seed)
	w.lag = []time.Duration{0, 5 * time.Millisecond, 60 * time.Millisecond, 140 * time.Millisecond}[w.rand.IntN(4)]
	w.mood = mood(w.rand.IntN(4))
	w.denies = w.chance(10)
	w.winter = []int{4, 30}[w.rand.IntN(2)]
	w.patience = []int{2, 8, 100}[w.rand.IntN(3)]
	w.addNeighbour()
	readers := w.rand.IntN(3) // of four
	for range 2 + w.rand.IntN(4) {
		l := w.addLock(Config{
			Shared: w.rand.IntN(4) < readers, Fenced: w.chance(3), Once: w.chance(5),
			Health: 10 * time.Second, Reply: 5 * time.Second, Unavailable: time.Second, Poll: 100 * time.Millisecond,
		})
		if w.lag == 0 && w.chance(2) {
			l.m.cfg.Unavailable = 50 * time.Millisecond
		}
		l.m.cfg.Fenced = l.m.cfg.Fenced && !l.m.cfg.Shared
		if w.chance(3) {
			l.m.crowdSize = 1 + w.rand.IntN(3)
		}
		l.pool = w.rand.IntN(3)
		if w.chance(4) {
			l.m.cfg.SelfCheck = 3 * time.Second
		}
		if w.chance(4) {
			l.m.cfg.MaxWait = 2 * time.Second
		}
	}
	if w.chance(8) {
		// One that answers must be told from one that does not.
		w.mood, w.winter = ice, 30
		w.addPort(v32, false, false, w.newID(nobody))
		w.addPort(v32, false, false, w.newID(nobody))
	} else if w.chance(2) {
		for range 1 + w.rand.IntN(2) {
			w.addPort(generation(w.rand.IntN(3)), w.chance(4), w.chance(3), w.newID(nobody))
		}
	}
	return w
}

func wakeWorld(seed uint64) *model {
	w := newModel(seed)
	w.full, w.patience = true, []int{2, 8, 100}[w.rand.IntN(3)]
	w.lag = 5 * time.Millisecond
	readers := w.rand.IntN(3)
	for range 2 + w.rand.IntN(4) {
		w.addLock(Config{
			Shared: w.rand.IntN(4) < readers,
			Health: 10 * time.Second, Reply: 5 * time.Second, Unavailable: time.Second, Poll: never,
		}).pool = w.rand.IntN(3)
	}
	return w
}

// never is a poll that does not come.
const never = 10_000 * time.Hour

// move makes one step, and says whether anything was to be done.
func (w *model) move() bool {
	n := w.rand.IntN(100)
	switch {
	case n < 42 && w.pick(w.ready, w.serve):
	case n < 84 && w.pick(w.deliverable, w.deliver):
	case n < 94 && w.passAny():
	case !w.calm && w.meddle():
	default:
		return false
	}
	w.steps++
	w.judge()
	if w.steps%64 == 0 {
		w.sweep()
	}
	return true
}

// pick takes one of the connections that allow it, the first of them rather
// often, so that others fall behind.
func (w *model) pick(allowed func(*conn) bool, do func(*conn)) bool {
	if len(w.conns) == 0 {
		return false
	}
	from := 0
	if !w.chance(3) {
		from = w.rand.IntN(len(w.conns))
	}
	for i := range w.conns {
		if c := w.conns[(from+i)%len(w.conns)]; allowed(c) {
			do(c)
			return true
		}
	}
	return false
}

// passAny lets time pass to somebody's deadline, or ends a dial.
func (w *model) passAny() bool {
	num := w.rand.IntN(len(w.locks))
	b := w.bodyOf(num)
	if b.frozen {
		return false
	}
	if l := w.locks[num]; l != nil && l.dial != 0 && w.chance(2) {
		l.connect()
		return true
	}
	at := w.deadline(num)
	if at.IsZero() || w.full && at.Sub(w.now) > never/4 {
		return false
	}
	// Far deadlines are rare among messages that are under way.
	if far := at.Sub(w.now); w.lag == 0 && w.busy() && (w.calm || far > 200*time.Millisecond && !w.chance(20)) {
		return false
	}
	before := w.now
	w.pass(at)
	if at.After(w.now) {
		return w.now.After(before)
	}
	w.tick(num)
	return true
}

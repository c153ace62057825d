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

// TestRandomSchedules simulates locks and portalocker peers of one name on a model
// of Redis. A seeded random generator chooses every step: which connection is read
// next, when time passes, which fault comes. Connections are slow or killed,
// processes freeze, calls are cancelled, nodes are demoted, writes are paused,
// scripts are flushed. A failure prints its seed and its log. TETHER_SEED runs one
// seed again, TETHER_STEPS sets the number of steps.
func TestRandomSchedules(t *testing.T) {
	runRandom(t, envNumber(t, "TETHER_STEPS", randomSteps), randomModel)
}

// TestWakesAlone has no faults, no peers and no poll, so that wakes alone must end
// every wait. With a poll a lost wake would only cost time, and no test would fail.
func TestWakesAlone(t *testing.T) {
	runRandom(t, envNumber(t, "TETHER_STEPS", randomSteps)/4, wakesOnlyModel)
}

// faultSteps is the number of steps of a run with faults. The drain follows.
const faultSteps = 3_000

// runRandom runs one seed after another until it has made enough steps.
func runRandom(t *testing.T, steps int, build func(seed uint64) *model) {
	t.Helper()
	if seed := envNumber(t, "TETHER_SEED", 0); seed != 0 {
		requireNoViolation(t, uint64(seed), build)
		return
	}
	done, grants, longest := 0, 0, 0
	for seed := uint64(1); done < steps; seed++ {
		m := build(seed)
		if m.run() != nil {
			requireNoViolation(t, seed, build)
		}
		done += m.steps
		grants += m.grantCount
		longest = max(longest, m.steps-faultSteps)
	}
	t.Logf("%d steps, %d grants, the longest drain took %d steps", done, grants, longest)
	require.Greater(t, grants, done/1000, "without grants a run proves nothing")
}

// requireNoViolation runs a seed with a log.
func requireNoViolation(t *testing.T, seed uint64, build func(seed uint64) *model) {
	t.Helper()
	m := build(seed)
	m.logging = true
	found := m.run()
	if found == nil {
		return
	}
	for _, line := range m.log[max(0, len(m.log)-envNumber(t, "TETHER_LINES", 150)):] {
		t.Log(line)
	}
	t.Fatalf("%s (TETHER_SEED=%d, step %d)", found.text, seed, m.steps)
}

// envNumber reads a number from the environment.
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

// run makes the steps with faults, and drains. It returns the violation that ended
// the run, or nil.
func (m *model) run() (found *violation) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case violation:
			found = &r
		default:
			found = &violation{fmt.Sprintf("panic: %v\n%s", r, debug.Stack())}
		}
	}()
	for m.steps < faultSteps {
		m.randomStep()
	}
	m.drain()
	return nil
}

func newModel(seed uint64) *model {
	return &model{rand: rand.New(rand.NewPCG(seed, 0)), now: epoch, redis: redis{splitProbe: mutant(countAndPingSplit)}}
}

func randomModel(seed uint64) *model {
	m := newModel(seed)
	m.maxDelay = []time.Duration{0, 5 * time.Millisecond, 60 * time.Millisecond, 140 * time.Millisecond}[m.rand.IntN(4)]
	m.profile = faultProfile(m.rand.IntN(4))
	m.deniesCommands = m.chance(10)
	m.thawOdds = []int{4, 30}[m.rand.IntN(2)]
	m.releaseOdds = []int{2, 8, 100}[m.rand.IntN(3)]
	m.addForeignHolder()
	readers := m.rand.IntN(3) // out of four locks
	for range 2 + m.rand.IntN(4) {
		l := m.addLock(Config{
			Shared: m.rand.IntN(4) < readers, Fenced: m.chance(3), Once: m.chance(5),
			Health: 10 * time.Second, Reply: 5 * time.Second, Unavailable: time.Second, Poll: 100 * time.Millisecond,
		})
		if m.maxDelay == 0 && m.chance(2) {
			l.machine.cfg.Unavailable = 50 * time.Millisecond
		}
		l.machine.cfg.Fenced = l.machine.cfg.Fenced && !l.machine.cfg.Shared
		if m.chance(3) {
			l.machine.crowdSize = uint8(1 + m.rand.IntN(3))
		}
		l.pool = m.rand.IntN(3)
		if m.chance(4) {
			l.machine.cfg.SelfCheck = 3 * time.Second
		}
		if m.chance(4) {
			l.machine.cfg.MaxWait = 2 * time.Second
		}
	}
	if m.chance(8) {
		// Two peers of 3.2 have the same connection name, and one may be frozen
		// while the other answers.
		m.profile, m.thawOdds = freezesAndCuts, 30
		m.addPeer(v32, false, false, m.newID(nobody))
		m.addPeer(v32, false, false, m.newID(nobody))
	} else if m.chance(2) {
		for range 1 + m.rand.IntN(2) {
			m.addPeer(peerVersion(m.rand.IntN(3)), m.chance(4), m.chance(3), m.newID(nobody))
		}
	}
	return m
}

// wakesOnlyModel is the model of TestWakesAlone.
func wakesOnlyModel(seed uint64) *model {
	m := newModel(seed)
	m.noCrashes, m.releaseOdds = true, []int{2, 8, 100}[m.rand.IntN(3)]
	m.maxDelay = 5 * time.Millisecond
	readers := m.rand.IntN(3)
	for range 2 + m.rand.IntN(4) {
		m.addLock(Config{
			Shared: m.rand.IntN(4) < readers,
			Health: 10 * time.Second, Reply: 5 * time.Second, Unavailable: time.Second, Poll: noPoll,
		}).pool = m.rand.IntN(3)
	}
	return m
}

// noPoll is a poll interval that never ends.
const noPoll = 10_000 * time.Hour

// randomStep makes a random step. It reports whether that was possible.
func (m *model) randomStep() bool {
	n := m.rand.IntN(100)
	switch {
	case n < 42 && m.pickConn(m.canServe, m.serve):
	case n < 84 && m.pickConn(m.canDeliver, m.deliver):
	case n < 94 && m.randomTimeStep():
	case !m.noFaults && m.randomAction():
	default:
		return false
	}
	m.steps++
	m.checkInvariants()
	if m.steps%64 == 0 {
		m.forgetClosed()
	}
	return true
}

// pickConn applies a function to a random connection that allows it. It prefers
// the connections that were opened first, so that the others fall behind.
func (m *model) pickConn(allowed func(*conn) bool, do func(*conn)) bool {
	if len(m.conns) == 0 {
		return false
	}
	from := 0
	if !m.chance(3) {
		from = m.rand.IntN(len(m.conns))
	}
	for i := range m.conns {
		if c := m.conns[(from+i)%len(m.conns)]; allowed(c) {
			do(c)
			return true
		}
	}
	return false
}

// randomTimeStep advances the clock to the deadline of a random process, or ends
// its dial.
func (m *model) randomTimeStep() bool {
	num := m.rand.IntN(len(m.locks))
	if m.process(num).frozen {
		return false
	}
	if l := m.locks[num]; l != nil && l.dial != 0 && m.chance(2) {
		l.finishDial()
		return true
	}
	at := m.deadline(num)
	if at.IsZero() || m.noCrashes && at.Sub(m.now) > noPoll/4 {
		return false
	}
	// Without a bound on delays, a far deadline is seldom reached while messages are
	// in flight: or else most attempts would time out.
	if far := at.Sub(m.now); m.maxDelay == 0 && m.messagesInFlight() && (m.noFaults || far > 200*time.Millisecond && !m.chance(20)) {
		return false
	}
	before := m.now
	m.advanceTo(at)
	if at.After(m.now) {
		return m.now.After(before)
	}
	m.tick(num)
	return true
}

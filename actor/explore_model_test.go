package actor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// model simulates several locks of one name, peers of other versions, and the
// Redis between them. It is passive: the test decides which connection the server
// or a process reads next, and how time passes. TestRandomSchedules decides at
// random, TestSmallWorlds tries every order.
//
// The files of the model:
//
//	explore_model_test.go       processes, the clock
//	explore_redis_test.go       the server and the connections
//	explore_lock_test.go        a process that runs a Machine
//	explore_peer_test.go        a process that runs portalocker
//	explore_faults_test.go      what callers do, and fault injection
//	explore_invariants_test.go  what must hold after every step
//	explore_drain_test.go       the end of a run, and what must hold then
//
// The tests:
//
//	explore_random_test.go      TestRandomSchedules, TestWakesAlone
//	explore_turns_test.go       TestTurns
//	explore_exhaustive_test.go  TestSmallWorlds, with its scenarios, the state
//	                            encoder and the copies of a model beside it
//	explore_mutation_test.go    TestMutations, with the list of mutations beside it
type model struct {
	redis
	rand           *rand.Rand    // nil where every order is explored
	now            time.Time     // of the virtual clock
	maxDelay       time.Duration // bound on the delay of a healthy connection, 0 for none
	profile        faultProfile
	unboundedDelay bool    // also healthy processes may be slow enough to be reaped
	locks          []*lock // by process number, nil for a peer
	peers          []*peer // by process number, nil for a lock
	releaseOdds    int     // a holder releases with a probability of one in this
	thawOdds       int     // a frozen process thaws with a probability of one in this
	nameCount      int
	callCount      int
	steps          int
	bounds         *bounds // of an exhaustive exploration, nil for a random run
	grantCount     int
	highestToken   int64 // fencing token of a grant
	kills          int   // by locks
	noFaults       bool  // the run drains
	noCrashes      bool  // random actions are acquires, releases and cancels only

	lastConn int64 // number of the connection that was served or read last

	logging bool
	log     []string
}

// process is what locks and peers have in common.
type process struct {
	model        *model
	num          int
	clockOffset  time.Duration // ahead of the model's clock; zero in a random run
	frozen       bool
	thawedAt     time.Time
	thawedSerial int // the server's serial at the last thaw
}

// now is the time of a process.
func (p *process) now() time.Time { return p.model.now.Add(p.clockOffset) }

// violation is a broken invariant. fail panics with it.
type violation struct{ text string }

func (m *model) fail(format string, args ...any) {
	panic(violation{fmt.Sprintf(format, args...)})
}

func (m *model) logf(format string, args ...any) {
	if m.logging {
		m.log = append(m.log, fmt.Sprintf("%6d %9v  ", m.steps, m.now.Sub(epoch))+fmt.Sprintf(format, args...))
	}
}

// epoch is where virtual clocks start.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// idTail completes the eight digits that tell holder ids of a model apart. Logs
// leave it out.
var idTail = strings.Repeat("0", 24)

func shortID(id string) string { return strings.TrimSuffix(id, idTail) }

func (m *model) describeConn(c *conn) string {
	return fmt.Sprintf("connection %d of %d (%s)", c.num, c.owner, shortID(c.id))
}

// chance is true once in so many times, and never in an exhaustive exploration.
func (m *model) chance(oneIn int) bool { return m.rand != nil && m.rand.IntN(oneIn) == 0 }

func (m *model) jitter() float64 {
	if m.rand == nil {
		return 0.5
	}
	return m.rand.Float64()
}

func (m *model) uniqueName(prefix string) string {
	m.nameCount++
	return fmt.Sprintf("%s%d", prefix, m.nameCount)
}

func (m *model) newID(num int) string {
	if m.bounds != nil {
		m.bounds.dials[num]++
		return fmt.Sprintf("%04x%04x", m.bounds.idOrder[num], m.bounds.dials[num]) + idTail
	}
	return fmt.Sprintf("%08x", m.rand.Uint32()) + idTail
}

func (m *model) process(num int) *process {
	switch {
	case num < 0:
		return nil
	case m.locks[num] != nil:
		return &m.locks[num].process
	default:
		return &m.peers[num].process
	}
}

// canDeliver reports whether a process can read a frame of a connection.
func (m *model) canDeliver(c *conn) bool {
	return len(c.deliveries) > 0 && c.owner >= 0 && !m.process(c.owner).frozen
}

// deliver lets a process read the next frame of a connection.
func (m *model) deliver(c *conn) {
	g := c.deliveries[0]
	c.deliveries = c.deliveries[1:]
	if l := m.locks[c.owner]; l != nil {
		l.read(c, g)
		return
	}
	m.peers[c.owner].read(c, g)
}

// deadline is when a process wants a tick, the zero time for never.
func (m *model) deadline(num int) time.Time {
	if l := m.locks[num]; l != nil {
		return l.machine.Deadline()
	}
	return m.peers[num].timer
}

func (m *model) tick(num int) {
	if l := m.locks[num]; l != nil {
		l.tick()
		return
	}
	m.peers[num].tick()
}

// latestTime is how far the clock may advance without delaying a healthy process
// or the server by more than maxDelay. The zero time is no bound. A frozen process
// and paused writes do not hold the clock back.
func (m *model) latestTime() time.Time {
	var at time.Time
	until := func(t time.Time) {
		if t = t.Add(m.maxDelay); at.IsZero() || t.Before(at) {
			at = t
		}
	}
	for _, c := range m.conns {
		if len(c.requests) > 0 && c.up {
			t := c.requests[0].at
			if isWrite(c.requests[0].command.Op) && t.Before(m.writesPausedUntil) {
				t = m.writesPausedUntil
			}
			until(t)
		}
		if m.canDeliver(c) {
			t := c.deliveries[0].at
			if thawed := m.process(c.owner).thawedAt; t.Before(thawed) {
				t = thawed
			}
			until(t)
		}
	}
	for num := range m.locks {
		if p := m.process(num); !p.frozen {
			if t := m.deadline(num); !t.IsZero() {
				if t.Before(p.thawedAt) {
					t = p.thawedAt
				}
				until(t)
			}
		}
	}
	return at
}

// advanceTo advances the clock to a time, or as far as maxDelay permits.
func (m *model) advanceTo(to time.Time) {
	if m.maxDelay > 0 {
		if at := m.latestTime(); !at.IsZero() && at.Before(to) {
			to = at
		}
	}
	if to.After(m.now) {
		m.now = to
	}
}

// messagesInFlight reports whether the server or a process has anything to read.
func (m *model) messagesInFlight() bool {
	return slices.ContainsFunc(m.conns, func(c *conn) bool { return m.canServe(c) || m.canDeliver(c) })
}

// noPeers reports whether all processes are locks.
func (m *model) noPeers() bool {
	return !slices.ContainsFunc(m.peers, func(p *peer) bool { return p != nil })
}

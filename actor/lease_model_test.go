package actor

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRandomLeases simulates several leases of one key on a model of Redis. Commands
// and replies are late or lost, or arrive after their time-out; keys expire or are
// deleted; calls are cancelled; processes freeze. The invariants: while a running
// process believes that it holds, the key has its value; and no key is left when
// all calls have ended.
func TestRandomLeases(t *testing.T) {
	steps, grants, losses := envNumber(t, "TETHER_STEPS", 200_000), 0, 0
	if seed := envNumber(t, "TETHER_SEED", 0); seed != 0 {
		newLeaseModel(t, uint64(seed)).run(5_000)
		return
	}
	for seed := uint64(1); steps > 0; seed++ {
		m := newLeaseModel(t, seed)
		m.run(5_000)
		steps -= 5_000
		grants += m.grants
		losses += m.losses
	}
	t.Log(grants, "grants,", losses, "losses")
	require.Greater(t, grants, 100)
	require.Greater(t, losses, 10)
}

// leaseMessage is a command on its way to the server, or a reply on its way back.
type leaseMessage struct {
	process *leaseProcess // that has sent the command
	at      time.Time     // of its arrival
	run     Run
	reply   *Ran // nil for a command
	noReply bool // a command whose reply is lost
}

// leaseProcess is a process that runs one Lease.
type leaseProcess struct {
	lease       *Lease
	holding     int          // call that holds, 0 for none
	pending     map[int]bool // acquires without an answer
	releasing   map[int]bool // releases without an answer
	listens     bool         // to the releases of others
	frozenUntil time.Time    // zero while it runs
}

// leaseModel simulates processes, the network and one key of a Redis.
type leaseModel struct {
	t         *testing.T
	seed      uint64
	rand      *rand.Rand
	now       time.Time // of the virtual clock
	processes []*leaseProcess
	inFlight  []leaseMessage
	value     string // of the key, empty if there is none
	expiry    time.Time
	token     int64 // the fencing counter
	lastToken int64 // of the last grant
	ids       int
	calls     int
	grants    int
	losses    int
	log       []string
	// deletes is a fault: another client may delete the key. The holder cannot
	// know it before its next renewal, so some invariants do not hold.
	deletes bool
	// lastStray is when the last command arrived that its process had given up.
	// A key that it has set is left to expire.
	lastStray time.Time
}

// modelTTL is the TTL of the leases.
const modelTTL = 2 * time.Second

func newLeaseModel(t *testing.T, seed uint64) *leaseModel {
	m := &leaseModel{t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	m.deletes = seed%4 == 0
	for range 2 + m.rand.IntN(3) {
		m.processes = append(m.processes, &leaseProcess{pending: map[int]bool{}, releasing: map[int]bool{}, lease: NewLease(LeaseConfig{
			ID: func() string { m.ids++; return fmt.Sprint("k", m.ids) }, Jitter: m.rand.Float64,
			TTL: modelTTL, Renew: modelTTL / 3, Poll: 100 * time.Millisecond,
		})})
	}
	return m
}

func (m *leaseModel) logf(format string, args ...any) {
	m.log = append(m.log, m.now.Format("05.000 ")+fmt.Sprintf(format, args...))
	m.log = m.log[max(0, len(m.log)-200):]
}

func (m *leaseModel) fail(format string, args ...any) {
	for _, line := range m.log {
		m.t.Log(line)
	}
	m.t.Fatalf("seed %d: %s", m.seed, fmt.Sprintf(format, args...))
}

// run makes steps with faults and then drains: every call must end.
func (m *leaseModel) run(steps int) {
	for range steps {
		m.step(true)
	}
	for range 20_000 {
		if !slices.ContainsFunc(m.processes, func(p *leaseProcess) bool { return len(p.pending) > 0 || p.holding != 0 || len(p.releasing) > 0 }) {
			break
		}
		m.step(false)
		for _, p := range m.processes {
			m.release(p)
		}
	}
	for i, p := range m.processes {
		if len(p.pending) > 0 || p.holding != 0 || len(p.releasing) > 0 {
			m.fail("a call of %d never ends", i)
		}
	}
}

// step makes the next event happen, or a random action.
func (m *leaseModel) step(faults bool) {
	if faults && m.rand.IntN(3) == 0 {
		m.randomAction(m.processes[m.rand.IntN(len(m.processes))])
	} else {
		m.advance()
	}
	m.checkInvariants()
}

// advance advances the clock to the next event, which is a message's arrival or a
// deadline, and makes it happen.
func (m *leaseModel) advance() {
	at, do := time.Time{}, func() {}
	consider := func(t time.Time, f func()) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at, do = t, f
		}
	}
	for i, msg := range m.inFlight {
		consider(msg.at, func() {
			m.inFlight = slices.Delete(m.inFlight, i, i+1)
			m.deliver(msg)
		})
	}
	for _, p := range m.processes {
		switch {
		case !p.frozenUntil.IsZero():
			consider(p.frozenUntil, func() {
				p.frozenUntil = time.Time{}
				m.feed(p, Tick{})
			})
		default:
			consider(p.lease.Deadline(), func() { m.feed(p, Tick{}) })
		}
	}
	if at.After(m.now) {
		m.now = at
	}
	do()
}

// randomAction lets a process's caller act, or injects a fault.
func (m *leaseModel) randomAction(p *leaseProcess) {
	switch m.rand.IntN(16) {
	case 0, 1, 2, 3:
		m.calls++
		p.pending[m.calls] = true
		m.feed(p, Acquire{Call: m.calls, Try: m.rand.IntN(3) == 0})
	case 4, 5, 6:
		m.release(p)
	case 7, 8:
		for _, call := range slices.Sorted(maps.Keys(p.pending)) {
			m.feed(p, Cancel{Call: call, Cause: errors.New("ended")})
			break
		}
	case 9:
		for _, call := range slices.Sorted(maps.Keys(p.releasing)) {
			m.feed(p, Abandon{Hold: call, Cause: errors.New("ended")})
			break
		}
	case 10:
		if m.deletes && m.rand.IntN(20) == 0 {
			m.logf("DEL")
			m.value = ""
		}
	case 11:
		if m.rand.IntN(10) == 0 { // freeze: messages wait, and deadlines pass
			p.frozenUntil = m.now.Add(time.Duration(m.rand.IntN(int(2 * modelTTL))))
		}
	}
}

func (m *leaseModel) release(p *leaseProcess) {
	if p.holding != 0 && p.frozenUntil.IsZero() {
		call := p.holding
		p.releasing[call] = true
		m.feed(p, Release{Hold: call})
	}
}

// arrival is when a message that is sent now arrives: mostly soon, sometimes late.
func (m *leaseModel) arrival() time.Time {
	d := time.Duration(m.rand.IntN(int(5 * time.Millisecond)))
	if m.rand.IntN(50) == 0 {
		d = time.Duration(m.rand.IntN(int(modelTTL)))
	}
	return m.now.Add(d)
}

func (m *leaseModel) deliver(msg leaseMessage) {
	if msg.reply != nil {
		if !msg.process.frozenUntil.IsZero() {
			msg.at = msg.process.frozenUntil.Add(time.Millisecond)
			m.inFlight = append(m.inFlight, msg)
			return
		}
		m.feed(msg.process, *msg.reply)
		return
	}
	r := Ran{Num: msg.run.Num}
	switch {
	case msg.noReply:
		m.lastStray = later(m.lastStray, m.now)
		m.serve(msg.run)
		return
	case m.rand.IntN(30) == 0:
		r.Err = errors.New("the command was lost")
	case m.rand.IntN(60) == 0:
		r.Err = errors.New("timed out; the command arrives later")
		m.inFlight = append(m.inFlight, leaseMessage{process: msg.process, at: m.now.Add(time.Duration(m.rand.IntN(int(modelTTL)))), run: msg.run, noReply: true})
	case m.rand.IntN(300) == 0:
		msg.at = m.now.Add(leaseReplyLimit + time.Duration(m.rand.IntN(int(modelTTL))))
		m.inFlight, m.lastStray = append(m.inFlight, msg), later(m.lastStray, msg.at)
		return
	case m.rand.IntN(300) == 0:
		m.logf("command %d never gets a reply", msg.run.Num)
		m.lastStray = later(m.lastStray, m.now)
		m.serve(msg.run)
		return
	default:
		r.Reply = m.serve(msg.run)
		if m.rand.IntN(30) == 0 {
			r.Err = errors.New("the reply was lost")
		}
	}
	m.inFlight = append(m.inFlight, leaseMessage{process: msg.process, at: m.arrival(), reply: &r})
}

// serve runs a command at the server.
func (m *leaseModel) serve(r Run) LeaseReply {
	if m.value != "" && !m.now.Before(m.expiry) {
		m.value = ""
	}
	m.logf("server: %s %s, key is %q", leaseOps[r.Op], r.ID, m.value)
	own := m.value == r.ID
	switch r.Op {
	case TakeKey:
		if m.value != "" && !own {
			return LeaseReply{Holder: m.value, TTL: m.expiry.Sub(m.now)}
		}
		m.value, m.expiry = r.ID, m.now.Add(modelTTL)
		m.token++
		return LeaseReply{OK: true, Token: m.token}
	case RenewKey:
		if own {
			m.expiry = m.now.Add(modelTTL)
		}
	case DropKey:
		if own {
			m.value = ""
			for _, p := range m.processes {
				if p.listens && p.frozenUntil.IsZero() {
					m.feed(p, KeyReleased{})
				}
			}
		}
	case CheckKey:
	}
	return LeaseReply{OK: own}
}

func (m *leaseModel) feed(p *leaseProcess, in Input) {
	i := slices.Index(m.processes, p)
	m.logf("%d: %T %v", i, in, in)
	at := p.lease.Deadline()
	for _, e := range slices.Clone(p.lease.Step(m.now, in)) {
		m.logf("%d:     %v", i, describeEffect(e))
		m.perform(p, e)
	}
	if _, tick := in.(Tick); tick && !at.IsZero() && !at.After(m.now) && p.lease.Deadline().Equal(at) {
		m.fail("a tick leaves the deadline where it was")
	}
}

func (m *leaseModel) perform(p *leaseProcess, e Effect) {
	switch e := e.(type) {
	case Run:
		m.inFlight = append(m.inFlight, leaseMessage{process: p, at: m.arrival(), run: e})
	case Hear:
		p.listens = e.On
	case Grant:
		if p.holding != 0 || !p.pending[e.Call.(int)] {
			m.fail("a grant of %v, which is not pending", e.Call)
		}
		if e.Token <= m.lastToken && !m.deletes {
			m.fail("token %d after %d", e.Token, m.lastToken)
		}
		m.lastToken = e.Token
		delete(p.pending, e.Call.(int))
		p.holding = e.Call.(int)
		m.grants++
	case Refuse:
		if !p.pending[e.Call.(int)] {
			m.fail("a refusal of %v, which is not pending", e.Call)
		}
		delete(p.pending, e.Call.(int))
	case End:
		p.holding = 0
		if e.Loss != nil {
			m.losses++
		}
	case Released:
		if !p.releasing[e.Hold.(int)] {
			m.fail("two answers to the release of %v", e.Hold)
		}
		delete(p.releasing, e.Hold.(int))
	}
}

// checkInvariants checks that a running process that believes that it holds has the
// key, and that an idle model has no key.
func (m *leaseModel) checkInvariants() {
	busy := func(p *leaseProcess) bool { return p.lease.phase != leaseResting }
	if len(m.inFlight) == 0 && m.value != "" && m.now.Add(modelTTL/10).Before(m.expiry) && m.lastStray.Before(m.now.Add(-2*modelTTL)) &&
		!slices.ContainsFunc(m.processes, busy) {
		m.fail("the key is left with %q", m.value)
	}
	for i, p := range m.processes {
		if m.deletes || p.lease.State() != Held || !p.frozenUntil.IsZero() || !m.now.Before(p.lease.hold.validUntil) {
			continue
		}
		if m.value != p.lease.hold.id || !m.now.Before(m.expiry) {
			m.fail("%d holds %s and the key is %q", i, p.lease.hold.id, m.value)
		}
	}
}

// Without the race detector: under it a sync.Pool drops items at random, so
// allocations cannot be counted.

//go:build !race

package actor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/protocol"
)

// cycle is a sequence of inputs that ends in the state in which it begins, so it
// can be repeated. The inputs are made once, so that all allocations are the
// machine's.
type cycle struct {
	name      string
	inputs    []Input
	last      Effect // what the last input must cause
	maxAllocs float64
}

const (
	cycleCall  = 1
	cycleOwn   = "ffffffffffffffffffffffffffffffff"
	cycleOther = "0123456789abcdef0123456789abcdef"
)

// cycles are the cycles of a presence lock with a warm socket.
func cycles() []cycle {
	ping := protocol.Ping{Response: "S", ID: cycleOther, Want: protocol.Exclusive}
	holder := protocol.Record{ID: cycleOther, Mode: protocol.Exclusive, Election: protocol.Elected, Held: 5, Place: 1}
	waiter := protocol.Record{ID: idB, Mode: protocol.Pending, Election: protocol.NotElected}
	return []cycle{
		{
			name: "acquire and release",
			inputs: []Input{
				Acquire{Call: cycleCall}, Subscribed{"C"}, Counted{N: 1}, Greeted{"master", "standalone"},
				Release{Hold: cycleCall}, Unsubscribed{"C"},
			},
			last: Released{Hold: cycleCall}, maxAllocs: 8,
		},
		{
			name:   "answer to a ping",
			inputs: []Input{Pinged{ping}, Done{}}, maxAllocs: 1,
		},
		{
			// Three participants: this try, a holder, and a contender.
			name: "contended try",
			inputs: []Input{
				Acquire{Call: cycleCall, Try: true}, Subscribed{"C"}, Counted{N: 3}, Greeted{"master", "standalone"},
				Subscribed{"R"}, Pinged{protocol.Ping{Response: "R", ID: cycleOwn}}, Answered{Response: "R", Record: holder},
				Probed{N: 3}, Greeted{"master", "standalone"}, Answered{Response: "R", Record: waiter},
				Unsubscribed{"R"}, Unsubscribed{"C"},
			},
			last: Refuse{Call: cycleCall, Refusal: Refusal{Reason: Contended, Holders: []protocol.Record{holder}}}, maxAllocs: 8,
		},
	}
}

// cycleRunner runs cycles on a machine.
type cycleRunner struct {
	m   *Machine
	now time.Time
}

// newCycleRunner returns a machine that is idle and has a warm socket, or that
// holds if the cycle is one of a holder.
func newCycleRunner(c cycle) *cycleRunner {
	p := &cycleRunner{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	p.m = NewMachine(Config{
		Channel: "C", Waiters: func() string { return "WAIT" }, WakeChannel: func(string) string { return "W" },
		Response: func() string { return "R" }, Jitter: func() float64 { return 0.5 },
		Health: 10 * time.Second, Reply: 5 * time.Second, Unavailable: time.Second, Poll: 100 * time.Millisecond,
	})
	p.step(Acquire{Call: cycleCall}, Dialed{Dial: 1, ID: cycleOwn, Fresh: true}, Done{}, Subscribed{"C"}, Counted{N: 1}, Greeted{"master", "standalone"})
	if c.last != nil {
		p.step(Release{Hold: cycleCall}, Unsubscribed{"C"})
	}
	return p
}

func (p *cycleRunner) step(inputs ...Input) (effects []Effect) {
	for _, in := range inputs {
		effects = p.m.Step(p.now, in)
	}
	return effects
}

// runOnce runs a cycle once and checks its last effect.
func (p *cycleRunner) runOnce(tb testing.TB, c cycle) {
	tb.Helper()
	effects := p.step(c.inputs...)
	if c.last != nil {
		require.Contains(tb, effects, c.last)
	}
	require.True(tb, p.m.link.allConfirmed(), "replies or confirmations are missing")
}

// leaseCycle acquires and releases a lease.
func leaseCycle(l *Lease, now time.Time) (effects []Effect) {
	run := func(effects []Effect) Input {
		for _, e := range effects {
			if r, ok := e.(Run); ok {
				return Ran{Num: r.Num, Reply: LeaseReply{OK: true}}
			}
		}
		return Tick{}
	}
	l.Step(now, run(l.Step(now, Acquire{Call: cycleCall})))
	return l.Step(now, run(l.Step(now, Release{Hold: cycleCall})))
}

func newCycleLease() *Lease {
	return NewLease(LeaseConfig{
		ID: func() string { return cycleOwn }, Jitter: func() float64 { return 0.5 },
		TTL: 60 * time.Second, Renew: 20 * time.Second, Poll: 100 * time.Millisecond,
	})
}

func BenchmarkStep(b *testing.B) {
	for _, c := range cycles() {
		b.Run(c.name, func(b *testing.B) {
			p := newCycleRunner(c)
			p.runOnce(b, c)
			b.ReportAllocs()
			for b.Loop() {
				p.step(c.inputs...)
			}
		})
	}
	b.Run("lease", func(b *testing.B) {
		l, now := newCycleLease(), time.Now()
		b.ReportAllocs()
		for b.Loop() {
			leaseCycle(l, now)
		}
	})
}

// TestStepAllocations bounds the allocations of the machines: every user of a lock
// pays for them.
func TestStepAllocations(t *testing.T) {
	for _, c := range cycles() {
		t.Run(c.name, func(t *testing.T) {
			p := newCycleRunner(c)
			p.runOnce(t, c)
			p.runOnce(t, c)
			require.LessOrEqual(t, testing.AllocsPerRun(100, func() { p.step(c.inputs...) }), c.maxAllocs)
		})
	}
	t.Run("lease", func(t *testing.T) {
		l, now := newCycleLease(), time.Now()
		require.Contains(t, leaseCycle(l, now), Released{Hold: cycleCall})
		require.LessOrEqual(t, testing.AllocsPerRun(100, func() { leaseCycle(l, now) }), 12.0)
	})
}

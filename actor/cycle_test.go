// Under the race detector pools lose things, and allocations cannot be counted.

//go:build !race

package actor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/protocol"
)

// cycle is a piece of a lock's life that can be repeated for ever: it ends where
// it has begun. Its inputs are made once, so that what it allocates is the
// machine's doing.
type cycle struct {
	name    string
	inputs  []Input
	last    Effect // what the last input must cause
	ceiling float64
}

const (
	cycleCall  = 1
	cycleOwn   = "ffffffffffffffffffffffffffffffff"
	cycleOther = "0123456789abcdef0123456789abcdef"
)

// cycles are those of a presence lock whose socket is warm.
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
			last: Released{Hold: cycleCall}, ceiling: 8,
		},
		{
			name:   "answer to a ping",
			inputs: []Input{Pinged{ping}, Done{}}, ceiling: 1,
		},
		{
			// A try among three: the others are a holder and who waits for it.
			name: "contended try",
			inputs: []Input{
				Acquire{Call: cycleCall, Try: true}, Subscribed{"C"}, Counted{N: 3}, Greeted{"master", "standalone"},
				Subscribed{"R"}, Pinged{protocol.Ping{Response: "R", ID: cycleOwn}}, Answered{Response: "R", Record: holder},
				Probed{N: 3}, Greeted{"master", "standalone"}, Answered{Response: "R", Record: waiter},
				Unsubscribed{"R"}, Unsubscribed{"C"},
			},
			last: Refuse{Call: cycleCall, Refusal: Refusal{Reason: Contended, Holders: []protocol.Record{holder}}}, ceiling: 8,
		},
	}
}

// cyclist plays cycles.
type cyclist struct {
	m   *Machine
	now time.Time
}

// newCyclist returns a machine that rests beside a warm socket, or holds if the
// cycle is one of a holder.
func newCyclist(c cycle) *cyclist {
	p := &cyclist{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	p.m = NewMachine(Config{
		Channel: "C", Waiters: "WAIT", WakeChannel: func(string) string { return "W" },
		Response: func() string { return "R" }, Jitter: func() float64 { return 0.5 },
		Health: 10 * time.Second, Reply: 5 * time.Second, Unavailable: time.Second, Poll: 100 * time.Millisecond,
	})
	p.play(Acquire{Call: cycleCall}, Dialed{Dial: 1, ID: cycleOwn, Fresh: true}, Done{}, Subscribed{"C"}, Counted{N: 1}, Greeted{"master", "standalone"})
	if c.last != nil {
		p.play(Release{Hold: cycleCall}, Unsubscribed{"C"})
	}
	return p
}

func (p *cyclist) play(inputs ...Input) (effects []Effect) {
	for _, in := range inputs {
		effects = p.m.Step(p.now, in)
	}
	return effects
}

// ride plays a cycle once and holds it to its end.
func (p *cyclist) ride(tb testing.TB, c cycle) {
	tb.Helper()
	effects := p.play(c.inputs...)
	if c.last != nil {
		require.Contains(tb, effects, c.last)
	}
	require.True(tb, p.m.link.allConfirmed(), "the server owes something")
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
			p := newCyclist(c)
			p.ride(b, c)
			b.ReportAllocs()
			for b.Loop() {
				p.play(c.inputs...)
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

// TestStepAllocations holds the machines to what they allocate, which every user
// of a lock pays for.
func TestStepAllocations(t *testing.T) {
	for _, c := range cycles() {
		t.Run(c.name, func(t *testing.T) {
			p := newCyclist(c)
			p.ride(t, c)
			p.ride(t, c)
			require.LessOrEqual(t, testing.AllocsPerRun(100, func() { p.play(c.inputs...) }), c.ceiling)
		})
	}
	t.Run("lease", func(t *testing.T) {
		l, now := newCycleLease(), time.Now()
		require.Contains(t, leaseCycle(l, now), Released{Hold: cycleCall})
		require.LessOrEqual(t, testing.AllocsPerRun(100, func() { leaseCycle(l, now) }), 12.0)
	})
}

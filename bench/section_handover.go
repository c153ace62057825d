package main

import (
	"math/rand/v2"
	"time"
)

// handOver measures hand-overs between two processes that take turns.
func handOver(b *bench, sec *reportSection) error {
	bars := chart{title: "From a release to the waiter's grant, two processes", unit: "µs", log: true}
	err := b.forEachPinning(func(pin pinning) error {
		selected := append(b.selectPeers(notTether20ms, notFloor, b.inPinning(pin)), handOverFloor())
		took, err := b.measureHandOvers(selected, pin)
		if err != nil {
			return err
		}
		t := table{title: pin.label, head: []string{"peer", "p50", "p99", "of the hand-made floor", "p99 / p50"}}
		floor := took[handOverFloor().id()]
		bars.series = append(bars.series, pin.label)
		for _, p := range selected {
			r := took[p.id()]
			t.add(p.id(), formatDuration(r.median()), formatDuration(r.percentile(99)), formatRatio(r.ratioTo(floor)),
				formatNumber(ratio(r.percentile(99), r.median())))
			bars.add(p.id(), microseconds(r.median()))
		}
		sec.tables = append(sec.tables, t)
		tether := took[tetherLibrary]
		sec.ratioAtMost(pin.label+": p50 beside the hand-made floor", tether.ratioTo(floor), 1.4)
		name, worst := worstRatio(tether, selected, func(id string) rounds { return took[id] })
		sec.ratioAtMost(pin.label+": p50 beside the best peer, "+name, worst, 0.85)
		sec.ratioAtMost(pin.label+": p99 beside p50", ratio(tether.percentile(99), tether.median()), 4)
		return nil
	})
	sec.charts = append(sec.charts, bars)
	sec.note("A hand-over has four wake-ups more than the hand-made one: a release goes through the goroutine of the holder's lock, and a wake " +
		"and its grant go through the reader and the goroutine of the waiter's lock. In idle processes each costs tens of microseconds.")
	return err
}

// pair is two workers: one holds the lock, the other waits.
type pair struct {
	holder, waiter *workerProcess
	name           string
}

func (b *bench) measureHandOvers(selected []*peer, pin pinning) (map[string]rounds, error) {
	pairs := map[string]*pair{}
	took := map[string]rounds{}
	defer func() {
		for _, p := range pairs {
			workers{p.holder, p.waiter}.stop()
		}
	}()
	for _, p := range selected {
		b.show("%s, starting %s", pin.label, p.id())
		pr, err := b.startPair(p, pin)
		if err != nil {
			return nil, err
		}
		pairs[p.id()] = pr
	}
	err := b.interleave(selected, b.rounds, pin.label, func(round int, p *peer) error {
		if p.retryInterval > slowOperation && round >= slowRounds {
			return nil
		}
		times, err := pairs[p.id()].round(b.handOversPerRound(p))
		if err != nil {
			return err
		}
		took[p.id()] = append(took[p.id()], times)
		return nil
	})
	return took, err
}

func (b *bench) startPair(p *peer, pin pinning) (*pair, error) {
	holder, err := b.startWorker(p, pin, 0)
	if err != nil {
		return nil, err
	}
	waiter, err := b.startWorker(p, pin, 1)
	if err != nil {
		holder.stop()
		return nil, err
	}
	return &pair{holder, waiter, b.name("hand")}, nil
}

// handOversPerRound is even, so that both directions count the same.
func (b *bench) handOversPerRound(p *peer) int {
	switch isSlow := max(p.retryInterval, p.settleTime) > slowOperation; {
	case isSlow && b.quick:
		return 2
	case isSlow:
		return 4
	default:
		return 10
	}
}

// round begins and ends with a free lock: the lock of a peer that does not renew it
// would expire before the next round. The first hand-over is not counted, as it may
// include a dial.
func (p *pair) round(hands int) ([]time.Duration, error) {
	if _, err := p.holder.call(request{Task: taskAcquire, Name: p.name}); err != nil {
		return nil, err
	}
	var took []time.Duration
	for i := range hands + 1 {
		d, err := p.handOver()
		if err != nil {
			return nil, err
		}
		if i > 0 {
			took = append(took, d)
		}
	}
	_, err := p.holder.call(request{Task: taskRelease, Name: p.name})
	return took, err
}

// handOver lets the waiter wait, and the holder release.
func (p *pair) handOver() (time.Duration, error) {
	grant := p.waiter.send(request{Task: taskAcquire, Name: p.name})
	pause(waitBeforeRelease(p.holder.peer))
	released, err := p.holder.call(request{Task: taskRelease, Name: p.name})
	if err != nil {
		return 0, err
	}
	granted, err := p.waiter.wait(grant)
	p.holder, p.waiter = p.waiter, p.holder
	return time.Duration(granted.At - released.Began), err
}

// waitBeforeRelease is how long the holder waits before it releases: until the
// waiter can be woken, and a random part of its retry interval more. Without the
// random part the release would always fall into the same phase.
func waitBeforeRelease(p *peer) time.Duration {
	return 12*time.Millisecond + p.settleTime + rand.N(6*time.Millisecond+p.retryInterval)
}

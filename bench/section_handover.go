package main

import (
	"math/rand/v2"
	"time"
)

// handOver is between two processes that take turns.
func handOver(b *bench, c *chapter) error {
	bars := chart{title: "From a release to the waiter's grant, two processes", unit: "µs", log: true}
	err := b.inEach(func(pin pinning) error {
		field := append(b.field(notQuick, waits, b.in(pin)), handFloor())
		took, err := b.handOvers(field, pin)
		if err != nil {
			return err
		}
		t := table{title: pin.label, head: []string{"peer", "p50", "p99", "of the hand-made floor", "p99 / p50"}}
		by := took[handFloor().id()]
		bars.series = append(bars.series, pin.label)
		for _, p := range field {
			r := took[p.id()]
			t.add(p.id(), formatDuration(r.middle()), formatDuration(r.at(99)), formatRatio(r.against(by)),
				formatNumber(ratio(r.at(99), r.middle())))
			bars.add(p.id(), micro(r.middle()))
		}
		c.tables = append(c.tables, t)
		it := took[own]
		c.ratioAtMost(pin.label+": p50 beside the hand-made floor", it.against(by), 1.4)
		name, behind := worstAgainst(it, field, func(id string) rounds { return took[id] })
		c.ratioAtMost(pin.label+": p50 beside the best peer, "+name, behind, 0.85)
		c.ratioAtMost(pin.label+": p99 beside p50", ratio(it.at(99), it.middle()), 4)
		return nil
	})
	c.charts = append(c.charts, bars)
	c.note("A hand-over is four wake-ups more than the hand-made one: a release goes through the goroutine of the holder's lock, and a wake " +
		"and its grant through the reader and the goroutine of the waiter's. In idle processes each costs tens of microseconds.")
	return err
}

// pair are two workers, of which one holds the lock.
type pair struct {
	holder, waiter *member
	name           string
}

func (b *bench) handOvers(field []*peer, pin pinning) (map[string]rounds, error) {
	pairs := map[string]*pair{}
	took := map[string]rounds{}
	defer func() {
		for _, p := range pairs {
			crew{p.holder, p.waiter}.end()
		}
	}()
	for _, p := range field {
		b.say("%s, starting %s", pin.label, p.id())
		one, err := b.pairOf(p, pin)
		if err != nil {
			return nil, err
		}
		pairs[p.id()] = one
	}
	err := b.turns(field, b.rounds, pin.label, func(round int, p *peer) error {
		if p.looks > slow && round >= slowRounds {
			return nil
		}
		ones, err := pairs[p.id()].round(b.hands(p))
		if err != nil {
			return err
		}
		took[p.id()] = append(took[p.id()], ones)
		return nil
	})
	return took, err
}

func (b *bench) pairOf(p *peer, pin pinning) (*pair, error) {
	holder, err := b.hire(p, pin, 0)
	if err != nil {
		return nil, err
	}
	waiter, err := b.hire(p, pin, 1)
	if err != nil {
		holder.end()
		return nil, err
	}
	return &pair{holder, waiter, b.name("hand")}, nil
}

// hands are how many hand-overs a round has: an even number, so that both
// directions count the same.
func (b *bench) hands(p *peer) int {
	switch isSlow := max(p.looks, p.falls) > slow; {
	case isSlow && b.quick:
		return 2
	case isSlow:
		return 4
	default:
		return 10
	}
}

// round begins and ends with a free lock: that of a peer that does not renew it
// would not last until the next round. The first hand-over, which may have to
// dial, is not counted.
func (p *pair) round(hands int) ([]time.Duration, error) {
	if _, err := p.holder.tell(order{Do: doAcquire, Name: p.name}); err != nil {
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
	_, err := p.holder.tell(order{Do: doRelease, Name: p.name})
	return took, err
}

// handOver lets the waiter wait, and the holder release.
func (p *pair) handOver() (time.Duration, error) {
	grant := p.waiter.begin(order{Do: doAcquire, Name: p.name})
	settle(waitingFor(p.holder.peer))
	released, err := p.holder.tell(order{Do: doRelease, Name: p.name})
	if err != nil {
		return 0, err
	}
	granted, err := p.waiter.await(grant)
	p.holder, p.waiter = p.waiter, p.holder
	return time.Duration(granted.At - released.Began), err
}

// waitingFor is how long a waiter waits before anything happens: long enough
// to be asleep, and spread over what it sleeps, or it would always be met in
// the same phase.
func waitingFor(p *peer) time.Duration {
	return 12*time.Millisecond + p.falls + rand.N(6*time.Millisecond+p.looks)
}

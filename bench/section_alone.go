package main

import (
	"math"
	"slices"
	"time"
)

const (
	// batch is how long one peer works before the next has its turn.
	batch = 40 * time.Millisecond
	// slow peers take part in the first rounds only.
	slow       = 20 * time.Millisecond
	slowRounds = 3
	manyNames  = 64
)

// entrant is a peer's worker in a contest of latencies.
type entrant struct {
	*member
	each time.Duration // what one operation takes, roughly
	took map[string]rounds
}

func (e *entrant) ops() int { return int(max(2, min(500, batch/e.each))) }

// kind is one sort of work.
type kind struct {
	label string
	order order
}

// latencies lets all peers do all kinds of work, in interleaved rounds.
func (b *bench) latencies(field []*peer, pin pinning, kinds []kind) (map[string]*entrant, error) {
	entrants := map[string]*entrant{}
	defer func() {
		for _, e := range entrants {
			e.end()
		}
	}()
	for _, p := range field {
		b.say("%s, starting %s", pin.label, p.id())
		m, err := b.hire(p, pin, 0)
		if err != nil {
			return nil, err
		}
		e := &entrant{member: m, took: map[string]rounds{}}
		entrants[p.id()] = e
		if err := b.tolerate(p, e.warm(kinds)); err != nil {
			return nil, err
		}
	}
	err := b.turns(field, b.rounds, pin.label, func(round int, p *peer) error {
		return entrants[p.id()].round(round, kinds)
	})
	return entrants, err
}

// warm makes connections and finds out how long things take.
func (e *entrant) warm(kinds []kind) error {
	for _, k := range kinds {
		o := k.order
		o.Ops = max(2, k.order.Names)
		if e.peer.python {
			o.Ops = 2
		}
		a, err := e.tell(o)
		if err != nil {
			return err
		}
		e.each = max(e.each, time.Duration(median(a.Took)))
	}
	return nil
}

func (e *entrant) round(round int, kinds []kind) error {
	for _, k := range kinds {
		if e.each > slow && round >= slowRounds {
			continue
		}
		o := k.order
		o.Ops = e.ops()
		a, err := e.tell(o)
		if err != nil {
			return err
		}
		e.took[k.label] = append(e.took[k.label], durations(a.Took))
	}
	return nil
}

func durations(nanoseconds []int64) []time.Duration {
	out := make([]time.Duration, len(nanoseconds))
	for i, n := range nanoseconds {
		out[i] = time.Duration(n)
	}
	return out
}

const same, distinct, reused, once = "same name", "distinct names", "kept lock", "new name, one-shot"

func alone(b *bench, c *chapter) error {
	chart := chart{title: "Acquire and release, one goroutine, same name", unit: "µs", log: true}
	err := b.inEach(func(pin pinning) error {
		field := slices.Concat(b.field(notQuick, b.in(pin)), floors()[:2])
		kinds := []kind{
			{same, order{Do: doAlone, Name: b.name("alone"), Names: 1}},
			{distinct, order{Do: doAlone, Name: b.name("alone"), Names: manyNames}},
		}
		entrants, err := b.latencies(field, pin, kinds)
		if err != nil {
			return err
		}
		c.tables = append(c.tables, latencyTable(pin.label, field, entrants, kinds))
		chart.addLatencies(pin.label, field, entrants, same)
		limit, ahead := 1.35, 1.0
		if pin.label == pinned {
			limit, ahead = 1.15, 1.1
		}
		for _, k := range kinds {
			it := entrants[own].took[k.label]
			c.ratioAtMost(pin.label+", "+k.label+": beside the raw floor", it.against(entrants[floor].took[k.label]), limit)
			name, behind := worstAgainst(it, field, func(id string) rounds { return entrants[id].took[k.label] })
			c.ratioAtMost(pin.label+", "+k.label+": beside the best peer, "+name, behind, ahead)
		}
		return nil
	})
	c.charts = append(c.charts, chart)
	c.note("An acquire and a release take a round trip each, like the raw commands, and three wake-ups of goroutines instead of one: the lock's, " +
		"that of the reader of its connection, and the caller's. Unpinned, each of them also starts an idle thread of the Go runtime on the processor " +
		"that Redis is about to need; with more processors than two, or Redis on another machine, that is no matter. Pinned shows what is left.")
	return err
}

// worstAgainst is the peer beside which the figures look worst.
func worstAgainst(it rounds, field []*peer, of func(id string) rounds) (name string, worst float64) {
	name, worst = "none", math.NaN()
	for _, p := range field {
		if p.library == floor || p.library == own {
			continue
		}
		if v := it.against(of(p.id())); math.IsNaN(worst) || v > worst {
			name, worst = p.id(), v
		}
	}
	return name, worst
}

func latencyTable(title string, field []*peer, entrants map[string]*entrant, kinds []kind) table {
	t := table{title: title, head: []string{"peer"}}
	for _, k := range kinds {
		t.head = append(t.head, k.label+" p50", "p99", "of the floor")
	}
	for _, p := range field {
		row := []string{p.id()}
		for _, k := range kinds {
			took := entrants[p.id()].took[k.label]
			row = append(row, formatDuration(took.middle()), formatDuration(took.at(99)),
				formatRatio(took.against(entrants[floor].took[k.label])))
		}
		t.add(row...)
	}
	return t
}

func oneShot(b *bench, c *chapter) error {
	return b.inEach(func(pin pinning) error {
		field := b.field(notQuick, b.short, b.in(pin))
		kinds := []kind{
			{reused, order{Do: doAlone, Name: b.name("kept"), Names: 1}},
			{once, order{Do: doAlone, Name: b.name("once"), Once: true}},
		}
		entrants, err := b.latencies(field, pin, kinds)
		if err != nil {
			return err
		}
		c.tables = append(c.tables, latencyTable(pin.label, field, entrants, kinds))
		it := entrants[own].took
		c.ratioAtMost(pin.label+": beside the kept lock", it[once].against(it[reused]), 1.2)
		return nil
	})
}

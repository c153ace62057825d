package main

import (
	"fmt"
	"math"
	"time"
)

// contenders in all, and in how many processes they may be.
const (
	contenders     = 64
	crowdProcesses = 8
)

// warmUp is how long a crowd contends before it is counted.
const warmUp = 300 * time.Millisecond

// crowd is one way to have contenders.
type crowd struct {
	label     string
	processes int
	users     int // in each process
	each      standing
}

var crowds = []crowd{
	{"(a) one process", 1, contenders, ownLock},
	{"(b) one *Lock", 1, contenders, ownNothing},
	{"(c) 8 processes", crowdProcesses, contenders / crowdProcesses, ownLock},
}

// outcome is what came of a crowd.
type outcome struct {
	sections, fairness, commands series
}

func crowdSection(b *bench, c *chapter) error {
	bars := chart{title: "64 contenders for one lock", unit: "sections/s", log: true}
	results := map[string]map[string]*outcome{}
	for _, k := range crowds {
		field := b.field(notQuick, waits, b.startsIn(k))
		if k.each == ownNothing {
			field = b.field(func(p *peer) bool { return p.id() == own })
		}
		took, err := b.contend(field, k, b.part(1, 5))
		if err != nil {
			return err
		}
		results[k.label] = took
		t := table{title: k.label, head: []string{"peer", "sections/s", "fairness", "commands per section"}}
		for _, p := range field {
			o := took[p.id()]
			t.add(p.id(), formatNumber(o.sections.middle()), formatNumber(o.fairness.middle()), formatNumber(o.commands.middle()))
		}
		c.tables = append(c.tables, t)
	}
	bars.series = []string{crowds[0].label, crowds[2].label}
	for _, p := range b.field(notQuick, waits, b.startsIn(crowds[2])) {
		bars.add(p.id(), results[crowds[0].label][p.id()].sections.middle())
		bars.add(p.id(), results[crowds[2].label][p.id()].sections.middle())
	}
	c.charts = append(c.charts, bars)
	judgeCrowds(c, results)
	c.note("The commands are those that clients write; what scripts run inside of the server is not among them. " +
		"For portalocker, which uses no scripts, they come from the server's statistics; etcd speaks another protocol.")
	c.note("(b) is compared with (a) of the peers, whose locks are values without a queue of their own.")
	return nil
}

// startsIn leaves Pythons by the dozen out of a quick run.
func (b *bench) startsIn(k crowd) func(*peer) bool {
	return func(p *peer) bool { return b.short(p) && (!b.quick || !p.python || k.processes == 1) }
}

// fairEnough is the least fairness of who counts as fair.
const fairEnough = 0.99

func judgeCrowds(c *chapter, results map[string]map[string]*outcome) {
	for _, k := range crowds {
		it := results[k.label][own]
		against := results[k.label]
		if k.each == ownNothing {
			against = results[crowds[0].label]
		}
		name, best := fastest(against, fairEnough)
		what := fmt.Sprintf("%s: sections/s beside the best peer that is fair, %s", k.label, name)
		if k.processes > 1 {
			c.ratioAtLeast(what, it.sections.middle()/best, 1.2)
		} else {
			c.ratioAtLeast(what, it.sections.middle()/best, 2)
			name, best = fastest(against, 0)
			c.ratioAtLeast(fmt.Sprintf("%s: sections/s beside the best peer, %s", k.label, name), it.sections.middle()/best, 2)
		}
		c.atMost(k.label+": commands per section", it.commands.middle(), 8, "")
		c.atLeast(k.label+": fairness", it.fairness.middle(), fairEnough)
	}
}

// fastest is the peer with the most sections, of those who are fair enough.
func fastest(against map[string]*outcome, fairness float64) (name string, most float64) {
	name, most = "none", math.NaN()
	for id, o := range against {
		if id == own || o.fairness.middle() < fairness {
			continue
		}
		if v := o.sections.middle(); math.IsNaN(most) || v > most {
			name, most = id, v
		}
	}
	return name, most
}

// contend has all peers in all rounds. A slow one is in the first only.
func (b *bench) contend(field []*peer, k crowd, n int) (map[string]*outcome, error) {
	took := map[string]*outcome{}
	for _, p := range field {
		took[p.id()] = &outcome{}
	}
	err := b.turns(field, n, k.label, func(round int, p *peer) error {
		if p.python && round > 0 {
			return nil
		}
		all, err := b.hireCounting(p, k.processes)
		if err != nil {
			return err
		}
		defer all.end()
		return took[p.id()].contend(b, all, k)
	})
	return took, err
}

// contend is one round.
func (o *outcome) contend(b *bench, all crew, k crowd) error {
	begin := now() + int64(min(warmUp, b.duration))
	job := order{
		Do: doCrowd, Name: b.name("crowd"), Users: k.users, Each: k.each,
		Begin: begin, End: begin + int64(b.duration),
	}
	server := make(chan float64, 1)
	go func() { server <- b.commandsWithin(job.Begin, job.End) }()
	answers, err := all.tell(job)
	commands := <-server
	if err != nil {
		return err
	}
	var counts []int
	var sent int64
	for _, a := range answers {
		counts = append(counts, a.Counts...)
		sent += a.Usage.Sent
	}
	sections := sum(counts)
	switch p := all[0].peer; {
	case p.etcd:
		commands = math.NaN()
	case !p.python:
		commands = float64(sent)
	}
	o.sections = append(o.sections, float64(sections)/b.duration.Seconds())
	o.fairness = append(o.fairness, jain(counts))
	o.commands = append(o.commands, commands/float64(sections))
	return nil
}

// commandsWithin is what the server has counted, NaN if it does not answer.
func (b *bench) commandsWithin(begin, end int64) float64 {
	until(begin)
	before, failed := b.redis.info("stats", "total_commands_processed")
	until(end)
	after, err := b.redis.info("stats", "total_commands_processed")
	if failed != nil || err != nil {
		return math.NaN()
	}
	return float64(after - before)
}

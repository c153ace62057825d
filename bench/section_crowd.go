package main

import (
	"fmt"
	"math"
	"time"
)

// The number of contenders, and the largest number of processes.
const (
	crowdContenders = 64
	crowdProcesses  = 8
)

// crowdWarmUp is how long the contenders run before the count begins.
const crowdWarmUp = 300 * time.Millisecond

// crowd is one arrangement of contenders.
type crowd struct {
	label     string
	processes int
	users     int // in each process
	isolation isolation
}

var crowdVariants = []crowd{
	{"(a) one process", 1, crowdContenders, ownLock},
	{"(b) one *Lock", 1, crowdContenders, sharedLock},
	{"(c) 8 processes", crowdProcesses, crowdContenders / crowdProcesses, ownLock},
}

// crowdResult has the figures of one peer, round by round.
type crowdResult struct {
	sections, fairness, commands series
}

func crowdSection(b *bench, sec *reportSection) error {
	bars := chart{title: "64 contenders for one lock", unit: "sections/s", log: true}
	results := map[string]map[string]*crowdResult{}
	for _, k := range crowdVariants {
		selected := b.selectPeers(notTether20ms, notFloor, b.canStart(k))
		if k.isolation == sharedLock {
			selected = b.selectPeers(func(p *peer) bool { return p.id() == tetherLibrary })
		}
		took, err := b.measureCrowd(selected, k, b.part(1, 5))
		if err != nil {
			return err
		}
		results[k.label] = took
		t := table{title: k.label, head: []string{"peer", "sections/s", "fairness", "commands per section"}}
		for _, p := range selected {
			o := took[p.id()]
			t.add(p.id(), formatNumber(o.sections.median()), formatNumber(o.fairness.median()), formatNumber(o.commands.median()))
		}
		sec.tables = append(sec.tables, t)
	}
	bars.series = []string{crowdVariants[0].label, crowdVariants[2].label}
	for _, p := range b.selectPeers(notTether20ms, notFloor, b.canStart(crowdVariants[2])) {
		bars.add(p.id(), results[crowdVariants[0].label][p.id()].sections.median())
		bars.add(p.id(), results[crowdVariants[2].label][p.id()].sections.median())
	}
	sec.charts = append(sec.charts, bars)
	addCrowdTargets(sec, results)
	sec.note("The commands are those that clients write, without those that scripts run inside the server. " +
		"For portalocker, which uses no scripts, they come from the server's statistics; etcd speaks another protocol.")
	sec.note("(b) is compared with (a) of the peers: their locks are values without a queue.")
	return nil
}

// canStart excludes many Python processes, which start slowly, from a quick run.
func (b *bench) canStart(k crowd) func(*peer) bool {
	return func(p *peer) bool { return b.startsQuickly(p) && (!b.quick || !p.python || k.processes == 1) }
}

// minFairness is the least fairness of a peer that counts as fair.
const minFairness = 0.99

func addCrowdTargets(sec *reportSection, results map[string]map[string]*crowdResult) {
	for _, k := range crowdVariants {
		tether := results[k.label][tetherLibrary]
		against := results[k.label]
		if k.isolation == sharedLock {
			against = results[crowdVariants[0].label]
		}
		name, best := fastest(against, minFairness)
		what := fmt.Sprintf("%s: sections/s beside the best peer that is fair, %s", k.label, name)
		if k.processes > 1 {
			sec.ratioAtLeast(what, tether.sections.median()/best, 1.2)
		} else {
			sec.ratioAtLeast(what, tether.sections.median()/best, 2)
			name, best = fastest(against, 0)
			sec.ratioAtLeast(fmt.Sprintf("%s: sections/s beside the best peer, %s", k.label, name), tether.sections.median()/best, 2)
		}
		sec.atMost(k.label+": commands per section", tether.commands.median(), 8, "")
		sec.atLeast(k.label+": fairness", tether.fairness.median(), minFairness)
	}
}

// fastest returns the peer with the most sections of those with at least the given
// fairness.
func fastest(against map[string]*crowdResult, fairness float64) (name string, most float64) {
	name, most = "none", math.NaN()
	for id, o := range against {
		if id == tetherLibrary || o.fairness.median() < fairness {
			continue
		}
		if v := o.sections.median(); math.IsNaN(most) || v > most {
			name, most = id, v
		}
	}
	return name, most
}

// measureCrowd measures all peers in all rounds. Python, which is slow, is in the
// first round only.
func (b *bench) measureCrowd(selected []*peer, k crowd, n int) (map[string]*crowdResult, error) {
	took := map[string]*crowdResult{}
	for _, p := range selected {
		took[p.id()] = &crowdResult{}
	}
	err := b.interleave(selected, n, k.label, func(round int, p *peer) error {
		if p.python && round > 0 {
			return nil
		}
		all, err := b.startCounting(p, k.processes)
		if err != nil {
			return err
		}
		defer all.stop()
		return took[p.id()].addRound(b, all, k)
	})
	return took, err
}

// addRound measures one round.
func (o *crowdResult) addRound(b *bench, all workers, k crowd) error {
	begin := now() + int64(min(crowdWarmUp, b.duration))
	req := request{
		Task: taskCrowd, Name: b.name("crowd"), Users: k.users, Isolation: k.isolation,
		Begin: begin, End: begin + int64(b.duration),
	}
	server := make(chan float64, 1)
	go func() { server <- b.commandsWithin(req.Begin, req.End) }()
	responses, err := all.call(req)
	commands := <-server
	if err != nil {
		return err
	}
	var counts []int
	var sent int64
	for _, resp := range responses {
		counts = append(counts, resp.Counts...)
		sent += resp.Usage.Sent
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

// commandsWithin is the number of commands that the server has executed from begin
// to end, NaN if it does not answer.
func (b *bench) commandsWithin(begin, end int64) float64 {
	waitUntil(begin)
	before, failed := b.redis.info("stats", "total_commands_processed")
	waitUntil(end)
	after, err := b.redis.info("stats", "total_commands_processed")
	if failed != nil || err != nil {
		return math.NaN()
	}
	return float64(after - before)
}

package main

import (
	"fmt"
	"time"
)

// heldCounts are the numbers of locks that one process holds.
func (b *bench) heldCounts() []int {
	if b.quick {
		return []int{1000}
	}
	return []int{1000, 10000}
}

// holdingCost is what locks cost while they are held.
type holdingCost struct {
	took              time.Duration // to acquire all
	memory            float64       // bytes per lock
	goroutines        float64       // per lock
	commands          float64       // per second and lock
	processor, server float64       // shares of one processor, in percent
}

const kilobyte = 1000

func holding(b *bench, sec *reportSection) error {
	selected := b.selectPeers(notTether20ms, func(p *peer) bool {
		return p.library == tetherLibrary || p.library == floorLibrary || p.id() == "rueidislock:best"
	})
	t := table{head: []string{
		"peer", "locks", "time to acquire all", "of the floor", "kB per lock", "goroutines per lock",
		"commands/s per lock", "client's CPU", "Redis's CPU",
	}}
	for _, n := range b.heldCounts() {
		took := map[string]rounds{}
		stays := map[string]holdingCost{}
		err := b.interleave(selected, b.part(1, 5), fmt.Sprintf("%d locks", n), func(round int, p *peer) error {
			s, err := b.measureHolding(p, n, round == 0)
			if err != nil {
				return err
			}
			if round == 0 {
				stays[p.id()] = s
			}
			took[p.id()] = append(took[p.id()], []time.Duration{s.took})
			return nil
		})
		if err != nil {
			return err
		}
		for _, p := range selected {
			s, r := stays[p.id()], took[p.id()]
			t.add(p.id(), fmt.Sprint(n), formatDuration(r.median()), formatRatio(r.ratioTo(took[floorLibrary])),
				formatNumber(s.memory/kilobyte), formatNumber(s.goroutines), formatNumber(s.commands),
				formatNumber(s.processor)+" %", formatNumber(s.server)+" %")
		}
		tether, what := stays[tetherLibrary], fmt.Sprintf("%d locks: ", n)
		sec.atMost(what+"commands per second and lock", tether.commands, 0.2, "")
		sec.atMost(what+"memory per lock", tether.memory/kilobyte, 9, " kB")
		sec.atMost(what+"goroutines per lock", tether.goroutines, 2, "")
		sec.ratioAtMost(what+"time to acquire all, beside raw sockets", took[tetherLibrary].ratioTo(took[floorLibrary]), 1.5)
	}
	sec.tables = append(sec.tables, t)
	sec.note("Each held lock has two goroutines, its own and its connection's reader. Their stacks of 2 kB each " +
		"and their descriptors alone take 5 kB.")
	sec.note("The memory is the live heap and the stacks. rueidislock renews each lock every 2.5 s, on one connection.")
	return nil
}

// measureHolding acquires n locks in a new process. With watch it also measures
// what they cost while they are held.
func (b *bench) measureHolding(p *peer, n int, watch bool) (s holdingCost, err error) {
	all, err := b.startCounting(p, 1)
	if err != nil {
		return s, err
	}
	defer all.stop()
	wp := all[0]
	before, err := wp.call(request{Task: taskUsage})
	if err != nil {
		return s, err
	}
	a, err := wp.call(request{Task: taskHold, Name: b.name("hold"), Users: n})
	if err != nil {
		return s, err
	}
	s.took = time.Duration(a.Took[0])
	if watch {
		err = b.measureHeld(wp, &s, before.Usage, n)
	}
	if err != nil {
		return s, err
	}
	_, err = wp.call(request{Task: taskReleaseAll})
	return s, err
}

func (b *bench) measureHeld(wp *workerProcess, s *holdingCost, before usage, n int) error {
	length := 10 * b.duration
	w, err := b.measureUsage(wp, length)
	if err != nil {
		return err
	}
	s.memory = float64(w.start.Memory-before.Memory) / float64(n)
	s.goroutines = float64(w.start.Goroutines-before.Goroutines) / float64(n)
	s.commands = w.sent / float64(n)
	s.processor, s.server = w.processor, w.server
	return nil
}

// usageRates are what a process and the server did, per second.
type usageRates struct {
	start             usage
	sent, commands    float64
	processor, server float64 // percent of one processor
}

func (b *bench) measureUsage(wp *workerProcess, length time.Duration) (w usageRates, err error) {
	type reading struct {
		usage    usage
		at       int64
		commands int64
		server   time.Duration
	}
	read := func() (r reading, err error) {
		a, err := wp.call(request{Task: taskUsage})
		if err != nil {
			return r, err
		}
		r.usage, r.at = a.Usage, now()
		if r.commands, err = b.redis.info("stats", "total_commands_processed"); err != nil {
			return r, err
		}
		r.server, err = b.redis.processor()
		return r, err
	}
	before, err := read()
	if err != nil {
		return w, err
	}
	pause(length)
	after, err := read()
	if err != nil {
		return w, err
	}
	elapsed := float64(after.at-before.at) / 1e9
	return usageRates{
		start:     before.usage,
		sent:      float64(after.usage.Sent-before.usage.Sent) / elapsed,
		commands:  float64(after.commands-before.commands) / elapsed,
		processor: float64(after.usage.Processor-before.usage.Processor) / elapsed / 1e7,
		server:    (after.server - before.server).Seconds() / elapsed * 100,
	}, nil
}

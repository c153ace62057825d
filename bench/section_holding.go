package main

import (
	"fmt"
	"time"
)

// heldLocks are how many one process holds.
func (b *bench) heldLocks() []int {
	if b.quick {
		return []int{1000}
	}
	return []int{1000, 10000}
}

// stay is what locks cost while they are held.
type stay struct {
	took              time.Duration // to acquire all
	memory            float64       // bytes per lock
	goroutines        float64       // per lock
	commands          float64       // per second and lock
	processor, server float64       // shares of one processor, in percent
}

const kilobyte = 1000

func holding(b *bench, c *chapter) error {
	field := b.field(notQuick, func(p *peer) bool {
		return p.library == own || p.library == floor || p.id() == "rueidislock:best"
	})
	t := table{head: []string{
		"peer", "locks", "time to acquire all", "of the floor", "kB per lock", "goroutines per lock",
		"commands/s per lock", "client's CPU", "Redis's CPU",
	}}
	for _, n := range b.heldLocks() {
		took := map[string]rounds{}
		stays := map[string]stay{}
		err := b.turns(field, b.part(1, 5), fmt.Sprintf("%d locks", n), func(round int, p *peer) error {
			s, err := b.stay(p, n, round == 0)
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
		for _, p := range field {
			s, r := stays[p.id()], took[p.id()]
			t.add(p.id(), fmt.Sprint(n), formatDuration(r.middle()), formatRatio(r.against(took[floor])),
				formatNumber(s.memory/kilobyte), formatNumber(s.goroutines), formatNumber(s.commands),
				formatNumber(s.processor)+" %", formatNumber(s.server)+" %")
		}
		it, what := stays[own], fmt.Sprintf("%d locks: ", n)
		c.atMost(what+"commands per second and lock", it.commands, 0.2, "")
		c.atMost(what+"memory per lock", it.memory/kilobyte, 12, " kB")
		c.atMost(what+"goroutines per lock", it.goroutines, 2, "")
		c.ratioAtMost(what+"time to acquire all, beside raw sockets", took[own].against(took[floor]), 1.5)
	}
	c.tables = append(c.tables, t)
	c.note("Each held lock is two goroutines, its own and the one that reads its connection. Their stacks, which Go has grown to 4 kB each, " +
		"their descriptors and the read buffer alone take about 10 kB.")
	c.note("The memory is the live heap and the stacks. rueidislock renews each lock every 2.5 s, on one connection.")
	return nil
}

// stay takes locks in a new process, and watches them if told so.
func (b *bench) stay(p *peer, n int, watch bool) (s stay, err error) {
	all, err := b.hireCounting(p, 1)
	if err != nil {
		return s, err
	}
	defer all.end()
	m := all[0]
	before, err := m.tell(order{Do: doUsage})
	if err != nil {
		return s, err
	}
	a, err := m.tell(order{Do: doHold, Name: b.name("hold"), Users: n})
	if err != nil {
		return s, err
	}
	s.took = time.Duration(a.Took[0])
	if watch {
		err = b.watch(m, &s, before.Usage, n)
	}
	if err != nil {
		return s, err
	}
	_, err = m.tell(order{Do: doFree})
	return s, err
}

func (b *bench) watch(m *member, s *stay, before usage, n int) error {
	length := 10 * b.duration
	w, err := b.window(m, length)
	if err != nil {
		return err
	}
	s.memory = float64(w.first.Memory-before.Memory) / float64(n)
	s.goroutines = float64(w.first.Goroutines-before.Goroutines) / float64(n)
	s.commands = w.sent / float64(n)
	s.processor, s.server = w.processor, w.server
	return nil
}

// window is what a process and the server did in a while, per second.
type window struct {
	first             usage
	sent, commands    float64
	processor, server float64 // percent of one processor
}

func (b *bench) window(m *member, length time.Duration) (w window, err error) {
	type reading struct {
		usage    usage
		at       int64
		commands int64
		server   time.Duration
	}
	read := func() (r reading, err error) {
		a, err := m.tell(order{Do: doUsage})
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
	settle(length)
	after, err := read()
	if err != nil {
		return w, err
	}
	elapsed := float64(after.at-before.at) / 1e9
	return window{
		first:     before.usage,
		sent:      float64(after.usage.Sent-before.usage.Sent) / elapsed,
		commands:  float64(after.commands-before.commands) / elapsed,
		processor: float64(after.usage.Processor-before.usage.Processor) / elapsed / 1e7,
		server:    (after.server - before.server).Seconds() / elapsed * 100,
	}, nil
}

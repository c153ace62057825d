package main

import "time"

const manyUsers = 32

func many(b *bench, c *chapter) error {
	field := b.field(notQuick, notPython, b.short)
	workers := map[string]*member{}
	rates := map[string]series{}
	defer func() {
		for _, m := range workers {
			m.end()
		}
	}()
	for _, p := range field {
		m, err := b.hire(p, pinning{}, 0)
		if err != nil {
			return err
		}
		workers[p.id()] = m
	}
	err := b.turns(field, b.part(1, 3), "32 goroutines", func(_ int, p *peer) error {
		begin := now() + int64(100*time.Millisecond)
		length := b.duration / 2
		a, err := workers[p.id()].tell(order{
			Do: doMany, Name: "many", Users: manyUsers, Begin: begin, End: begin + int64(length),
		})
		if err != nil {
			return err
		}
		rates[p.id()] = append(rates[p.id()], float64(sum(a.Counts))/length.Seconds())
		return nil
	})
	if err != nil {
		return err
	}
	t := table{head: []string{"peer", "pairs per second", "of the floor"}}
	bars := chart{title: "32 goroutines, names of their own", unit: "pairs/s", series: []string{unpinned}}
	for _, p := range field {
		r := rates[p.id()]
		t.add(p.id(), formatNumber(r.middle()), formatRatio(r.against(rates[floor])))
		bars.add(p.id(), r.middle())
	}
	c.tables, c.charts = append(c.tables, t), append(c.charts, bars)
	c.ratioAtLeast("pairs per second beside 32 raw sockets", rates[own].against(rates[floor]), 0.8)
	c.note("With both processors busy this counts what a pair costs in the client and in Redis together. A raw socket is read by whoever waits for it; " +
		"a lock's replies pass its reader and its goroutine. rueidislock sends the commands of all on one socket, and so has a fraction of the system calls.")
	if other := rates["rueidislock:best"]; other != nil {
		c.ratioAtLeast("pairs per second beside rueidislock:best", rates[own].against(other), 1)
	}
	return nil
}

func sum(counts []int) int {
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}

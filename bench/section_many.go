package main

import "time"

const manyUsers = 32

func many(b *bench, sec *reportSection) error {
	selected := b.selectPeers(notTether20ms, notPython, b.startsQuickly)
	workers := map[string]*workerProcess{}
	rates := map[string]series{}
	defer func() {
		for _, wp := range workers {
			wp.stop()
		}
	}()
	for _, p := range selected {
		wp, err := b.startWorker(p, pinning{}, 0)
		if err != nil {
			return err
		}
		workers[p.id()] = wp
	}
	err := b.interleave(selected, b.part(1, 3), "32 goroutines", func(_ int, p *peer) error {
		begin := now() + int64(100*time.Millisecond)
		length := b.duration / 2
		resp, err := workers[p.id()].call(request{
			Task: taskMany, Name: "many", Users: manyUsers, Begin: begin, End: begin + int64(length),
		})
		if err != nil {
			return err
		}
		rates[p.id()] = append(rates[p.id()], float64(sum(resp.Counts))/length.Seconds())
		return nil
	})
	if err != nil {
		return err
	}
	t := table{head: []string{"peer", "pairs per second", "of the floor"}}
	bars := chart{title: "32 goroutines, names of their own", unit: "pairs/s", series: []string{unpinned}}
	for _, p := range selected {
		r := rates[p.id()]
		t.add(p.id(), formatNumber(r.median()), formatRatio(r.ratioTo(rates[floorLibrary])))
		bars.add(p.id(), r.median())
	}
	sec.tables, sec.charts = append(sec.tables, t), append(sec.charts, bars)
	sec.ratioAtLeast("pairs per second beside 32 raw sockets", rates[tetherLibrary].ratioTo(rates[floorLibrary]), 0.8)
	sec.note("With both processors busy this measures what a pair costs in the client and in Redis together. A raw socket is read by the goroutine that waits for it; " +
		"a lock's replies go through its reader and its goroutine. rueidislock sends all commands on one socket, and so makes a fraction of the system calls.")
	if other := rates["rueidislock:best"]; other != nil {
		sec.ratioAtLeast("pairs per second beside rueidislock:best", rates[tetherLibrary].ratioTo(other), 1)
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

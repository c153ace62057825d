package main

import (
	"math"
	"slices"
	"time"
)

const (
	// batchTime is how long one peer works before it is the next peer's turn.
	batchTime = 40 * time.Millisecond
	// Peers whose operation takes longer than slowOperation take part in the
	// first slowRounds rounds only.
	slowOperation = 20 * time.Millisecond
	slowRounds    = 3
	distinctNames = 64
)

// latencyWorker is a worker process whose latencies are measured.
type latencyWorker struct {
	*workerProcess
	operationTime time.Duration // a rough estimate for one operation
	samples       map[string]rounds
}

func (e *latencyWorker) batchSize() int { return int(max(2, min(500, batchTime/e.operationTime))) }

// workload is one kind of work.
type workload struct {
	label   string
	request request
}

// measureLatencies runs all workloads with all peers, in interleaved rounds.
func (b *bench) measureLatencies(selected []*peer, pin pinning, workloads []workload) (map[string]*latencyWorker, error) {
	byPeer := map[string]*latencyWorker{}
	defer func() {
		for _, e := range byPeer {
			e.stop()
		}
	}()
	for _, p := range selected {
		b.show("%s, starting %s", pin.label, p.id())
		wp, err := b.startWorker(p, pin, 0)
		if err != nil {
			return nil, err
		}
		e := &latencyWorker{workerProcess: wp, samples: map[string]rounds{}}
		byPeer[p.id()] = e
		if err := b.excludeFailed(p, e.warmUp(workloads)); err != nil {
			return nil, err
		}
	}
	err := b.interleave(selected, b.rounds, pin.label, func(round int, p *peer) error {
		return byPeer[p.id()].round(round, workloads)
	})
	return byPeer, err
}

// warmUp opens the connections, and estimates how long an operation takes.
func (e *latencyWorker) warmUp(workloads []workload) error {
	for _, k := range workloads {
		req := k.request
		req.Ops = max(2, k.request.Names)
		if e.peer.python {
			req.Ops = 2
		}
		resp, err := e.call(req)
		if err != nil {
			return err
		}
		e.operationTime = max(e.operationTime, time.Duration(median(resp.Took)))
	}
	return nil
}

func (e *latencyWorker) round(round int, workloads []workload) error {
	for _, k := range workloads {
		if e.operationTime > slowOperation && round >= slowRounds {
			continue
		}
		req := k.request
		req.Ops = e.batchSize()
		resp, err := e.call(req)
		if err != nil {
			return err
		}
		e.samples[k.label] = append(e.samples[k.label], durations(resp.Took))
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

const sameName, distinctName, keptLock, oneShotName = "same name", "distinct names", "kept lock", "new name, one-shot"

func alone(b *bench, sec *reportSection) error {
	chart := chart{title: "Acquire and release, one goroutine, same name", unit: "µs", log: true}
	err := b.forEachPinning(func(pin pinning) error {
		selected := slices.Concat(b.selectPeers(notTether20ms, b.inPinning(pin)), extraFloors()[:2])
		workloads := []workload{
			{sameName, request{Task: taskAlone, Name: b.name("alone"), Names: 1}},
			{distinctName, request{Task: taskAlone, Name: b.name("alone"), Names: distinctNames}},
		}
		byPeer, err := b.measureLatencies(selected, pin, workloads)
		if err != nil {
			return err
		}
		sec.tables = append(sec.tables, latencyTable(pin.label, selected, byPeer, workloads))
		chart.addLatencies(pin.label, selected, byPeer, sameName)
		floorLimit, peerLimit := 1.35, 1.0
		if pin.label == pinned {
			floorLimit, peerLimit = 1.15, 1.1
		}
		for _, k := range workloads {
			tether := byPeer[tetherLibrary].samples[k.label]
			sec.ratioAtMost(pin.label+", "+k.label+": beside the raw floor", tether.ratioTo(byPeer[floorLibrary].samples[k.label]), floorLimit)
			name, worst := worstRatio(tether, selected, func(id string) rounds { return byPeer[id].samples[k.label] })
			sec.ratioAtMost(pin.label+", "+k.label+": beside the best peer, "+name, worst, peerLimit)
		}
		return nil
	})
	sec.charts = append(sec.charts, chart)
	sec.note("An acquire and a release take a round trip each, like the raw commands, and wake three goroutines instead of one: the lock's, " +
		"its connection's reader, and the caller. Unpinned, each of them also starts an idle thread of the Go runtime on the processor " +
		"that Redis is about to need; with more than two processors, or Redis on another machine, it does not matter. The pinned figures show what is left.")
	return err
}

// worstRatio returns the peer with the highest ratio, and the ratio.
func worstRatio(tether rounds, selected []*peer, of func(id string) rounds) (name string, worst float64) {
	name, worst = "none", math.NaN()
	for _, p := range selected {
		if p.library == floorLibrary || p.library == tetherLibrary {
			continue
		}
		if v := tether.ratioTo(of(p.id())); math.IsNaN(worst) || v > worst {
			name, worst = p.id(), v
		}
	}
	return name, worst
}

func latencyTable(title string, selected []*peer, byPeer map[string]*latencyWorker, workloads []workload) table {
	t := table{title: title, head: []string{"peer"}}
	for _, k := range workloads {
		t.head = append(t.head, k.label+" p50", "p99", "of the floor")
	}
	for _, p := range selected {
		row := []string{p.id()}
		for _, k := range workloads {
			took := byPeer[p.id()].samples[k.label]
			row = append(row, formatDuration(took.median()), formatDuration(took.percentile(99)),
				formatRatio(took.ratioTo(byPeer[floorLibrary].samples[k.label])))
		}
		t.add(row...)
	}
	return t
}

func oneShot(b *bench, sec *reportSection) error {
	return b.forEachPinning(func(pin pinning) error {
		selected := b.selectPeers(notTether20ms, b.startsQuickly, b.inPinning(pin))
		workloads := []workload{
			{keptLock, request{Task: taskAlone, Name: b.name("kept"), Names: 1}},
			{oneShotName, request{Task: taskAlone, Name: b.name("once"), Once: true}},
		}
		byPeer, err := b.measureLatencies(selected, pin, workloads)
		if err != nil {
			return err
		}
		sec.tables = append(sec.tables, latencyTable(pin.label, selected, byPeer, workloads))
		tether := byPeer[tetherLibrary].samples
		sec.ratioAtMost(pin.label+": beside the kept lock", tether[oneShotName].ratioTo(tether[keptLock]), 1.2)
		return nil
	})
}

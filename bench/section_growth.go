package main

import (
	"fmt"
	"time"
)

func growth(b *bench, sec *reportSection) error {
	if err := moreContenders(b, sec); err != nil {
		return err
	}
	return moreReaders(b, sec)
}

func moreContenders(b *bench, sec *reportSection) error {
	selected := b.selectPeers(notFloor, notPython, func(p *peer) bool { return p.setting == best || p.id() == tetherLibrary })
	t := table{title: "contenders in up to 8 processes, a client each", head: []string{"peer", "contenders", "sections/s", "fairness", "commands per section"}}
	bars := chart{title: "Contenders, a client each", unit: "sections/s"}
	numbers := []int{2, 8, 64, 256}
	if b.quick {
		numbers = numbers[:3]
	}
	commands, sections := map[int]float64{}, map[int]float64{}
	for _, n := range numbers {
		bars.series = append(bars.series, fmt.Sprint(n))
		processes := min(n, crowdProcesses)
		k := crowd{fmt.Sprintf("%d contenders", n), processes, n / processes, ownClient}
		took, err := b.measureCrowd(selected, k, b.part(1, 7))
		if err != nil {
			return err
		}
		for _, p := range selected {
			o := took[p.id()]
			t.add(p.id(), fmt.Sprint(n), formatNumber(o.sections.median()), formatNumber(o.fairness.median()), formatNumber(o.commands.median()))
			bars.add(p.id(), o.sections.median())
		}
		commands[n], sections[n] = took[tetherLibrary].commands.median(), took[tetherLibrary].sections.median()
	}
	sec.tables, sec.charts = append(sec.tables, t), append(sec.charts, bars)
	first, last := numbers[0], numbers[len(numbers)-1]
	sec.ratioAtMost(fmt.Sprintf("commands per section with %d contenders, beside %d", last, first),
		commands[last]/commands[first], float64(last/first))
	sec.ratioAtLeast(fmt.Sprintf("sections/s with %d contenders, beside %d", last, first),
		sections[last]/sections[first], float64(first)/float64(last))
	return nil
}

// probesPerCount is the number of probes for each number of readers.
const probesPerCount = 30

func moreReaders(b *bench, sec *reportSection) error {
	readers, err := b.startWorker(peerByID(tetherLibrary), pinning{}, 0)
	if err != nil {
		return err
	}
	defer readers.stop()
	prober, err := b.startWorker(peerByID(tetherLibrary), pinning{}, 1)
	if err != nil {
		return err
	}
	defer prober.stop()
	t := table{title: "readers that answer a probe", head: []string{"readers", "to take all", "a probe takes, p50", "p99", "per reader"}}
	took := map[int]time.Duration{}
	numbers := []int{1, 10, 100, 1000}
	if b.quick {
		numbers = numbers[:3]
	}
	for _, n := range numbers {
		b.show("%d readers", n)
		name := b.name("read")
		joined, err := readers.call(request{Task: taskRead, Name: name, Users: n})
		if err != nil {
			return err
		}
		resp, err := prober.call(request{Task: taskProbe, Name: name, Users: n, Ops: probesPerCount})
		if err != nil {
			return err
		}
		all := durations(resp.Took)
		took[n] = median(all)
		t.add(fmt.Sprint(n), formatDuration(time.Duration(joined.Took[0])), formatDuration(took[n]), formatDuration(percentile(all, 99)), formatDuration(took[n]/time.Duration(n)))
		if _, err := readers.call(request{Task: taskReleaseAll}); err != nil {
			return err
		}
	}
	sec.tables = append(sec.tables, t)
	few, most := numbers[1], numbers[len(numbers)-1]
	sec.ratioAtMost(fmt.Sprintf("a probe of %d readers, beside %d", most, few), ratio(took[most], took[few]), float64(most/few))
	return nil
}

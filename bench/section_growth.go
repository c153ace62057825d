package main

import (
	"fmt"
	"time"
)

func growth(b *bench, c *chapter) error {
	if err := moreContenders(b, c); err != nil {
		return err
	}
	return moreReaders(b, c)
}

func moreContenders(b *bench, c *chapter) error {
	field := b.field(waits, notPython, func(p *peer) bool { return p.setting == best || p.id() == own })
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
		took, err := b.contend(field, k, b.part(1, 7))
		if err != nil {
			return err
		}
		for _, p := range field {
			o := took[p.id()]
			t.add(p.id(), fmt.Sprint(n), formatNumber(o.sections.middle()), formatNumber(o.fairness.middle()), formatNumber(o.commands.middle()))
			bars.add(p.id(), o.sections.middle())
		}
		commands[n], sections[n] = took[own].commands.middle(), took[own].sections.middle()
	}
	c.tables, c.charts = append(c.tables, t), append(c.charts, bars)
	first, last := numbers[0], numbers[len(numbers)-1]
	c.ratioAtMost(fmt.Sprintf("commands per section with %d contenders, beside %d", last, first),
		commands[last]/commands[first], float64(last/first))
	c.ratioAtLeast(fmt.Sprintf("sections/s with %d contenders, beside %d", last, first),
		sections[last]/sections[first], float64(first)/float64(last))
	return nil
}

// probes are made of each number of readers.
const probes = 30

func moreReaders(b *bench, c *chapter) error {
	readers, err := b.hire(peerOf(own), pinning{}, 0)
	if err != nil {
		return err
	}
	defer readers.end()
	prober, err := b.hire(peerOf(own), pinning{}, 1)
	if err != nil {
		return err
	}
	defer prober.end()
	t := table{title: "readers that answer a probe", head: []string{"readers", "to take all", "a probe takes, p50", "p99", "per reader"}}
	took := map[int]time.Duration{}
	numbers := []int{1, 10, 100, 1000}
	if b.quick {
		numbers = numbers[:3]
	}
	for _, n := range numbers {
		b.say("%d readers", n)
		name := b.name("read")
		joined, err := readers.tell(order{Do: doRead, Name: name, Users: n})
		if err != nil {
			return err
		}
		a, err := prober.tell(order{Do: doProbe, Name: name, Users: n, Ops: probes})
		if err != nil {
			return err
		}
		all := durations(a.Took)
		took[n] = median(all)
		t.add(fmt.Sprint(n), formatDuration(time.Duration(joined.Took[0])), formatDuration(took[n]), formatDuration(percentile(all, 99)), formatDuration(took[n]/time.Duration(n)))
		if _, err := readers.tell(order{Do: doFree}); err != nil {
			return err
		}
	}
	c.tables = append(c.tables, t)
	few, most := numbers[1], numbers[len(numbers)-1]
	c.ratioAtMost(fmt.Sprintf("a probe of %d readers, beside %d", most, few), ratio(took[most], took[few]), float64(most/few))
	return nil
}

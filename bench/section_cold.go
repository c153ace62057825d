package main

import "time"

func cold(b *bench, sec *reportSection) error {
	bars := chart{title: "First acquire of a new client", unit: "µs", log: true}
	err := b.forEachPinning(func(pin pinning) error {
		selected := b.selectPeers(notTether20ms, b.startsQuickly, b.inPinning(pin))
		req := request{Task: taskCold, Name: b.name("cold"), Names: 1}
		byPeer, err := b.measureLatencies(selected, pin, []workload{{"first acquire", req}})
		if err != nil {
			return err
		}
		sec.tables = append(sec.tables, latencyTable(pin.label, selected, byPeer, []workload{{"first acquire", req}}))
		bars.addLatencies(pin.label, selected, byPeer, "first acquire")
		name, worst := worstRatio(byPeer[tetherLibrary].samples["first acquire"], selected, func(id string) rounds {
			return byPeer[id].samples["first acquire"]
		})
		sec.ratioAtMost(pin.label+": beside the best peer, "+name, worst, 1)
		return nil
	})
	sec.charts = append(sec.charts, bars)
	return err
}

// microseconds is a time in the unit of the charts.
func microseconds(d time.Duration) float64 { return float64(d) / 1e3 }

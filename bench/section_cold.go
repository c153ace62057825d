package main

import "time"

func cold(b *bench, c *chapter) error {
	bars := chart{title: "First acquire of a new client", unit: "µs", log: true}
	err := b.inEach(func(pin pinning) error {
		field := b.field(notQuick, b.short, b.in(pin))
		o := order{Do: doCold, Name: b.name("cold"), Names: 1}
		entrants, err := b.latencies(field, pin, []kind{{"first acquire", o}})
		if err != nil {
			return err
		}
		c.tables = append(c.tables, latencyTable(pin.label, field, entrants, []kind{{"first acquire", o}}))
		bars.addLatencies(pin.label, field, entrants, "first acquire")
		name, behind := worstAgainst(entrants[own].took["first acquire"], field, func(id string) rounds {
			return entrants[id].took["first acquire"]
		})
		c.ratioAtMost(pin.label+": beside the best peer, "+name, behind, 1)
		return nil
	})
	c.charts = append(c.charts, bars)
	return err
}

// micro is a time as charts have it.
func micro(d time.Duration) float64 { return float64(d) / 1e3 }

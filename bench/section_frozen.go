package main

import (
	"fmt"
	"syscall"
	"time"
)

// unavailable is the default of tether's time-out of that name.
const unavailable = time.Second

func frozen(b *bench, c *chapter) error {
	field := b.field(connected, notFloor, func(p *peer) bool { return !b.quick || !p.python })
	took, err := b.endings(field, 1, b.part(1, 2), syscall.SIGSTOP)
	if err != nil {
		return err
	}
	t := table{head: []string{"peer", "p50", "longest", "times"}}
	for _, p := range field {
		r := took[p.id()]
		t.add(p.id(), formatDuration(r.at(50)), formatDuration(r.at(100)), fmt.Sprint(len(r)))
	}
	c.tables = append(c.tables, t)
	c.within("p50", took[own].at(50), unavailable+600*time.Millisecond)
	c.note("Peers whose lock is a key with a TTL: that TTL, as after a crash.")
	return nil
}

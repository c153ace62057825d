package main

import (
	"fmt"
	"syscall"
	"time"
)

// unavailableTimeout is the default of tether's time-out of that name.
const unavailableTimeout = time.Second

func frozen(b *bench, sec *reportSection) error {
	selected := b.selectPeers(withoutTTL, notFloor, func(p *peer) bool { return !b.quick || !p.python })
	took, err := b.measureTakeovers(selected, 1, b.part(1, 2), syscall.SIGSTOP)
	if err != nil {
		return err
	}
	t := table{head: []string{"peer", "p50", "longest", "times"}}
	for _, p := range selected {
		r := took[p.id()]
		t.add(p.id(), formatDuration(r.percentile(50)), formatDuration(r.percentile(100)), fmt.Sprint(len(r)))
	}
	sec.tables = append(sec.tables, t)
	sec.within("p50", took[tetherLibrary].percentile(50), unavailableTimeout+600*time.Millisecond)
	sec.note("With peers whose lock is a key with a TTL it takes that TTL, as after a crash.")
	return nil
}

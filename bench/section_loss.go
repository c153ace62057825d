package main

import (
	"fmt"
	"time"
)

func loss(b *bench, c *chapter) error {
	m, err := b.hire(peerOf(own), pinning{}, 0)
	if err != nil {
		return err
	}
	defer m.end()
	var took rounds
	for round := range b.rounds {
		b.say("round %d of %d", round+1, b.rounds)
		a, err := m.tell(order{Do: doLose, Name: b.name("loss"), Ops: 20})
		if err != nil {
			return err
		}
		took = append(took, durations(a.Took))
	}
	t := table{head: []string{"peer", "p50", "p99", "times"}}
	t.add(own, formatDuration(took.middle()), formatDuration(took.at(99)), fmt.Sprint(20*len(took)))
	c.tables = append(c.tables, t)
	c.within("p99", took.at(99), 5*time.Millisecond)
	c.note("Of the peers, rueidislock and portalocker tell of a loss as well; an ended connection is none to a lock with a TTL, which is why there is nothing to compare.")
	return nil
}

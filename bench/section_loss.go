package main

import (
	"fmt"
	"time"
)

func loss(b *bench, sec *reportSection) error {
	wp, err := b.startWorker(peerByID(tetherLibrary), pinning{}, 0)
	if err != nil {
		return err
	}
	defer wp.stop()
	var took rounds
	for round := range b.rounds {
		b.show("round %d of %d", round+1, b.rounds)
		resp, err := wp.call(request{Task: taskLose, Name: b.name("loss"), Ops: 20})
		if err != nil {
			return err
		}
		took = append(took, durations(resp.Took))
	}
	t := table{head: []string{"peer", "p50", "p99", "times"}}
	t.add(tetherLibrary, formatDuration(took.median()), formatDuration(took.percentile(99)), fmt.Sprint(20*len(took)))
	sec.tables = append(sec.tables, t)
	sec.within("p99", took.percentile(99), 5*time.Millisecond)
	sec.note("Of the peers, rueidislock and portalocker report a loss as well. There is nothing to compare: for a lock with a TTL an ended connection is no loss.")
	return nil
}

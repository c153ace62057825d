//go:build unix && !aix && !solaris

package main

import (
	"slices"
	"time"
)

// holdSpan is the time of one hold. Its end is the earliest time at which the
// lock may have been free.
type holdSpan struct {
	worker   *workerProcess
	from, to time.Time
	token    int64
}

// sortedByStart sorts holds by their start: messages of two processes may arrive
// in any order.
func sortedByStart(holds []holdSpan) []holdSpan {
	return slices.SortedFunc(slices.Values(holds), func(a, b holdSpan) int { return a.from.Compare(b.from) })
}

// countOverlaps counts the holds that began before the previous one had ended.
func countOverlaps(holds []holdSpan) int {
	holds, n := sortedByStart(holds), 0
	for i := 1; i < len(holds); i++ {
		if before := holds[i-1].to; before.IsZero() || holds[i].from.Before(before) {
			n++
		}
	}
	return n
}

// tokensRise reports whether every hold has a higher token than the one before.
func tokensRise(holds []holdSpan) bool {
	last := int64(0)
	for _, h := range sortedByStart(holds) {
		if h.token <= last {
			return false
		}
		last = h.token
	}
	return true
}

// medianHandOver is the median time from the end of a hold to the start of the
// next.
func medianHandOver(holds []holdSpan) time.Duration {
	holds = sortedByStart(holds)
	var gaps []time.Duration
	for i := 1; i < len(holds); i++ {
		gaps = append(gaps, holds[i].from.Sub(holds[i-1].to))
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2]
}

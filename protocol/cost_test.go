// The race detector makes pools drop items at random, so that allocations cannot
// be counted.

//go:build !race

package protocol_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/protocol"
)

// contenders returns the records of n pending writers that are not elected.
func contenders(n int) []protocol.Record {
	var others []protocol.Record
	for i := range n {
		others = append(others, protocol.Record{ID: fmt.Sprintf("%032x", i), Mode: protocol.Pending, Election: protocol.NotElected})
	}
	return others
}

// verdicts are the functions that return a verdict, by name.
var verdicts = map[string]func(others []protocol.Record) protocol.Verdict{
	"elect":   func(others []protocol.Record) protocol.Verdict { return protocol.Elect("f", false, others) },
	"confirm": func(others []protocol.Record) protocol.Verdict { return protocol.Confirm("f", others) },
	"join":    func(others []protocol.Record) protocol.Verdict { return protocol.Join("f", others) },
}

func BenchmarkVerdict(b *testing.B) {
	for name, judge := range verdicts {
		for _, n := range []int{2, 100} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				others := contenders(n)
				b.ReportAllocs()
				for b.Loop() {
					judge(others)
				}
			})
		}
	}
}

// TestVerdictAllocations checks that a verdict is found without allocations.
func TestVerdictAllocations(t *testing.T) {
	others := contenders(100)
	for name, judge := range verdicts {
		require.Zero(t, testing.AllocsPerRun(100, func() { judge(others) }), name)
	}
}

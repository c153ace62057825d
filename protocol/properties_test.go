package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/protocol"
)

// verdictFuncs are the functions that return a verdict. best is the verdict
// without other participants.
var verdictFuncs = []struct {
	name string
	call func(self string, others []protocol.Record) protocol.Verdict
	best protocol.Verdict
}{
	{"fresh", func(self string, rs []protocol.Record) protocol.Verdict { return protocol.Elect(self, false, rs) }, protocol.Promote},
	{"elected", func(self string, rs []protocol.Record) protocol.Verdict { return protocol.Elect(self, true, rs) }, protocol.Promote},
	{"confirm", protocol.Confirm, protocol.Granted},
	{"join", protocol.Join, protocol.Granted},
}

func TestZeroVerdictIsNoGrant(t *testing.T) {
	var zero protocol.Verdict
	for _, v := range []protocol.Verdict{protocol.Promote, protocol.Granted} {
		require.NotEqual(t, v, zero)
	}
}

// Each function returns only its own verdicts: for example, only Elect promotes,
// and it never grants.
func TestVerdictsOfEachFunction(t *testing.T) {
	allowed := map[string][]protocol.Verdict{
		"fresh":   {protocol.Held, protocol.Defer, protocol.Wait, protocol.Promote},
		"elected": {protocol.Held, protocol.Defer, protocol.Wait, protocol.Promote},
		"confirm": {protocol.Demote, protocol.Again, protocol.Granted},
		"join":    {protocol.Held, protocol.Defer, protocol.Granted},
	}
	for _, q := range verdictFuncs {
		seen := map[protocol.Verdict]bool{}
		eachSet(everyRecord([]string{"a", "c"}, realModes, realElections), 2, func(set []protocol.Record) {
			seen[q.call("b", set)] = true
		})
		var got []protocol.Verdict
		for v := range seen {
			got = append(got, v)
		}
		require.ElementsMatch(t, allowed[q.name], got, q.name)
		require.Equal(t, q.best, q.call("b", nil), q.name)
	}
}

func TestOrderAndRepetitionMakeNoDifference(t *testing.T) {
	rng := newRand(t)
	for range 5_000 {
		self, others := randomSet(rng)
		mixed := append([]protocol.Record(nil), others...)
		for range len(others) {
			mixed = append(mixed, others[rng.IntN(len(others))])
		}
		rng.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		for _, q := range verdictFuncs {
			require.Equal(t, q.call(self, others), q.call(self, mixed), "%s %s: %s", q.name, self, show(mixed))
		}
	}
}

func TestRecordsAreNotWrittenTo(t *testing.T) {
	rng := newRand(t)
	for range 1_000 {
		self, others := randomSet(rng)
		before := append([]protocol.Record(nil), others...)
		for _, q := range verdictFuncs {
			q.call(self, others)
		}
		holders := protocol.Blocking(protocol.Exclusive, others)
		for i := range holders {
			holders[i] = protocol.Record{}
		}
		require.Equal(t, before, others)
	}
}

// One more participant can only make the verdict more cautious.
func TestMoreRecordsNeverPermitMore(t *testing.T) {
	rng := newRand(t)
	for range 5_000 {
		self, others := randomSet(rng)
		for _, more := range everyRecord([]string{"a", "g"}, realModes, realElections)[rng.IntN(4):] {
			for _, q := range verdictFuncs {
				without, with := q.call(self, others), q.call(self, append(others[:len(others):len(others)], more))
				if with > without {
					t.Fatalf("%s %s: %s: %v, with %+v: %v", q.name, self, show(others), without, more, with)
				}
			}
		}
	}
}

// No record set with an exclusive record permits a grant, and none with a reader
// permits a writer's grant, whether the reader holds or joins. The safety of the
// lock depends on this.
func TestGrantsExcludeClaims(t *testing.T) {
	eachSet(everyRecord([]string{"a", "c"}, realModes, realElections), 3, func(set []protocol.Record) {
		exclusive, shared, contender := false, false, false
		for _, r := range set {
			switch {
			case r.Legacy, r.Mode == protocol.Exclusive:
				exclusive = true
			case r.Mode == protocol.Shared:
				shared = true
			default:
				contender = true
			}
		}
		if exclusive || shared {
			for _, elected := range []bool{false, true} {
				if protocol.Elect("b", elected, set) == protocol.Promote {
					t.Fatalf("promoted in sight of %+v", set)
				}
			}
			if protocol.Confirm("b", set) == protocol.Granted {
				t.Fatalf("confirmed in sight of %+v", set)
			}
		}
		if (exclusive || contender) && protocol.Join("b", set) == protocol.Granted {
			t.Fatalf("joined in sight of %+v", set)
		}
	})
}

// Two participants that see each other's claim are never both granted, whichever
// records there are besides. Of two writers neither is granted. Of a writer and a
// reader, the writer is not granted, and neither is a reader that joins.
func TestMutuallyVisibleClaimsAreNotBothGranted(t *testing.T) {
	eachSet(everyRecord([]string{"a", "c", "e"}, realModes, realElections), 1, func(rest []protocol.Record) {
		for _, election := range realElections {
			b := protocol.Record{ID: "b", Mode: protocol.Exclusive, Election: election}
			d := protocol.Record{ID: "d", Mode: protocol.Exclusive, Election: election}
			require.NotEqual(t, protocol.Granted, protocol.Confirm("b", append(rest[:len(rest):len(rest)], d)))
			require.Equal(t, protocol.Demote, protocol.Confirm("d", append(rest[:len(rest):len(rest)], b)))
			for _, joining := range []bool{false, true} {
				reader := protocol.Record{ID: "d", Mode: protocol.Shared, Election: election, Joining: joining}
				require.NotEqual(t, protocol.Granted, protocol.Confirm("b", append(rest[:len(rest):len(rest)], reader)))
				require.Equal(t, protocol.Held, protocol.Join("d", append(rest[:len(rest):len(rest)], b)))
			}
		}
	})
}

// The verdict is Held only because of a holder or an elected writer. So a
// contender that sleeps leaves a participant on the channel that can wake it.
func TestHeldHasAReason(t *testing.T) {
	eachSet(everyRecord([]string{"a", "c"}, realModes, realElections), 2, func(set []protocol.Record) {
		// A reader is blocked by exclusive records and by elected writers.
		reasons := len(protocol.Blocking(protocol.Shared, set))
		for _, q := range verdictFuncs {
			if q.call("b", set) == protocol.Held {
				require.NotZero(t, reasons, "%s: %s", q.name, show(set))
			}
		}
		require.Equal(t, reasons > 0, protocol.Join("b", set) == protocol.Held, show(set))
	})
}

// Of any number of pending writers that see each other, exactly one stays on the
// channel, whichever of them are elected and whether there is a reader. So they
// never all give way, and do not stay in each other's way.
func TestOneContenderStays(t *testing.T) {
	ids := []string{"a", "b", "c", "d"}
	reader := protocol.Record{ID: "r", Mode: protocol.Shared, Election: protocol.NotElected}
	for count := 1; count <= len(ids); count++ {
		for elected := range 1 << count {
			for _, readers := range [][]protocol.Record{nil, {reader}} {
				all := append([]protocol.Record(nil), readers...)
				for i := range count {
					r := protocol.Record{ID: ids[i], Mode: protocol.Pending, Election: protocol.NotElected}
					if elected>>i&1 == 1 {
						r.Election = protocol.Elected
					}
					all = append(all, r)
				}
				var stay []string
				for i := range count {
					verdict := protocol.Elect(ids[i], elected>>i&1 == 1, all)
					if verdict == protocol.Promote || verdict == protocol.Wait {
						stay = append(stay, ids[i])
					}
					if len(readers) > 0 {
						require.NotEqual(t, protocol.Promote, verdict)
					}
				}
				require.Len(t, stay, 1, show(all))
			}
		}
	}
}

// Of several promoted writers that see each other, all but the one with the
// lowest id demote. Then that one is granted.
func TestOnePromotionSurvives(t *testing.T) {
	present := []protocol.Record{
		{ID: "b", Mode: protocol.Exclusive, Election: protocol.Elected},
		{ID: "d", Mode: protocol.Exclusive, Election: protocol.NotElected},
		{ID: "f", Mode: protocol.Exclusive, Election: protocol.Elected},
	}
	require.Equal(t, protocol.Again, protocol.Confirm("b", present))
	require.Equal(t, protocol.Demote, protocol.Confirm("d", present))
	require.Equal(t, protocol.Demote, protocol.Confirm("f", present))

	// A writer that demotes answers as pending until it has left.
	for i := range present[1:] {
		present[i+1].Mode, present[i+1].Election = protocol.Pending, protocol.NotElected
	}
	require.Equal(t, protocol.Granted, protocol.Confirm("b", present))
}

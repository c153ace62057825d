package protocol_test

import (
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/tetherlock/tether/protocol"
)

// The twin says the rules a second time and in another way: where the package
// judges record by record, the twin sorts the participants into groups and
// asks its questions of the groups, one after the other. It is slow and long
// on purpose, and shares nothing with the package but the types.
type twin struct {
	exclusive    []protocol.Record // readable exclusive records with an election
	exclusive41  []protocol.Record // the same of 4.0 and 4.1
	unreadable   []protocol.Record
	readers      []protocol.Record
	joiners      []protocol.Record
	pending      []string // ids
	pendingElect []string
	pending41    []string
}

func groups(self string, others []protocol.Record) twin {
	var g twin
	for _, r := range others {
		known := r.Mode == protocol.Exclusive || r.Mode == protocol.Pending || r.Mode == protocol.Shared
		old := r.Election == protocol.Unstated || r.Election > protocol.Elected
		if r.Legacy {
			g.unreadable = append(g.unreadable, r)
		} else if r.ID == self {
			continue
		} else if !known {
			g.unreadable = append(g.unreadable, r)
		} else if r.Mode == protocol.Exclusive && old {
			g.exclusive41 = append(g.exclusive41, r)
		} else if r.Mode == protocol.Exclusive {
			g.exclusive = append(g.exclusive, r)
		} else if r.Mode == protocol.Shared && r.Joining {
			g.joiners = append(g.joiners, r)
		} else if r.Mode == protocol.Shared {
			g.readers = append(g.readers, r)
		} else if old {
			g.pending41 = append(g.pending41, r.ID)
		} else if r.Election == protocol.Elected {
			g.pendingElect = append(g.pendingElect, r.ID)
		} else {
			g.pending = append(g.pending, r.ID)
		}
	}
	return g
}

// first reports whether self comes first when sorted among ids.
func first(self string, ids []string) bool {
	all := append([]string{self}, ids...)
	sort.Strings(all)
	return all[0] == self
}

func (g twin) owned() bool {
	return len(g.exclusive)+len(g.exclusive41)+len(g.unreadable) > 0
}

func (g twin) read() bool {
	return len(g.readers)+len(g.joiners) > 0
}

func twinElect(self string, elected bool, others []protocol.Record) protocol.Verdict {
	g := groups(self, others)
	if g.owned() {
		return protocol.Held
	}
	if !elected {
		if len(g.pendingElect) > 0 {
			return protocol.Held
		}
		if !first(self, append(g.pending, g.pending41...)) {
			return protocol.Defer
		}
		if g.read() {
			return protocol.Wait
		}
		return protocol.Promote
	}
	if !first(self, g.pendingElect) {
		return protocol.Held
	}
	if !first(self, g.pending41) {
		return protocol.Defer
	}
	if g.read() || !first(self, g.pending) {
		return protocol.Wait
	}
	return protocol.Promote
}

func twinConfirm(self string, others []protocol.Record) protocol.Verdict {
	g := groups(self, others)
	var rivals []string
	for _, r := range g.exclusive {
		rivals = append(rivals, r.ID)
	}
	for _, lost := range []bool{
		len(g.unreadable) > 0,
		len(g.exclusive41) > 0,
		!first(self, rivals),
		len(g.readers) > 0,
		!first(self, g.pending41),
	} {
		if lost {
			return protocol.Demote
		}
	}
	for _, unclear := range []bool{
		len(rivals) > 0,
		len(g.joiners) > 0,
		len(g.pending41) > 0,
		!first(self, g.pending),
		!first(self, g.pendingElect),
	} {
		if unclear {
			return protocol.Again
		}
	}
	return protocol.Granted
}

func twinJoin(self string, others []protocol.Record) protocol.Verdict {
	g := groups(self, others)
	if g.owned() || len(g.pendingElect) > 0 {
		return protocol.Held
	}
	if len(g.pending)+len(g.pending41) > 0 {
		return protocol.Defer
	}
	return protocol.Granted
}

func twinBlocking(want protocol.Mode, others []protocol.Record) []protocol.Record {
	return slices.DeleteFunc(slices.Clone(others), func(r protocol.Record) bool {
		g := groups("nobody's id", []protocol.Record{r})
		if g.owned() {
			return false
		}
		if want == protocol.Shared {
			return len(g.pendingElect) == 0
		}
		return len(g.readers) == 0
	})
}

func requireTwins(t *testing.T, self string, others []protocol.Record) {
	t.Helper()
	for _, elected := range []bool{false, true} {
		if got, want := protocol.Elect(self, elected, others), twinElect(self, elected, others); got != want {
			t.Fatalf("Elect(%s, %v, %+v) = %v, its twin says %v", self, elected, others, got, want)
		}
	}
	if got, want := protocol.Confirm(self, others), twinConfirm(self, others); got != want {
		t.Fatalf("Confirm(%s, %+v) = %v, its twin says %v", self, others, got, want)
	}
	if got, want := protocol.Join(self, others), twinJoin(self, others); got != want {
		t.Fatalf("Join(%s, %+v) = %v, its twin says %v", self, others, got, want)
	}
	for _, want := range []protocol.Mode{protocol.Exclusive, protocol.Pending, protocol.Shared} {
		if got, twin := protocol.Blocking(want, others), twinBlocking(want, others); !slices.Equal(got, twin) {
			t.Fatalf("Blocking(%v, %+v) = %+v, its twin says %+v", want, others, got, twin)
		}
	}
}

// everyRecord returns every record that these ids, modes and elections allow.
func everyRecord(ids []string, modes []protocol.Mode, elections []protocol.Election) []protocol.Record {
	var all []protocol.Record
	for _, id := range ids {
		for _, mode := range modes {
			for _, election := range elections {
				for _, legacy := range []bool{false, true} {
					for _, joining := range []bool{false, true} {
						all = append(all, protocol.Record{ID: id, Mode: mode, Election: election, Legacy: legacy, Joining: joining})
					}
				}
			}
		}
	}
	return all
}

var (
	realModes     = []protocol.Mode{protocol.Exclusive, protocol.Pending, protocol.Shared}
	realElections = []protocol.Election{protocol.Unstated, protocol.NotElected, protocol.Elected}
)

// eachSet calls f with every set of up to size records, in one order each. The
// slice is only valid during the call.
func eachSet(kinds []protocol.Record, size int, f func(set []protocol.Record)) {
	set := make([]protocol.Record, 0, size)
	var extend func(from int)
	extend = func(from int) {
		f(set)
		if len(set) == size {
			return
		}
		for i := from; i < len(kinds); i++ {
			set = append(set, kinds[i])
			extend(i)
			set = set[:len(set)-1]
		}
	}
	extend(0)
}

func TestTwinOnAllSmallSets(t *testing.T) {
	eachSet(everyRecord([]string{"a", "c"}, realModes, realElections), 3, func(set []protocol.Record) {
		requireTwins(t, "b", set)
	})
}

// Records that no wire produces, and the asker's own.
func TestTwinOnOddRecords(t *testing.T) {
	modes := append([]protocol.Mode{0, protocol.Shared + 1}, realModes...)
	elections := append([]protocol.Election{protocol.Elected + 1}, realElections...)
	eachSet(everyRecord([]string{"", "a", "b", "c"}, modes, elections), 1, func(set []protocol.Record) {
		requireTwins(t, "b", set)
		requireTwins(t, "", set)
	})
	eachSet(everyRecord([]string{"b", "c"}, modes, elections), 2, func(set []protocol.Record) {
		requireTwins(t, "b", set)
	})
}

func TestTwinOnRandomSets(t *testing.T) {
	rng := newRand(t)
	for range 50_000 {
		self, others := randomSet(rng)
		requireTwins(t, self, others)
	}
}

// newRand returns a random source, and logs its seed in case the test fails.
func newRand(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// randomSet returns an asker and up to twelve answers. Harmless kinds are drawn
// more often in some sets, or nearly every big set would be refused for an
// exclusive record in it.
func randomSet(rng *rand.Rand) (self string, others []protocol.Record) {
	ids := []string{"a", "ab", "b", "c", "d", "e", "f"}
	modes := [][]protocol.Mode{realModes, {protocol.Pending}, {protocol.Shared}, {protocol.Pending, protocol.Shared}}
	of := modes[rng.IntN(len(modes))]
	legacyEach := 1 + rng.IntN(50)
	for range rng.IntN(13) {
		others = append(others, protocol.Record{
			ID:       ids[rng.IntN(len(ids))],
			Mode:     of[rng.IntN(len(of))],
			Election: realElections[rng.IntN(len(realElections))],
			Legacy:   rng.IntN(legacyEach) == 1,
			Joining:  rng.IntN(2) == 0,
			Held:     rng.Int64N(1000),
		})
	}
	return ids[rng.IntN(len(ids))], others
}

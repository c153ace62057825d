package protocol_test

import (
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/tetherlock/tether/protocol"
)

// The functions in this file are a reference implementation of the verdicts. The
// package combines the verdicts on single records. The reference sorts all
// records into groups first, and decides by the groups. It is slow and shares
// only the types with the package, so that an error in one is not repeated in the
// other.

// groups are the records of other participants by what they claim.
type groups struct {
	exclusive      []protocol.Record // readable, with an election
	exclusivePre42 []protocol.Record // readable, without an election
	unreadable     []protocol.Record
	readers        []protocol.Record
	joiners        []protocol.Record
	pending        []string // ids
	pendingElected []string
	pendingPre42   []string
}

func groupRecords(self string, others []protocol.Record) groups {
	var g groups
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
			g.exclusivePre42 = append(g.exclusivePre42, r)
		} else if r.Mode == protocol.Exclusive {
			g.exclusive = append(g.exclusive, r)
		} else if r.Mode == protocol.Shared && r.Joining {
			g.joiners = append(g.joiners, r)
		} else if r.Mode == protocol.Shared {
			g.readers = append(g.readers, r)
		} else if old {
			g.pendingPre42 = append(g.pendingPre42, r.ID)
		} else if r.Election == protocol.Elected {
			g.pendingElected = append(g.pendingElected, r.ID)
		} else {
			g.pending = append(g.pending, r.ID)
		}
	}
	return g
}

// sortsFirst reports whether self is the lowest of all ids.
func sortsFirst(self string, ids []string) bool {
	all := append([]string{self}, ids...)
	sort.Strings(all)
	return all[0] == self
}

func (g groups) anyExclusive() bool {
	return len(g.exclusive)+len(g.exclusivePre42)+len(g.unreadable) > 0
}

func (g groups) anyReader() bool {
	return len(g.readers)+len(g.joiners) > 0
}

func referenceElect(self string, elected bool, others []protocol.Record) protocol.Verdict {
	g := groupRecords(self, others)
	if g.anyExclusive() {
		return protocol.Held
	}
	if !elected {
		if len(g.pendingElected) > 0 {
			return protocol.Held
		}
		if !sortsFirst(self, append(g.pending, g.pendingPre42...)) {
			return protocol.Defer
		}
		if g.anyReader() {
			return protocol.Wait
		}
		return protocol.Promote
	}
	if !sortsFirst(self, g.pendingElected) {
		return protocol.Held
	}
	if !sortsFirst(self, g.pendingPre42) {
		return protocol.Defer
	}
	if g.anyReader() || !sortsFirst(self, g.pending) {
		return protocol.Wait
	}
	return protocol.Promote
}

func referenceConfirm(self string, others []protocol.Record) protocol.Verdict {
	g := groupRecords(self, others)
	var rivals []string
	for _, r := range g.exclusive {
		rivals = append(rivals, r.ID)
	}
	for _, demotes := range []bool{
		len(g.unreadable) > 0,
		len(g.exclusivePre42) > 0,
		!sortsFirst(self, rivals),
		len(g.readers) > 0,
		!sortsFirst(self, g.pendingPre42),
	} {
		if demotes {
			return protocol.Demote
		}
	}
	for _, undecided := range []bool{
		len(rivals) > 0,
		len(g.joiners) > 0,
		len(g.pendingPre42) > 0,
		!sortsFirst(self, g.pending),
		!sortsFirst(self, g.pendingElected),
	} {
		if undecided {
			return protocol.Again
		}
	}
	return protocol.Granted
}

func referenceJoin(self string, others []protocol.Record) protocol.Verdict {
	g := groupRecords(self, others)
	if g.anyExclusive() || len(g.pendingElected) > 0 {
		return protocol.Held
	}
	if len(g.pending)+len(g.pendingPre42) > 0 {
		return protocol.Defer
	}
	return protocol.Granted
}

func referenceBlocking(want protocol.Mode, others []protocol.Record) []protocol.Record {
	return slices.DeleteFunc(slices.Clone(others), func(r protocol.Record) bool {
		g := groupRecords("none", []protocol.Record{r})
		if g.anyExclusive() {
			return false
		}
		if want == protocol.Shared {
			return len(g.pendingElected) == 0
		}
		return len(g.readers) == 0
	})
}

func requireLikeReference(t *testing.T, self string, others []protocol.Record) {
	t.Helper()
	for _, elected := range []bool{false, true} {
		if got, want := protocol.Elect(self, elected, others), referenceElect(self, elected, others); got != want {
			t.Fatalf("Elect(%s, %v, %+v) = %v, the reference says %v", self, elected, others, got, want)
		}
	}
	if got, want := protocol.Confirm(self, others), referenceConfirm(self, others); got != want {
		t.Fatalf("Confirm(%s, %+v) = %v, the reference says %v", self, others, got, want)
	}
	if got, want := protocol.Join(self, others), referenceJoin(self, others); got != want {
		t.Fatalf("Join(%s, %+v) = %v, the reference says %v", self, others, got, want)
	}
	for _, mode := range []protocol.Mode{protocol.Exclusive, protocol.Pending, protocol.Shared} {
		if got, want := protocol.Blocking(mode, others), referenceBlocking(mode, others); !slices.Equal(got, want) {
			t.Fatalf("Blocking(%v, %+v) = %+v, the reference says %+v", mode, others, got, want)
		}
	}
}

// everyRecord returns every combination of these ids, modes and elections.
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

func TestReferenceOnAllSmallSets(t *testing.T) {
	eachSet(everyRecord([]string{"a", "c"}, realModes, realElections), 3, func(set []protocol.Record) {
		requireLikeReference(t, "b", set)
	})
}

// Records that package wire never decodes, and records with self's own id.
func TestReferenceOnOddRecords(t *testing.T) {
	modes := append([]protocol.Mode{0, protocol.Shared + 1}, realModes...)
	elections := append([]protocol.Election{protocol.Elected + 1}, realElections...)
	eachSet(everyRecord([]string{"", "a", "b", "c"}, modes, elections), 1, func(set []protocol.Record) {
		requireLikeReference(t, "b", set)
		requireLikeReference(t, "", set)
	})
	eachSet(everyRecord([]string{"b", "c"}, modes, elections), 2, func(set []protocol.Record) {
		requireLikeReference(t, "b", set)
	})
}

func TestReferenceOnRandomSets(t *testing.T) {
	rng := newRand(t)
	for range 50_000 {
		self, others := randomSet(rng)
		requireLikeReference(t, self, others)
	}
}

// newRand returns a random source, and logs its seed in case the test fails.
func newRand(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// randomSet returns an own id and up to twelve records. Some sets have only
// pending or shared records: otherwise nearly every large set would contain an
// exclusive one, and all verdicts would be the same.
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

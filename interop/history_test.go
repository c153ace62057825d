package interop

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// hold is a hold with the times at which its holder wrote them down. The grant was
// decided between earliest and from.
type hold struct {
	who, mode, id      string
	earliest, from, to int64
}

func (s hold) String() string {
	return fmt.Sprintf("%s %s %s [%d %d %d]", s.who, s.mode, s.id, s.earliest, s.from, s.to)
}

func (s hold) byTether() bool { return strings.HasPrefix(s.who, "tether") }

// overlap is two holds that exclude each other and overlap in time.
type overlap struct{ first, second hold }

// certain reports whether first was granted before second. Otherwise both may have
// been granted in either order.
func (o overlap) certain() bool { return o.first.from < o.second.earliest }

func (o overlap) duration() int64 { return min(o.first.to, o.second.to) - o.second.from }

// historyLine is one entry of the history.
type historyLine struct {
	at    int64
	who   string
	what  string
	words []string
}

func readHistory(t testing.TB, path string) []historyLine {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var lines []historyLine
	for l := range strings.Lines(string(text)) {
		words := strings.Fields(l)
		require.GreaterOrEqual(t, len(words), 3, l)
		lines = append(lines, historyLine{parseInt(t, words[0]), words[1], words[2], words[3:]})
	}
	slices.SortStableFunc(lines, func(a, b historyLine) int { return cmp.Compare(a.at, b.at) })
	return lines
}

func parseInt(t testing.TB, s string) int64 {
	t.Helper()
	var n int64
	_, err := fmt.Sscan(s, &n)
	require.NoError(t, err)
	return n
}

// holds are the holds of a history. A hold ends when its holder is about to release
// it or is told of its loss, when its process is about to be killed, or when a
// participant is about to reap it.
func holds(t testing.TB, lines []historyLine) []hold {
	t.Helper()
	var list []hold
	open := map[string]int{} // process → index of its hold
	end := func(who string, at int64) {
		if i, ok := open[who]; ok {
			list[i].to = at
			delete(open, who)
		}
	}
	for _, l := range lines {
		switch l.what {
		case "granted":
			require.NotContains(t, open, l.who)
			require.Len(t, l.words, 3)
			open[l.who] = len(list)
			list = append(list, hold{l.who, l.words[0], l.words[1], parseInt(t, l.words[2]), l.at, math.MaxInt64})
		case "leaving", "lost":
			end(l.who, l.at)
		case "killing":
			end(l.words[0], l.at)
		case "reaping":
			for who, i := range open {
				if len(l.words) > 0 && list[i].id == l.words[0] {
					end(who, l.at)
				}
			}
		default:
			require.FailNow(t, l.what)
		}
	}
	return list
}

// overlaps finds all pairs of holds that exclude each other and overlap in time.
func overlaps(list []hold) []overlap {
	var found []overlap
	var active []hold
	slices.SortFunc(list, func(a, b hold) int { return cmp.Compare(a.from, b.from) })
	for _, s := range list {
		active = slices.DeleteFunc(active, func(other hold) bool { return other.to <= s.from })
		for _, other := range active {
			if other.mode == "x" || s.mode == "x" {
				found = append(found, overlap{other, s})
			}
		}
		active = append(active, s)
	}
	return found
}

func TestOverlapsAreFound(t *testing.T) {
	x := func(who string, earliest, from, to int64) hold { return hold{who, "x", who, earliest, from, to} }
	s := func(who string, earliest, from, to int64) hold { return hold{who, "s", who, earliest, from, to} }
	for _, c := range []struct {
		name string
		list []hold
		want []overlap
	}{
		{"one after the other", []hold{x("a", 1, 2, 5), x("b", 4, 5, 9)}, nil},
		{"writers together", []hold{x("b", 4, 5, 9), x("a", 1, 2, 6)}, []overlap{{x("a", 1, 2, 6), x("b", 4, 5, 9)}}},
		{"readers together", []hold{s("a", 1, 2, 6), s("b", 4, 5, 9)}, nil},
		{"a reader and a writer", []hold{s("a", 1, 2, 9), x("b", 3, 4, 5)}, []overlap{{s("a", 1, 2, 9), x("b", 3, 4, 5)}}},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, overlaps(c.list)) })
	}
	require.True(t, overlap{x("a", 1, 2, 6), x("b", 4, 5, 9)}.certain())
	require.False(t, overlap{x("a", 1, 4, 6), x("b", 4, 5, 9)}.certain())
}

func TestAHoldEndsInSeveralWays(t *testing.T) {
	path := t.TempDir() + "/history"
	require.NoError(t, os.WriteFile(path, []byte(`10 python-1 granted x aa 9
20 python-1 leaving
50 tether-1 granted s bb 45
30 python-2 granted x cc 29
40 test killing python-2
60 python-3 granted s dd 59
70 tether-1 reaping dd
80 tether-1 lost
90 tether-1 leaving
95 python-4 granted x ee 94
`), 0o600))
	require.Equal(t, []hold{
		{"python-1", "x", "aa", 9, 10, 20},
		{"python-2", "x", "cc", 29, 30, 40},
		{"tether-1", "s", "bb", 45, 50, 80},
		{"python-3", "s", "dd", 59, 60, 70},
		{"python-4", "x", "ee", 94, 95, math.MaxInt64},
	}, holds(t, readHistory(t, path)))
}

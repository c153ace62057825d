package stress

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const ms = time.Millisecond

// at sets the time of an entry.
func at(t time.Duration, e entry) entry {
	e.At = t
	return e
}

// grants are the entries of a hold, without an end if to is zero. The token is the
// hold's number, which as a time is long ago. So the earliest grant is the time at
// which the hold was asked for, a millisecond before its begin entry.
func grants(who string, n int, mode string, from, to time.Duration) []entry {
	e := entry{Kind: begin, Who: who, Lock: "l", Hold: n, Mode: mode, ID: who, Then: from - ms}
	if mode == writer {
		e.Token = int64(n)
	}
	list := []entry{at(from, e)}
	if to != 0 {
		list = append(list, at(to, entry{Kind: end, Who: who, Hold: n}))
	}
	return list
}

// loses is the entry of a hold whose process was told of its loss.
func loses(who string, n int, then time.Duration) entry {
	return at(then+ms, entry{Kind: lost, Who: who, Hold: n, Then: then})
}

// fails is the entry of an acquire that got nothing after a while. The limit is 0
// for a try.
func fails(k kind, after, limit time.Duration, text string) entry {
	return at(ms+after, entry{Kind: k, Who: "a", Lock: "l", Then: ms, N: int64(limit), Text: text})
}

func stops(who string, from, to time.Duration) []entry {
	return []entry{at(from, entry{Kind: stopping, Who: who}), at(to, entry{Kind: continued, Who: who})}
}

func disconnects(id string, when time.Duration, n int64) []entry {
	return []entry{at(when, entry{Kind: disconnecting, ID: id}), at(when+ms, entry{Kind: disconnected, ID: id, N: n})}
}

func restarts(when time.Duration) []entry {
	return []entry{at(when, entry{Kind: serverKilling}), at(when+ms, entry{Kind: serverKilled}), at(when+100*ms, entry{Kind: serverStarted})}
}

func pauses(what string, when, d time.Duration) []entry {
	return []entry{
		at(when, entry{Kind: pausing, N: int64(d), Text: what}),
		at(when+ms, entry{Kind: paused, N: int64(d), Text: what}),
	}
}

func process(who string, ends kind, when time.Duration) []entry {
	return []entry{at(0, entry{Kind: started, Who: who}), at(when, entry{Kind: ends, Who: who})}
}

func writes(who string, n int, k kind, when time.Duration) entry {
	return at(when, entry{Kind: k, Who: who, Lock: "l", Hold: n, Token: int64(n)})
}

// TestChecker has a history for each violation, and beside it what is none. The
// unavailable time-out is 400 ms, a health check may take a second, and a holder
// must be told of its loss within 500 ms.
func TestChecker(t *testing.T) {
	for _, c := range []struct {
		name    string
		history [][]entry
		want    []string // beginnings of the violations
	}{
		{"one after the other", [][]entry{
			grants("a", 1, writer, 100*ms, 110*ms), grants("b", 2, writer, 120*ms, 130*ms), grants("a", 3, writer, 131*ms, 132*ms),
		}, nil},
		{"readers together", [][]entry{
			grants("a", 1, reader, 100*ms, 200*ms), grants("b", 2, reader, 120*ms, 230*ms),
		}, nil},
		{"other locks are other locks", [][]entry{
			grants("a", 1, writer, 100*ms, 200*ms), {at(120*ms, entry{Kind: begin, Who: "b", Lock: "m", Hold: 2, Mode: writer, Token: 1}), at(130*ms, entry{Kind: end, Who: "b", Hold: 2})},
		}, nil},

		// Acquires that got nothing.
		{"a wait until its time-out", [][]entry{{fails(cancelled, 500*ms, 500*ms, "l is held")}}, nil},
		{"a wait that ends early", [][]entry{{fails(cancelled, 400*ms, 500*ms, "")}}, []string{"a wait of a for l ends after 400ms of 500ms"}},
		{"a wait that fails", [][]entry{{fails(failed, 400*ms, 500*ms, "EOF")}}, []string{"a wait of a for l ends after 400ms of 500ms: EOF"}},
		{"a try that fails", [][]entry{{fails(failed, 400*ms, 0, "1 participant does not answer")}}, nil},
		{"a wait beside a silent participant, explained", [][]entry{
			{fails(cancelled, 500*ms, 500*ms, "1 participant does not answer (asked 300ms ago, disconnected after 400ms without an answer)")},
		}, nil},
		{"a wait beside a silent participant, unexplained", [][]entry{
			{fails(cancelled, 500*ms, 500*ms, "1 participant does not answer")},
		}, []string{"a wait of a for l ends without saying what was tried"}},

		// Overlaps.
		{"two writers", [][]entry{
			grants("a", 1, writer, 100*ms, 200*ms), grants("b", 2, writer, 150*ms, 160*ms),
		}, []string{"b's hold 2 of l (writer, token 2, id b) overlaps with a's hold 1"}},
		{"two writers of one process", [][]entry{
			grants("a", 1, writer, 100*ms, 200*ms), grants("a", 2, writer, 150*ms, 160*ms),
		}, []string{"a's hold 2 of l (writer, token 2, id a) overlaps"}},
		{"a reader beside a writer", [][]entry{
			grants("a", 1, writer, 100*ms, 200*ms), grants("b", 2, reader, 150*ms, 160*ms),
		}, []string{"b's hold 2 of l (reader, token 0, id b) overlaps"}},
		{"a writer beside a reader, behind another reader", [][]entry{
			grants("a", 1, reader, 100*ms, 200*ms), grants("c", 3, reader, 110*ms, 120*ms), grants("b", 2, writer, 150*ms, 160*ms),
		}, []string{"b's hold 2 of l (writer, token 2, id b) overlaps"}},
		{"three at once", [][]entry{
			grants("a", 1, writer, 100*ms, 200*ms), grants("b", 2, writer, 150*ms, 160*ms), grants("c", 3, writer, 155*ms, 158*ms),
		}, []string{"b's", "c's", "c's"}},

		// Overlaps beside a stop.
		{"stopped for long", [][]entry{
			grants("a", 1, writer, 100*ms, 0), stops("a", 120*ms, 900*ms), {loses("a", 1, 905*ms)}, grants("b", 2, writer, 600*ms, 1000*ms),
		}, nil},
		{"stopped reader", [][]entry{
			grants("a", 1, reader, 100*ms, 0), stops("a", 120*ms, 900*ms), {loses("a", 1, 905*ms)}, grants("b", 2, writer, 600*ms, 1000*ms),
		}, nil},
		{"stopped for a moment", [][]entry{
			grants("a", 1, writer, 100*ms, 700*ms), stops("a", 120*ms, 400*ms), grants("b", 2, writer, 600*ms, 650*ms),
		}, []string{"b's hold 2"}},
		{"stopped for a moment, and then it did not run", [][]entry{
			grants("a", 1, writer, 100*ms, 700*ms), stops("a", 120*ms, 400*ms), {at(590*ms, entry{Kind: stall, Who: "a", Then: 119 * ms})},
			grants("b", 2, writer, 585*ms, 650*ms),
		}, nil},
		{"nobody ran", [][]entry{
			grants("a", 1, writer, 100*ms, 700*ms), {at(590*ms, entry{Kind: stall, Then: 119 * ms})}, grants("b", 2, writer, 585*ms, 650*ms),
		}, nil},
		{"taken too soon", [][]entry{
			grants("a", 1, writer, 100*ms, 0), stops("a", 120*ms, 900*ms), {loses("a", 1, 905*ms)}, grants("b", 2, writer, 400*ms, 420*ms),
		}, []string{"b's hold 2"}},
		{"stopped before", [][]entry{
			stops("a", 100*ms, 1000*ms), grants("a", 1, writer, 2000*ms, 2100*ms), grants("b", 2, writer, 2050*ms, 2060*ms),
		}, []string{"b's hold 2"}},
		{"another one is stopped", [][]entry{
			grants("a", 1, writer, 100*ms, 2000*ms), stops("c", 120*ms, 1900*ms), grants("b", 2, writer, 1000*ms, 1100*ms),
		}, []string{"b's hold 2"}},
		{"the younger one is stopped", [][]entry{
			grants("a", 1, writer, 100*ms, 2000*ms), grants("b", 2, writer, 150*ms, 0), stops("b", 160*ms, 1900*ms), {loses("b", 2, 1901*ms)},
		}, []string{"b's hold 2"}},
		{"told late", [][]entry{
			grants("a", 1, writer, 100*ms, 0), stops("a", 120*ms, 900*ms), {loses("a", 1, 1500*ms)}, grants("b", 2, writer, 600*ms, 1600*ms),
		}, []string{"b's hold 2", "a's hold 1 of l (writer, token 1, id a) was lost without a cause"}},
		{"told late, but it was stopped again", [][]entry{
			grants("a", 1, writer, 100*ms, 0), stops("a", 120*ms, 900*ms), stops("a", 1000*ms, 1300*ms), {loses("a", 1, 1500*ms)},
			grants("b", 2, writer, 600*ms, 1600*ms),
		}, nil},

		// Overlaps beside other faults.
		{"cut off", [][]entry{
			grants("a", 1, writer, 100*ms, 0), disconnects("a", 120*ms, 1), {loses("a", 1, 130*ms)}, grants("b", 2, writer, 125*ms, 140*ms),
		}, nil},
		{"not cut off", [][]entry{
			grants("a", 1, writer, 100*ms, 200*ms), disconnects("a", 120*ms, 0), grants("b", 2, writer, 125*ms, 140*ms),
		}, []string{"b's hold 2"}},
		{"another one was cut off", [][]entry{
			grants("a", 1, writer, 100*ms, 200*ms), disconnects("b", 120*ms, 1), grants("b", 2, writer, 125*ms, 140*ms),
		}, []string{"b's hold 2"}},
		{"cut off while it is stopped", [][]entry{
			grants("a", 1, writer, 100*ms, 0), stops("a", 110*ms, 300*ms), disconnects("a", 120*ms, 1), {loses("a", 1, 310*ms)},
			grants("b", 2, writer, 125*ms, 400*ms),
		}, nil},
		{"restart", [][]entry{
			grants("a", 1, writer, 100*ms, 0), restarts(120 * ms), {loses("a", 1, 500*ms)}, grants("b", 2, writer, 230*ms, 400*ms),
		}, nil},
		{"killed", [][]entry{
			process("a", killing, 120*ms), grants("a", 1, writer, 100*ms, 0), grants("b", 2, writer, 121*ms, 130*ms),
		}, nil},
		{"killed later", [][]entry{
			process("a", killing, 130*ms), grants("a", 1, writer, 100*ms, 0), grants("b", 2, writer, 121*ms, 140*ms),
		}, []string{"b's hold 2"}},
		{"paused for long", [][]entry{
			grants("a", 1, writer, 100*ms, 0), pauses(pauseAll, 110*ms, 1200*ms), {loses("a", 1, 1320*ms)}, grants("b", 2, writer, 1311*ms, 1400*ms),
		}, nil},
		{"paused", [][]entry{
			grants("a", 1, writer, 100*ms, 2000*ms), pauses(pauseAll, 110*ms, 800*ms), grants("b", 2, writer, 1311*ms, 1400*ms),
		}, []string{"b's hold 2"}},
		{"writes were paused", [][]entry{
			grants("a", 1, writer, 100*ms, 2000*ms), pauses(pauseWrite, 110*ms, 1200*ms), grants("b", 2, writer, 1311*ms, 1400*ms),
		}, []string{"b's hold 2"}},

		// Tokens.
		{"a lower token later", [][]entry{
			grants("a", 2, writer, 100*ms, 110*ms), grants("b", 1, writer, 120*ms, 130*ms),
		}, []string{"b's hold 1 of l (writer, token 1, id b) begins 20ms after a's hold 2"}},
		{"a lower token later, of one that was stopped with it", [][]entry{
			{at(1600*ms, entry{Kind: begin, Who: "b", Lock: "l", Hold: 1, Mode: writer, ID: "b", Token: 1, Then: 90 * ms})},
			stops("b", 100*ms, 1500*ms), grants("a", 2, writer, 600*ms, 700*ms),
			{at(1601*ms, entry{Kind: lost, Who: "b", Hold: 1, Then: 1590 * ms})},
		}, nil},
		{"the same token twice", [][]entry{
			grants("a", 1, writer, 100*ms, 110*ms), grants("b", 1, writer, 120*ms, 130*ms),
		}, []string{"b's hold 1 of l (writer, token 1, id b) has the token of a's hold 1"}},
		{"no token", [][]entry{
			{at(100*ms, entry{Kind: begin, Who: "a", Lock: "l", Hold: 1, Mode: writer, ID: "a", Then: 99 * ms}), at(101*ms, entry{Kind: end, Who: "a", Hold: 1})},
		}, []string{"a's hold 1 of l (writer, token 0, id a) has no token"}},

		// The store.
		{"accepted and refused", [][]entry{
			grants("a", 1, writer, 100*ms, 0), stops("a", 120*ms, 900*ms), {loses("a", 1, 905*ms)}, grants("b", 2, writer, 600*ms, 1000*ms),
			{writes("a", 1, accepted, 101*ms), writes("b", 2, accepted, 601*ms), writes("a", 1, refused, 903*ms)},
		}, nil},
		{"a healthy one is refused", [][]entry{
			grants("a", 1, writer, 100*ms, 110*ms), {writes("a", 1, refused, 105*ms)},
		}, []string{"the store refuses a's hold 1"}},
		{"refused too soon", [][]entry{
			grants("a", 1, writer, 100*ms, 0), stops("a", 120*ms, 900*ms), {loses("a", 1, 905*ms)}, {writes("a", 1, refused, 119*ms)},
		}, []string{"the store refuses a's hold 1"}},
		{"it goes back", [][]entry{
			grants("a", 1, writer, 100*ms, 110*ms), grants("b", 2, writer, 120*ms, 130*ms),
			{writes("b", 2, accepted, 121*ms), writes("a", 1, accepted, 122*ms)},
		}, []string{"the store of l went back from 2 to 1"}},

		// Losses.
		{"nobody told it", [][]entry{
			grants("a", 1, writer, 100*ms, 900*ms), disconnects("a", 120*ms, 1),
		}, []string{"a's hold 1 of l (writer, token 1, id a) goes on for 779ms after the end of its connection"}},
		{"nobody told it of the restart", [][]entry{
			grants("a", 1, writer, 100*ms, 900*ms), restarts(120 * ms),
		}, []string{"a's hold 1 of l (writer, token 1, id a) goes on for 779ms after the end of the server"}},
		{"a healthy one is cut off", [][]entry{
			grants("a", 1, writer, 100*ms, 0), {loses("a", 1, 120*ms)},
		}, []string{"a's hold 1 of l (writer, token 1, id a) was lost without a cause"}},
		{"one that was stopped for a moment is cut off", [][]entry{
			grants("a", 1, writer, 100*ms, 0), stops("a", 120*ms, 400*ms), {loses("a", 1, 401*ms)},
		}, []string{"a's hold 1 of l (writer, token 1, id a) was lost without a cause"}},
		{"one is cut off beside a pause of writes", [][]entry{
			grants("a", 1, writer, 100*ms, 0), pauses(pauseWrite, 110*ms, 3000*ms), {loses("a", 1, 3200*ms)},
		}, []string{"a's hold 1 of l (writer, token 1, id a) was lost without a cause"}},

		// Ends.
		{"no end", [][]entry{
			grants("a", 1, writer, 100*ms, 0),
		}, []string{"a's hold 1 of l (writer, token 1, id a) has no end"}},
		{"an end without a beginning", [][]entry{
			{at(100*ms, entry{Kind: end, Who: "a", Hold: 1})},
		}, []string{"end of a's hold 1, which has not begun"}},
		{"it finished", [][]entry{process("a", finished, 100*ms)}, nil},
		{"it did not finish", [][]entry{{at(0, entry{Kind: started, Who: "a"})}}, []string{"a did not end in order"}},
		{"a worker reports an error", [][]entry{{at(0, entry{Kind: workerError, Who: "a", Text: "leak"})}}, []string{"a: leak"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			history := slices.Concat(c.history...)
			slices.SortStableFunc(history, func(a, b entry) int { return cmp.Compare(a.At, b.At) })
			k := checker{unavailable: 400 * ms, health: time.Second, noticeTime: 500 * ms}
			found := k.check(history)
			require.Len(t, found, len(c.want), "%q", found)
			for i, want := range c.want {
				require.Contains(t, found[i], want)
			}
		})
	}
}

// A SIGKILL in the middle of a write leaves half a line. The line after it must be
// readable.
func TestATornLineSpoilsNoOther(t *testing.T) {
	path := t.TempDir() + "/history"
	j, err := openHistory(path)
	require.NoError(t, err)
	j.add(entry{Kind: begin, Who: "a", Hold: 1})
	_, err = j.file.WriteString("\n{\"At\":12,\"Ki")
	require.NoError(t, err)
	j.add(entry{Kind: end, Who: "b", Hold: 2})
	require.NoError(t, j.file.Close())
	history, torn, err := readHistory(path)
	require.NoError(t, err)
	require.Equal(t, 1, torn)
	require.Len(t, history, 2)
	require.Equal(t, begin, history[0].Kind)
	require.Equal(t, end, history[1].Kind)
	require.Greater(t, history[1].At, history[0].At)
}

package wire

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/protocol"
)

// queueOf returns n waiters. Every third is a reader.
func queueOf(n int) protocol.Queue {
	var queue protocol.Queue
	for i := range n {
		w := protocol.Waiter{ID: fmt.Sprintf("%032x", i), Want: protocol.Exclusive}
		if i%3 == 0 {
			w.Want = protocol.Shared
		}
		queue = append(queue, w)
	}
	return queue
}

func randomID(rng *rand.Rand) string { return fmt.Sprintf("%016x%016x", rng.Uint64(), rng.Uint64()) }

// randomQueue returns nil instead of an empty queue, as the decoder does.
func randomQueue(rng *rand.Rand) protocol.Queue {
	var queue protocol.Queue
	for range rng.IntN(8) {
		want := []protocol.Mode{protocol.Exclusive, protocol.Shared}[rng.IntN(2)]
		queue = append(queue, protocol.Waiter{ID: randomID(rng), Want: want})
	}
	return queue
}

// requireValidQueue checks what a decoder guarantees about a queue: its length,
// valid waiters, no duplicates.
func requireValidQueue(t *testing.T, queue protocol.Queue) {
	require.LessOrEqual(t, len(queue), protocol.MaxLuggage)
	seen := map[string]bool{}
	for _, w := range queue {
		require.True(t, validHolderID(w.ID))
		require.Contains(t, []protocol.Mode{protocol.Exclusive, protocol.Shared}, w.Want)
		require.False(t, seen[w.ID])
		seen[w.ID] = true
	}
}

func TestAppendWaiters(t *testing.T) {
	require.Equal(t, "[", string(appendWaiters([]byte("["), nil)))
	require.Equal(t, `[["`+idA+`","s"],["`+idB+`","x"]`, string(appendWaiters([]byte("["), protocol.Queue{
		{ID: idA, Want: protocol.Shared}, {ID: "legacy-0", Want: protocol.Shared}, {ID: idB, Want: protocol.Exclusive},
		{ID: `"`, Want: protocol.Exclusive},
	})))
	require.Empty(t, appendWaiters(nil, protocol.Queue{{ID: "legacy-0"}}))
	all := appendWaiters(nil, queueOf(protocol.MaxQueue))
	require.Len(t, all, protocol.MaxLuggage*waiterLen-1)
	require.Equal(t, queueOf(protocol.MaxLuggage), raw("["+string(all)+"]").asQueue())
}

func TestReadQueue(t *testing.T) {
	a, b := `["`+idA+`","x"]`, `["`+idB+`","s"]`
	waiterA := protocol.Waiter{ID: idA, Want: protocol.Exclusive}
	waiterB := protocol.Waiter{ID: idB, Want: protocol.Shared}
	for _, c := range []struct {
		data string
		want protocol.Queue
	}{
		{``, nil},
		{`null`, nil},
		{`7`, nil},
		{`"[]"`, nil},
		{`{"queue":[` + a + `]}`, nil},
		{`[]`, nil},
		{`[ ]`, nil},
		{a, nil},
		{`[` + a + `]`, protocol.Queue{waiterA}},
		{`[` + a + `,` + b + `]`, protocol.Queue{waiterA, waiterB}},
		{"[ [ \"" + idA + "\" ,\t\"x\" ]\n,\r" + b + " ]", protocol.Queue{waiterA, waiterB}},
		{`[["\u0030` + idA[1:] + `","\u0078"]]`, protocol.Queue{waiterA}},
		{`[` + b + `,` + a + `,["` + idB + `","x"],` + b + `]`, protocol.Queue{waiterB, waiterA}},
		// A malformed waiter is dropped, the others are kept.
		{`[null,` + a + `,7,true,"x",{},[],[[]],` + b + `,"` + idA + `"]`, protocol.Queue{waiterA, waiterB}},
		{`[{"` + idA + `":"x"},` + b + `]`, protocol.Queue{waiterB}},
		{`[["` + idA + `"],` + b + `]`, protocol.Queue{waiterB}},
		{`[["` + idA + `","x",1],` + b + `]`, protocol.Queue{waiterB}},
		{`[["` + idA + `","x","x"],` + b + `]`, protocol.Queue{waiterB}},
		{`[["x","` + idA + `"],` + b + `]`, protocol.Queue{waiterB}},
		{`[["` + idA + `",["x"]],` + b + `]`, protocol.Queue{waiterB}},
		{`[[["` + idA + `","x"]],` + b + `]`, protocol.Queue{waiterB}},
		{`[["` + idA + `",null],["` + idA + `",1],["` + idA + `",""],` + b + `]`, protocol.Queue{waiterB}},
		{`[["` + idA + `","X"],["` + idA + `","exclusive"],["` + idA + `","xs"],` + b + `]`, protocol.Queue{waiterB}},
		{`[["` + idA[1:] + `","x"],["` + idA + `0","x"],["","x"],` + b + `]`, protocol.Queue{waiterB}},
		{`[["` + strings.ToUpper(idB) + `","s"],["g` + idB[1:] + `","s"],["legacy-0","x"],` + b + `]`, protocol.Queue{waiterB}},
		// A malformed waiter does not make a later one a duplicate.
		{`[["` + idA + `","?"],` + a + `]`, protocol.Queue{waiterA}},
	} {
		require.Equal(t, c.want, raw(c.data).asQueue(), c.data)
	}
}

// Malformed and repeated waiters do not count towards the limit.
func TestReadQueueUpToTheLimit(t *testing.T) {
	const n = protocol.MaxLuggage
	var entries []string
	for _, w := range queueOf(n + 10) {
		one := string(appendWaiters(nil, protocol.Queue{w}))
		entries = append(entries, `["junk","x"]`, one, one)
	}
	require.Equal(t, queueOf(n), raw("["+strings.Join(entries, ",")+"]").asQueue())
}

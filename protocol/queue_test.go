package protocol_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/protocol"
)

func writers(ids ...string) (q protocol.Queue) {
	for _, id := range ids {
		q = append(q, protocol.Waiter{ID: id, Want: protocol.Exclusive})
	}
	return q
}

func TestQueueKeepsTheOrderOfArrival(t *testing.T) {
	var q protocol.Queue
	for _, id := range []string{"b", "a", "c", "a"} {
		q = q.Add(protocol.Waiter{ID: id, Want: protocol.Exclusive})
	}
	require.Equal(t, writers("b", "a", "c"), q)
	require.Equal(t, 2, q.Place("a"))
	require.Zero(t, q.Place("d"))
	require.Zero(t, protocol.Queue(nil).Place("d"))

	// A later ping keeps the place and updates the wanted mode.
	q = q.Add(protocol.Waiter{ID: "a", Want: protocol.Shared})
	require.Equal(t, 2, q.Place("a"))
	require.Equal(t, protocol.Shared, q[1].Want)
}

// If another contender was faster than a woken waiter, the waiter and its luggage
// go ahead of that contender's own queue.
func TestQueuesMergeInTheOrderGiven(t *testing.T) {
	for _, c := range []struct{ first, own, merged []string }{
		{nil, nil, nil},
		{[]string{"w"}, nil, []string{"w"}},
		{[]string{"w", "x"}, []string{"b", "x", "c"}, []string{"w", "x", "b", "c"}},
		{[]string{"w", "x", "w"}, []string{"w", "b", "b"}, []string{"w", "x", "b"}},
		{[]string{"w"}, []string{"a", "w"}, []string{"w", "a"}},
	} {
		merged := writers(c.own...).Before(writers(c.first...)...)
		require.ElementsMatch(t, writers(c.merged...), merged)
		for i, id := range c.merged {
			require.Equal(t, i+1, merged.Place(id), "%v", merged)
		}
	}
}

func TestQueueIsBounded(t *testing.T) {
	var q, own protocol.Queue
	for i := range protocol.MaxQueue + 10 {
		q = q.Add(protocol.Waiter{ID: fmt.Sprint("w", i), Want: protocol.Exclusive})
		own = own.Add(protocol.Waiter{ID: fmt.Sprint("o", i), Want: protocol.Exclusive})
	}
	require.Len(t, q, protocol.MaxQueue)
	require.Len(t, q.Before(own...), protocol.MaxQueue)
	require.Len(t, q.Luggage(), protocol.MaxLuggage)
	require.Equal(t, q[:protocol.MaxLuggage], q.Luggage())
	require.Equal(t, writers("a"), writers("a").Luggage())

	// A waiter that is already in a full queue keeps its place.
	require.Equal(t, 5, q.Add(q[4]).Place("w4"))
}

func TestQueueWithout(t *testing.T) {
	q := writers("a", "b", "c")
	require.Equal(t, writers("a", "c"), q.Without("b"))
	require.Equal(t, writers("a", "b", "c"), q)
	require.Equal(t, q, q.Without("d"))
}

// The race detector makes pools drop items at random, so that allocations cannot
// be counted.

//go:build !race

package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/protocol"
)

// repeatingStream is an endless stream. Each read returns the same piece.
type repeatingStream struct {
	piece string
	reads int
}

func (l *repeatingStream) Read(p []byte) (int, error) {
	l.reads++
	return copy(p, l.piece), nil
}

// The replies of a server to the commands of an uncontended acquire, and to
// those of its release.
const (
	acquireReplies = ">3\r\n$9\r\nsubscribe\r\n$4\r\npair\r\n:1\r\n" +
		"*2\r\n$4\r\npair\r\n:1\r\n" +
		"%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:12345\r\n" +
		"$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"
	releaseReply = ">3\r\n$11\r\nunsubscribe\r\n$4\r\npair\r\n:0\r\n"
)

// cost is an operation that runs for every acquire or for every ping, and how
// many allocations it may make.
type cost struct {
	name      string
	maxAllocs float64
	run       func()
}

func costs() []cost {
	replies := func(piece string) func() {
		r := NewReader(&repeatingStream{piece: piece})
		r.wanted = &looked
		return func() { receive(r) }
	}
	ping := protocol.Ping{Response: "pair-0123456789abcdef0123456789abcdef", ID: idA, Want: protocol.Exclusive}
	record := protocol.Record{ID: idA, Mode: protocol.Exclusive, Election: protocol.Elected, Held: 5, Place: 1}
	encodedPing, encodedRecord, encodedWithQueue := EncodePing(ping), EncodeRecord(record, nil), EncodeRecord(record, queueOf(100))
	name := ConnName("pair", idA)
	buf := make([]byte, 0, 1<<10)
	return []cost{
		{"the commands of an acquire", 0, func() {
			b := AppendCommand(buf[:0], "SUBSCRIBE", "pair")
			b = AppendCount(b, "pair")
			AppendHello(b, nil, name)
		}},
		{"the replies to an acquire", 1, replies(acquireReplies)},
		{"the reply to a release", 1, replies(releaseReply)},
		{"a ping", 1, func() { EncodePing(ping) }},
		{"a ping, read", 3, func() { DecodePing(encodedPing) }},
		{"a record", 1, func() { EncodeRecord(record, nil) }},
		{"a record, read", 2, func() { DecodeRecord(encodedRecord) }},
		{"a record with a queue of 100, read", 9, func() { DecodeRecord(encodedWithQueue) }},
	}
}

func BenchmarkCost(b *testing.B) {
	for _, c := range costs() {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.run()
			}
		})
	}
}

// TestAllocations fails if an acquire or a ping allocates more than before.
func TestAllocations(t *testing.T) {
	for _, c := range costs() {
		t.Run(c.name, func(t *testing.T) {
			require.LessOrEqual(t, testing.AllocsPerRun(100, c.run), c.maxAllocs)
		})
	}
}

// The costs of the replies are meaningful only if the replies are read whole.
func TestRepliesOfAnAcquire(t *testing.T) {
	l := &repeatingStream{piece: acquireReplies}
	r := NewReader(l)
	r.wanted = &looked
	for n := range 3 {
		b := receive(r)
		require.NoError(t, b.Err)
		require.Len(t, b.Frames, 3)
		require.Equal(t, n+1, l.reads)
		require.Equal(t, []Value{bulk("subscribe"), bulk("pair"), number(1)}, b.Frames[0].Elems)
		require.Equal(t, []Value{bulk("pair"), number(1)}, b.Frames[1].Elems)
		require.Equal(t, []Value{bulk("mode"), bulk("standalone"), bulk("role"), bulk("master")}, b.Frames[2].Elems)
	}
}

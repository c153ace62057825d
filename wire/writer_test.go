package wire

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAppendCommand(t *testing.T) {
	require.Equal(t, "*1\r\n$4\r\nPING\r\n", string(AppendCommand(nil, "PING")))
	require.Equal(t, "x*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\na\r\n\xff\r\n",
		string(AppendCommand([]byte("x"), "SET", "", "a\r\n\xff")))
}

func TestAppendValue(t *testing.T) {
	for _, c := range []struct {
		v    Value
		want string
	}{
		{Value{}, "_\r\n"},
		{Value{Kind: 200, Str: "x"}, "_\r\n"},
		{Value{Kind: SimpleString, Str: "OK"}, "+OK\r\n"},
		{Value{Kind: SimpleString, Str: "a\r\nb"}, "$4\r\na\r\nb\r\n"},
		{Value{Kind: Error, Str: "ERR x"}, "-ERR x\r\n"},
		{Value{Kind: Error, Str: "a\nb"}, "!3\r\na\nb\r\n"},
		{Value{Kind: BulkError, Str: "a\nb"}, "!3\r\na\nb\r\n"},
		{number(-5), ":-5\r\n"},
		{bulk(""), "$0\r\n\r\n"},
		{Value{Kind: Verbatim, Str: "hi"}, "=6\r\ntxt:hi\r\n"},
		{Value{Kind: Verbatim, Str: "hi", Format: [3]byte{'m', 'k', 'd'}}, "=6\r\nmkd:hi\r\n"},
		{Value{Kind: Boolean, Int: 1}, "#t\r\n"},
		{Value{Kind: Boolean}, "#f\r\n"},
		{Value{Kind: Double, Str: "-inf"}, ",-inf\r\n"},
		{Value{Kind: Double, Str: "1\r\n"}, "$3\r\n1\r\n\r\n"},
		{Value{Kind: BigNumber, Str: "-12"}, "(-12\r\n"},
		{Value{Kind: BigNumber, Str: "twelve"}, "$6\r\ntwelve\r\n"},
		{array(number(1), bulk("a")), "*2\r\n:1\r\n$1\r\na\r\n"},
		{Value{Kind: Set}, "~0\r\n"},
		{push(bulk("p")), ">1\r\n$1\r\np\r\n"},
		{mapping(bulk("k"), number(1)), "%1\r\n$1\r\nk\r\n:1\r\n"},
		{mapping(bulk("k"), number(1), bulk("without a value")), "%1\r\n$1\r\nk\r\n:1\r\n"},
		{Value{Kind: Attribute, Elems: []Value{bulk("k"), number(1)}}, "%1\r\n$1\r\nk\r\n:1\r\n"},
		{with(number(1), bulk("k"), number(2)), "|1\r\n$1\r\nk\r\n:2\r\n:1\r\n"},
		{with(number(1)), ":1\r\n"},
	} {
		require.Equal(t, c.want, string(AppendValue(nil, c.v)))
		v, err := readAll(NewReader(strings.NewReader(c.want)))
		require.Equal(t, io.EOF, err)
		require.Len(t, v, 1)
	}
}

// A line that is too long for a Reader is encoded as a bulk.
func TestAppendValueOfALongLine(t *testing.T) {
	for _, c := range []struct {
		v    Value
		kind Kind
	}{
		{Value{Kind: SimpleString, Str: strings.Repeat("x", maxLine)}, SimpleString},
		{Value{Kind: SimpleString, Str: strings.Repeat("x", maxLine+1)}, BulkString},
		{Value{Kind: Error, Str: strings.Repeat("x", maxLine+1)}, BulkError},
		{Value{Kind: BigNumber, Str: strings.Repeat("1", maxLine+1)}, BulkString},
	} {
		v, err := NewReader(bytes.NewReader(AppendValue(nil, c.v))).Read()
		require.NoError(t, err)
		require.Equal(t, c.kind, v.Kind)
		require.Equal(t, c.v.Str, v.Str)
	}
}

// Every value is read back, wherever the reads split the stream.
func TestValueRoundTrip(t *testing.T) {
	rng := random(t)
	for range 3000 {
		var frames []Value
		var stream []byte
		for range 1 + rng.IntN(3) {
			v := randomValue(rng, 4, true)
			frames = append(frames, v)
			stream = AppendValue(stream, v)
		}
		got, err := readAll(NewReader(&chopped{string(stream), rng}))
		require.Equal(t, io.EOF, err, "%q", stream)
		require.Equal(t, frames, got, "%q", stream)
	}
}

func TestCommandRoundTrip(t *testing.T) {
	rng := random(t)
	for range 1000 {
		args := make([]string, 1+rng.IntN(5))
		want := Value{Kind: Array}
		for i := range args {
			args[i] = randomBytes(rng, 40)
			want.Elems = append(want.Elems, bulk(args[i]))
		}
		got, err := NewReader(&chopped{string(AppendCommand(nil, args...)), rng}).Read()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func randomBytes(rng *rand.Rand, most int) string {
	b := make([]byte, rng.IntN(most))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return string(b)
}

// randomValue returns a value of at most this depth. It is a push only if
// mayPush is true: a push cannot be an element.
func randomValue(rng *rand.Rand, depth int, mayPush bool) Value {
	v := Value{}
	kinds := []Kind{Null, SimpleString, Error, BulkError, Integer, BulkString, Verbatim, Boolean, Double, BigNumber}
	if depth > 0 {
		kinds = append(kinds, Array, Set, Map)
		if mayPush {
			kinds = append(kinds, Push)
		}
	}
	v.Kind = kinds[rng.IntN(len(kinds))]
	switch v.Kind {
	case SimpleString, Error:
		v.Str = strings.NewReplacer("\r", "", "\n", "").Replace(randomBytes(rng, 20))
	case BulkString, BulkError:
		v.Str = randomBytes(rng, 100)
		if rng.IntN(20) == 0 {
			v.Str = strings.Repeat("long", bufferSize/2)
		}
	case Verbatim:
		v.Str, v.Format = randomBytes(rng, 20), [3]byte{'t', 'x', byte('a' + rng.IntN(26))}
	case Integer:
		v.Int = int64(rng.Uint64()) >> rng.IntN(64)
	case Boolean:
		v.Int = int64(rng.IntN(2))
	case Double:
		v.Str = strconv.FormatFloat(rng.NormFloat64()*1e10, "efg"[rng.IntN(3)], -1, 64)
	case BigNumber:
		v.Str = strconv.FormatUint(rng.Uint64()|1<<63, 10) + strconv.FormatUint(rng.Uint64(), 10)
	case Array, Set, Push:
		v.Elems = randomElems(rng, rng.IntN(5), depth-1)
	case Map:
		v.Elems = randomElems(rng, 2*rng.IntN(4), depth-1)
	}
	if depth > 0 && rng.IntN(10) == 0 {
		v = with(v, randomElems(rng, 2+2*rng.IntN(2), depth-1)...)
	}
	return v
}

func randomElems(rng *rand.Rand, n, depth int) []Value {
	var elems []Value
	for range n {
		elems = append(elems, randomValue(rng, depth, false))
	}
	return elems
}

func BenchmarkAppendCommand(b *testing.B) {
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendCommand(buf[:0], "PUBLISH", "my-queue-00112233445566778899aabbccddeeff", `{"holder_id":"x"}`)
	}
}

package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/protocol"
)

func bulk(s string) Value          { return Value{Kind: BulkString, Str: s} }
func number(n int64) Value         { return Value{Kind: Integer, Int: n} }
func array(elems ...Value) Value   { return Value{Kind: Array, Elems: elems} }
func push(elems ...Value) Value    { return Value{Kind: Push, Elems: elems} }
func mapping(elems ...Value) Value { return Value{Kind: Map, Elems: elems} }

// with puts an attribute before a value.
func with(v Value, attr ...Value) Value {
	v.Attr = &Value{Kind: Attribute, Elems: attr}
	return v
}

// readAll reads frames until an error, which it returns.
func readAll(r *Reader) ([]Value, error) {
	var frames []Value
	for {
		v, err := r.Read()
		if err != nil {
			return frames, err
		}
		frames = append(frames, v)
	}
}

// readBatches is readAll by way of ReadBuffered.
func readBatches(r *Reader) ([]Value, error) {
	var frames []Value
	for {
		v, err := r.Read()
		for ok := true; ok && err == nil; v, ok, err = r.ReadBuffered() {
			frames = append(frames, v)
		}
		if err != nil {
			return frames, err
		}
	}
}

// chopped delivers a stream in pieces of random sizes.
type chopped struct {
	rest string
	rng  *rand.Rand
}

func (c *chopped) Read(p []byte) (int, error) {
	if c.rest == "" {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), 1+c.rng.IntN(9))], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// random is a source of numbers that a failed test can be given again.
func random(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

var long = strings.Repeat("x", 12*bufferSize+1)

// readable are streams and the frames in them.
var readable = []struct {
	name, stream string
	want         []Value
}{
	{"nothing", "", nil},
	{"simple string", "+OK\r\n", []Value{{Kind: SimpleString, Str: "OK"}}},
	{"empty simple string", "+\r\n", []Value{{Kind: SimpleString}}},
	{"long simple string", "+" + long + "\r\n", []Value{{Kind: SimpleString, Str: long}}},
	{"error", "-ERR no\r\n", []Value{{Kind: Error, Str: "ERR no"}}},
	{"bulk error", "!6\r\nA\r\nB\x00C\r\n", []Value{{Kind: BulkError, Str: "A\r\nB\x00C"}}},
	{"integer", ":42\r\n", []Value{number(42)}},
	{"zero", ":0\r\n", []Value{number(0)}},
	{"signs", ":-7\r\n:+7\r\n:-0\r\n", []Value{number(-7), number(7), number(0)}},
	{"integer bounds", ":9223372036854775807\r\n:-9223372036854775808\r\n",
		[]Value{number(1<<63 - 1), number(-1 << 63)}},
	{"bulk string", "$5\r\nhello\r\n", []Value{bulk("hello")}},
	{"empty bulk string", "$0\r\n\r\n", []Value{bulk("")}},
	{"bulk string with line breaks", "$6\r\n\r\n$1\r\n\r\n", []Value{bulk("\r\n$1\r\n")}},
	{"bulk string beyond the buffer", fmt.Sprintf("$%d\r\n%s\r\n+OK\r\n", len(long), long),
		[]Value{bulk(long), {Kind: SimpleString, Str: "OK"}}},
	{"bulk string that fills the buffer", fmt.Sprintf("$%d\r\n%s\r\n$%d\r\n%s\r\n", bufferSize-2, long[:bufferSize-2], bufferSize-1, long[:bufferSize-1]),
		[]Value{bulk(long[:bufferSize-2]), bulk(long[:bufferSize-1])}},
	{"verbatim string", "=8\r\ntxt:a\r\nb\r\n", []Value{{Kind: Verbatim, Format: [3]byte{'t', 'x', 't'}, Str: "a\r\nb"}}},
	{"empty verbatim string", "=4\r\nmkd:\r\n", []Value{{Kind: Verbatim, Format: [3]byte{'m', 'k', 'd'}}}},
	{"null", "_\r\n", []Value{{}}},
	{"null string of RESP2", "$-1\r\n", []Value{{}}},
	{"null array of RESP2", "*-1\r\n", []Value{{}}},
	{"booleans", "#t\r\n#f\r\n", []Value{{Kind: Boolean, Int: 1}, {Kind: Boolean}}},
	{"doubles", ",1.5\r\n,-0\r\n,10\r\n,1e-05\r\n,+2.50E+10\r\n", []Value{
		{Kind: Double, Str: "1.5"}, {Kind: Double, Str: "-0"}, {Kind: Double, Str: "10"},
		{Kind: Double, Str: "1e-05"}, {Kind: Double, Str: "+2.50E+10"}}},
	{"doubles that are none", ",inf\r\n,-inf\r\n,nan\r\n,-nan\r\n", []Value{
		{Kind: Double, Str: "inf"}, {Kind: Double, Str: "-inf"},
		{Kind: Double, Str: "nan"}, {Kind: Double, Str: "nan"}}},
	{"big number", "(-3492890328409238509324850943850943825024385\r\n",
		[]Value{{Kind: BigNumber, Str: "-3492890328409238509324850943850943825024385"}}},
	{"array", "*2\r\n:1\r\n$1\r\na\r\n", []Value{array(number(1), bulk("a"))}},
	{"empty aggregates", "*0\r\n~0\r\n%0\r\n>0\r\n", []Value{{Kind: Array}, {Kind: Set}, {Kind: Map}, {Kind: Push}}},
	{"nested arrays", "*2\r\n*1\r\n*0\r\n*1\r\n_\r\n", []Value{array(array(array()), array(Value{}))}},
	{"set", "~2\r\n+a\r\n#t\r\n", []Value{{Kind: Set, Elems: []Value{
		{Kind: SimpleString, Str: "a"}, {Kind: Boolean, Int: 1}}}}},
	{"map", "%2\r\n$1\r\na\r\n:1\r\n:2\r\n*0\r\n", []Value{mapping(bulk("a"), number(1), number(2), array())}},
	{"push", ">3\r\n$7\r\nmessage\r\n$1\r\nC\r\n$2\r\nhi\r\n", []Value{push(bulk("message"), bulk("C"), bulk("hi"))}},
	{"push between replies", "+a\r\n>1\r\n+p\r\n+b\r\n", []Value{
		{Kind: SimpleString, Str: "a"}, push(Value{Kind: SimpleString, Str: "p"}), {Kind: SimpleString, Str: "b"}}},
	{"push inside EXEC's reply", "*2\r\n>3\r\n$7\r\nmessage\r\n$1\r\nC\r\n$1\r\nx\r\n:1\r\n+PONG\r\n", []Value{
		push(bulk("message"), bulk("C"), bulk("x")), array(number(1), Value{Kind: SimpleString, Str: "PONG"})}},
	{"push before the last element", "*2\r\n:1\r\n>1\r\n+p\r\n:2\r\n", []Value{
		push(Value{Kind: SimpleString, Str: "p"}), array(number(1), number(2))}},
	{"push deep inside", "*1\r\n%1\r\n+k\r\n>1\r\n:1\r\n*1\r\n>1\r\n:2\r\n:3\r\n", []Value{
		push(number(1)), push(number(2)),
		array(mapping(Value{Kind: SimpleString, Str: "k"}, array(number(3))))}},
	{"push inside a push", ">2\r\n:1\r\n>1\r\n:2\r\n:3\r\n", []Value{push(number(2)), push(number(1), number(3))}},
	{"empty push inside", "*1\r\n>0\r\n:1\r\n", []Value{push(), array(number(1))}},
	{"attribute", "|1\r\n+k\r\n:9\r\n:1\r\n:2\r\n", []Value{
		with(number(1), Value{Kind: SimpleString, Str: "k"}, number(9)), number(2)}},
	{"attribute of an aggregate", "|1\r\n:1\r\n:2\r\n*1\r\n:3\r\n", []Value{with(array(number(3)), number(1), number(2))}},
	{"attribute of an empty aggregate", "|1\r\n:1\r\n:2\r\n*0\r\n", []Value{with(array(), number(1), number(2))}},
	{"attribute of an element", "*2\r\n:1\r\n|1\r\n:7\r\n:8\r\n:2\r\n", []Value{array(number(1), with(number(2), number(7), number(8)))}},
	{"attribute of a null", "|1\r\n:7\r\n:8\r\n$-1\r\n", []Value{with(Value{}, number(7), number(8))}},
	{"attribute of a push inside", "*1\r\n|1\r\n:7\r\n:8\r\n>1\r\n:1\r\n:2\r\n", []Value{
		with(push(number(1)), number(7), number(8)), array(number(2))}},
	{"attribute inside an attribute", "|1\r\n:1\r\n|1\r\n:2\r\n:3\r\n:4\r\n:5\r\n", []Value{
		with(number(5), number(1), with(number(4), number(2), number(3)))}},
	{"attributes in a row", "|1\r\n:1\r\n:2\r\n|0\r\n|1\r\n:3\r\n:4\r\n:5\r\n", []Value{
		with(number(5), number(1), number(2), number(3), number(4))}},
	{"empty attribute", "|0\r\n:1\r\n", []Value{number(1)}},
	{"streamed string", "$?\r\n;4\r\nHell\r\n;5\r\no wor\r\n;2\r\nld\r\n;0\r\n", []Value{bulk("Hello world")}},
	{"empty streamed string", "$?\r\n;0\r\n", []Value{bulk("")}},
	{"streamed array", "*?\r\n:1\r\n*?\r\n.\r\n:2\r\n.\r\n:3\r\n", []Value{array(number(1), array(), number(2)), number(3)}},
	{"streamed map", "%?\r\n+a\r\n:1\r\n.\r\n", []Value{mapping(Value{Kind: SimpleString, Str: "a"}, number(1))}},
	{"streamed set", "~?\r\n:1\r\n.\r\n", []Value{{Kind: Set, Elems: []Value{number(1)}}}},
	{"push inside a streamed array", "*?\r\n:1\r\n>1\r\n:2\r\n.\r\n", []Value{push(number(2)), array(number(1))}},
}

func TestRead(t *testing.T) {
	rng := random(t)
	for _, c := range readable {
		t.Run(c.name, func(t *testing.T) {
			for how, src := range map[string]io.Reader{
				"whole":       strings.NewReader(c.stream),
				"single":      iotest.OneByteReader(strings.NewReader(c.stream)),
				"chopped":     &chopped{c.stream, rng},
				"end at once": iotest.DataErrReader(strings.NewReader(c.stream)),
			} {
				frames, err := readAll(NewReader(src))
				require.Equal(t, io.EOF, err, how)
				require.Equal(t, c.want, frames, how)
			}
		})
	}
}

// A stream may end at any byte. Between frames that is the end; within one it
// is an error, and nothing that is incomplete comes out.
func TestReadCutAnywhere(t *testing.T) {
	for _, c := range readable {
		if len(c.stream) > 1000 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			between := map[int64]bool{0: true}
			whole := NewReader(strings.NewReader(c.stream))
			for range c.want {
				_, err := whole.Read()
				require.NoError(t, err)
				between[whole.off] = len(whole.open) == 0
			}
			for at := range len(c.stream) {
				frames, err := readAll(NewReader(strings.NewReader(c.stream[:at])))
				want := io.ErrUnexpectedEOF
				if between[int64(at)] {
					want = io.EOF
				}
				require.Equal(t, want, err, "%q", c.stream[:at])
				require.True(t, slices.EqualFunc(c.want[:len(frames)], frames, func(a, b Value) bool { return reflect.DeepEqual(a, b) }), "%q", c.stream[:at])
			}
		})
	}
}

func TestReadEndOfStream(t *testing.T) {
	for stream, want := range map[string]error{
		"":                          io.EOF,
		":1\r\n":                    io.EOF,
		":":                         io.ErrUnexpectedEOF,
		":1":                        io.ErrUnexpectedEOF,
		":1\r":                      io.ErrUnexpectedEOF,
		"$1\r\n":                    io.ErrUnexpectedEOF,
		"$1\r\na":                   io.ErrUnexpectedEOF,
		"$1\r\na\r":                 io.ErrUnexpectedEOF,
		"$5000\r\n":                 io.ErrUnexpectedEOF,
		"$5000\r\n" + long[:5000]:   io.ErrUnexpectedEOF,
		"*1\r\n":                    io.ErrUnexpectedEOF,
		"*?\r\n":                    io.ErrUnexpectedEOF,
		"*1\r\n>1\r\n:1\r\n":        io.ErrUnexpectedEOF,
		"|1\r\n:1\r\n:2\r\n":        io.ErrUnexpectedEOF,
		"$?\r\n":                    io.ErrUnexpectedEOF,
		"$?\r\n;1\r\na\r\n":         io.ErrUnexpectedEOF,
		"+" + long:                  io.ErrUnexpectedEOF,
		":1\r\n*2\r\n:1\r\n:2\r\n+": io.ErrUnexpectedEOF,
	} {
		_, err := readAll(NewReader(strings.NewReader(stream)))
		require.Equal(t, want, err, "%.40q", stream)
	}
}

func TestReadBrokenStream(t *testing.T) {
	small := Limits{Bulk: 10, Elements: 4, Depth: 3, Frame: 20 * valueSize}
	for _, c := range []struct {
		stream string
		limits Limits
		offset int64
		reason string
	}{
		{"HTTP/1.1 400 Bad Request\r\n", Limits{}, 0, `'H' is the type of nothing`},
		{"\x15\x03\x01\x00\x02\x02\x46", Limits{}, 0, `'\x15' is the type of nothing`},
		{"\xff", Limits{}, 0, `'ÿ' is the type of nothing`},
		{"\r\n", Limits{}, 0, `'\r' is the type of nothing`},
		{";1\r\na\r\n", Limits{}, 0, `';' is the type of nothing`},
		{"+OK\r\n+a\nb\r\n", Limits{}, 5, "broken otherwise"},
		{"+a\rb\r\n", Limits{}, 0, "broken otherwise"},
		{"+a\n", Limits{}, 0, "broken otherwise"},
		{"+\n", Limits{}, 0, "broken otherwise"},
		{"+" + strings.Repeat("x", maxLine+1) + "\r\n", Limits{}, 0, "a line of more than 65536 bytes"},
		{"-" + strings.Repeat("x", 2*maxLine), Limits{}, 0, "a line of more than 65536 bytes"},
		{"+12345678901\r\n", small, 0, "a line of more than 10 bytes"},

		{":\r\n", Limits{}, 0, `"" is no value of the type ':'`},
		{":-\r\n", Limits{}, 0, `"-" is no value`},
		{":+-1\r\n", Limits{}, 0, `"+-1" is no value`},
		{":01\r\n", Limits{}, 0, `"01" is no value`},
		{": 1\r\n", Limits{}, 0, `" 1" is no value`},
		{":1 \r\n", Limits{}, 0, `"1 " is no value`},
		{":1.0\r\n", Limits{}, 0, `"1.0" is no value`},
		{":0x1\r\n", Limits{}, 0, `"0x1" is no value`},
		{":1_0\r\n", Limits{}, 0, `"1_0" is no value`},
		{":9223372036854775808\r\n", Limits{}, 0, "is no value"},
		{":-9223372036854775809\r\n", Limits{}, 0, "is no value"},
		{":18446744073709551617\r\n", Limits{}, 0, "is no value"},
		{":" + strings.Repeat("9", 1000) + "\r\n", Limits{}, 0, `"99999999999999999999999999999999" is no value`},
		{"_x\r\n", Limits{}, 0, `"x" is no value`},
		{"#\r\n", Limits{}, 0, "is no value"},
		{"#true\r\n", Limits{}, 0, "is no value"},
		{"#T\r\n", Limits{}, 0, "is no value"},
		{",\r\n", Limits{}, 0, "is no value"},
		{",.5\r\n", Limits{}, 0, "is no value"},
		{",5.\r\n", Limits{}, 0, "is no value"},
		{",1e\r\n", Limits{}, 0, "is no value"},
		{",1e1e1\r\n", Limits{}, 0, "is no value"},
		{",Inf\r\n", Limits{}, 0, "is no value"},
		{",0x1p-2\r\n", Limits{}, 0, "is no value"},
		{",1,5\r\n", Limits{}, 0, "is no value"},
		{"(\r\n", Limits{}, 0, "is no value"},
		{"(1.5\r\n", Limits{}, 0, "is no value"},
		{"(12a\r\n", Limits{}, 0, "is no value"},

		{"$\r\n", Limits{}, 0, `"" is no length`},
		{"$-2\r\n", Limits{}, 0, `"-2" is no length`},
		{"$+1\r\na\r\n", Limits{}, 0, `"+1" is no length`},
		{"$01\r\na\r\n", Limits{}, 0, `"01" is no length`},
		{"$-1 \r\n", Limits{}, 0, `"-1 " is no length`},
		{"$1x\r\n", Limits{}, 0, `"1x" is no length`},
		{"$3\r\nabcd\r\n", Limits{}, 0, "without a line break behind it"},
		{"$3\r\nab\r\n\r\n", Limits{}, 0, "without a line break behind it"},
		{"$5000\r\n" + long[:5001] + "\r\n", Limits{}, 0, "a string of 5000 bytes without"},
		{"$67108865\r\n", Limits{}, 0, "a string of more than 67108864 bytes"},
		{"$99999999999999999999999\r\n", Limits{}, 0, "a string of more than 67108864 bytes"},
		{"$11\r\n", small, 0, "a string of more than 10 bytes"},
		{"!-1\r\n", Limits{}, 0, `"-1" is no length`},
		{"!?\r\n", Limits{}, 0, `"?" is no length`},
		{"=3\r\ntxt\r\n", Limits{}, 0, `starts with "txt"`},
		{"=5\r\nhello\r\n", Limits{}, 0, `starts with "hello"`},
		{"=-1\r\n", Limits{}, 0, `"-1" is no length`},
		{"$?\r\n:1\r\n", Limits{}, 0, "':' where the next chunk"},
		{"$?\r\n;-1\r\n", Limits{}, 0, `"-1" is no length`},
		{"$?\r\n;2\r\nabc\r\n", Limits{}, 0, "without a line break"},
		{"$?\r\n;6\r\nabcdef\r\n;5\r\n", small, 0, "a string of more than 10 bytes"},

		{"*\r\n", Limits{}, 0, `"" is no number of elements`},
		{"*-2\r\n", Limits{}, 0, `"-2" is no number of elements`},
		{"*1\r\n*x\r\n", Limits{}, 4, `"x" is no number of elements`},
		{"%-1\r\n", Limits{}, 0, `"-1" is no number of elements`},
		{">?\r\n", Limits{}, 0, `"?" is no number of elements`},
		{"|?\r\n", Limits{}, 0, `"?" is no number of elements`},
		{"*1048577\r\n", Limits{}, 0, "an aggregate of more than 1048576 elements"},
		{"%524289\r\n", Limits{}, 0, "an aggregate of more than 1048576 elements"},
		{"*18446744073709551615\r\n", Limits{}, 0, "an aggregate of more than"},
		{"%9223372036854775808\r\n", Limits{}, 0, "an aggregate of more than"},
		{"*5\r\n", small, 0, "an aggregate of more than 4 elements"},
		{"|3\r\n", small, 0, "an aggregate of more than 4 elements"},
		{"*?\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n", small, 20, "an aggregate of more than 4 elements"},
		{"|2\r\n:1\r\n:2\r\n:3\r\n:4\r\n|1\r\n:5\r\n:6\r\n:7\r\n", small, 28, "an attribute of more than 4 elements"},
		{"*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", small, 12, "more than 3 aggregates inside one another"},
		{"*1\r\n*1\r\n*1\r\n>1\r\n:1\r\n", small, 12, "more than 3 aggregates inside one another"},
		{strings.Repeat("*4\r\n:1\r\n:1\r\n:1\r\n", 2) + "*4\r\n:1\r\n:1\r\n:1\r\n:1\r\n", Limits{Frame: 11 * valueSize}, 44,
			"a frame of more than 704 bytes"},
		{"*2\r\n$10\r\n0123456789\r\n$9\r\n", Limits{Frame: 3*valueSize + 18}, 21, "a frame of more than 210 bytes"},
		{"*2\r\n$10\r\n0123456789\r\n$?\r\n;4\r\nabcd\r\n;5\r\n", Limits{Frame: 3*valueSize + 18}, 21, "a frame of more than 210 bytes"},
		{".\r\n", Limits{}, 0, "an end mark that ends nothing"},
		{"*1\r\n.\r\n", Limits{}, 4, "an end mark that ends nothing"},
		{"*?\r\n.x\r\n", Limits{}, 4, `"x" behind an end mark`},
		{"*?\r\n|1\r\n:1\r\n:2\r\n.\r\n", Limits{}, 16, "an attribute before an end mark"},
		{"%?\r\n:1\r\n.\r\n", Limits{}, 8, "a map whose last key has no value"},
	} {
		r := NewLimitedReader(iotest.OneByteReader(strings.NewReader(c.stream)), c.limits)
		_, err := readAll(r)
		broken, ok := errors.AsType[*ProtocolError](err)
		require.True(t, ok, "%.60q: %v", c.stream, err)
		require.Contains(t, broken.Reason, c.reason, "%.60q", c.stream)
		require.Equal(t, c.offset, broken.Offset, "%.60q: %s", c.stream, broken.Reason)
		require.Contains(t, err.Error(), fmt.Sprintf("wire: broken stream at byte %d: ", c.offset))
		require.Less(t, len(err.Error()), 200)
	}
}

// What follows an error in the stream must not be taken for a frame.
func TestReadStaysBroken(t *testing.T) {
	r := NewReader(strings.NewReader("*2\r\n:x\r\n+OK\r\n"))
	_, first := r.Read()
	require.Error(t, first)
	for range 3 {
		v, err := r.Read()
		require.Same(t, first, err)
		require.Zero(t, v)
	}

	cause := errors.New("link is gone")
	r = NewReader(io.MultiReader(strings.NewReader(":1\r\n*1\r\n"), iotest.ErrReader(cause)))
	_, err := r.Read()
	require.NoError(t, err)
	for range 3 {
		_, err = r.Read()
		require.Equal(t, cause, err)
	}
}

// A protocol without line breaks must fail at its first byte, and not when the
// peer gives up.
func TestReadTellsAnotherProtocolWithoutWaiting(t *testing.T) {
	src, peer := io.Pipe()
	defer src.Close()
	go func() { _, _ = peer.Write([]byte{0x15}) }() // a TLS alert, and then silence
	_, err := NewReader(src).Read()
	_, broken := errors.AsType[*ProtocolError](err)
	require.True(t, broken, "%v", err)
}

// A push must come out when it is complete, not with the reply around it.
func TestReadPushBeforeTheReplyIsComplete(t *testing.T) {
	src, peer := io.Pipe()
	defer src.Close()
	go func() { _, _ = peer.Write([]byte("*2\r\n:1\r\n>1\r\n:5\r\n")) }()
	r := NewReader(src)
	v, err := r.Read()
	require.NoError(t, err)
	require.Equal(t, push(number(5)), v)
	go func() { _, _ = peer.Write([]byte(":2\r\n")) }()
	v, err = r.Read()
	require.NoError(t, err)
	require.Equal(t, array(number(1), number(2)), v)
}

// A frame's limit is its own: neither the frames before it nor the pushes within
// it count, however many there are.
func TestReadLimitIsPerFrame(t *testing.T) {
	limits := Limits{Frame: 12 * valueSize}
	inner := "|1\r\n:1\r\n:2\r\n>2\r\n:3\r\n|1\r\n:1\r\n:2\r\n:4\r\n"
	stream := "*2\r\n:1\r\n" + strings.Repeat(inner, 100) + ":2\r\n" +
		strings.Repeat("|1\r\n:1\r\n:2\r\n:3\r\n", 100) + strings.Repeat("+x\r\n", 100)
	frames, err := readAll(NewLimitedReader(strings.NewReader(stream), limits))
	require.Equal(t, io.EOF, err)
	require.Len(t, frames, 301)
}

// pieces delivers one piece per read and must not be asked for more than it has.
type pieces struct {
	t    *testing.T
	rest []string
}

func (p *pieces) Read(b []byte) (int, error) {
	require.NotEmpty(p.t, p.rest, "a read that would wait")
	n := copy(b, p.rest[0])
	require.Len(p.t, p.rest[0], n)
	p.rest = p.rest[1:]
	return n, nil
}

// What is complete comes without a wait for what is not.
func TestReadBuffered(t *testing.T) {
	for _, c := range readable {
		if len(c.want) != 1 || len(c.stream) > 1000 || strings.HasPrefix(c.stream, "$?") {
			continue
		}
		for at := range len(c.stream) {
			src := &pieces{t, []string{":7\r\n" + c.stream[:at], c.stream[at:]}}
			r := NewReader(src)
			v, err := r.Read()
			require.NoError(t, err)
			require.Equal(t, number(7), v)
			for range 2 {
				_, ok, err := r.ReadBuffered()
				require.NoError(t, err)
				require.False(t, ok, "%q", c.stream[:at])
			}
			v, err = r.Read()
			require.NoError(t, err, "%q", c.stream[:at])
			require.Equal(t, c.want[0], v)
		}
		r := NewReader(&pieces{t, []string{":7\r\n" + c.stream + ":8\r\n"}})
		_, err := r.Read()
		require.NoError(t, err)
		for _, want := range []Value{c.want[0], number(8)} {
			v, ok, err := r.ReadBuffered()
			require.NoError(t, err)
			require.True(t, ok, "%q", c.stream)
			require.Equal(t, want, v)
		}
		_, ok, err := r.ReadBuffered()
		require.NoError(t, err)
		require.False(t, ok)
	}
}

func TestReadBufferedOfABrokenStream(t *testing.T) {
	for _, broken := range []string{"*2\r\n:x\r\n", "$x\r\n", "$\r\n", "$\n", "\n", "!-1\r\n", "$2\r\nabc\r\n"} {
		r := NewReader(&pieces{t, []string{":7\r\n" + broken}})
		_, err := r.Read()
		require.NoError(t, err)
		for range 2 {
			_, ok, err := r.ReadBuffered()
			_, isBroken := errors.AsType[*ProtocolError](err)
			require.True(t, isBroken, "%q: %v", broken, err)
			require.False(t, ok)
		}
	}
	for _, vast := range []string{"$18446744073709551614\r\nab", "$18446744073709551615\r\nab", "$9223372036854775807\r\nab", "$1\r\na\r", "$?\r\n;0\r\n"} {
		r := NewReader(&pieces{t, []string{":7\r\n" + vast}})
		_, err := r.Read()
		require.NoError(t, err)
		_, ok, err := r.ReadBuffered()
		require.NoError(t, err)
		require.False(t, ok, "%q", vast)
	}
}

func TestValueIsCompact(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(Value{}), uintptr(valueSize))
}

// taken is how many bytes f allocates.
func taken(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// What a header announces must not cost memory before it arrives, also when the
// limits allow it.
func TestReadHostileHeaders(t *testing.T) {
	wide := Limits{Bulk: 1 << 30, Elements: 1 << 30, Depth: 1 << 20, Frame: 1 << 30}
	for _, c := range []struct {
		name, stream string
		limits       Limits
		refused      bool
		most         uint64
	}{
		{"string of a gigabyte", "$1073741824\r\n", Limits{}, true, 16 << 10},
		{"string of an exabyte", "$1152921504606846976\r\n", Limits{}, true, 16 << 10},
		{"array of a billion", "*1000000000\r\n", Limits{}, true, 16 << 10},
		{"map of a billion", "%1000000000\r\n", Limits{}, true, 16 << 10},
		{"nested arrays", strings.Repeat("*1\r\n", 100_000), Limits{}, true, 64 << 10},
		{"nested wide arrays", strings.Repeat("*1000000\r\n", 100_000), Limits{}, true, 128 << 10},
		{"nested maps", strings.Repeat("%1\r\n", 100_000), Limits{}, true, 64 << 10},
		{"nested attributes", strings.Repeat("|1\r\n", 100_000), Limits{}, true, 64 << 10},
		{"nested pushes", strings.Repeat(">1\r\n", 100_000), Limits{}, true, 64 << 10},
		{"nested streams", strings.Repeat("*?\r\n", 100_000), Limits{}, true, 64 << 10},
		{"attributes in a row, for ever", strings.Repeat("|0\r\n", 100_000), Limits{Frame: 1 << 20}, true, 4 << 20},
		{"attributes in a row", strings.Repeat("|0\r\n", 100_000), Limits{}, false, 16 << 20},
		{"line without end", "+" + strings.Repeat("x", 10<<20), Limits{}, true, 1 << 20},
		{"length without end", "$" + strings.Repeat("1", 10<<20), Limits{}, true, 1 << 20},
		{"largest string allowed", "$67108864\r\n", Limits{}, false, 128 << 10},
		{"largest array allowed", "*1048576\r\n", Limits{}, false, 16 << 10},
		{"string of a gigabyte, allowed", "$1000000000\r\n", wide, false, 128 << 10},
		{"array of a billion, allowed", "*1000000000\r\n", wide, false, 16 << 10},
		{"chunk of a gigabyte, allowed", "$?\r\n;1000000000\r\nabc", wide, false, 128 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			var err error
			cost := taken(func() { _, err = readAll(NewLimitedReader(strings.NewReader(c.stream), c.limits)) })
			_, refused := errors.AsType[*ProtocolError](err)
			require.Equal(t, c.refused, refused, "%v", err)
			if !refused {
				require.Equal(t, io.ErrUnexpectedEOF, err)
			}
			require.Less(t, cost, c.most)
		})
	}
}

// A frame of the smallest values takes what its limit says and not many times
// as much.
func TestReadSmallestValues(t *testing.T) {
	stream := strings.NewReader("*?\r\n" + strings.Repeat("_\r\n", 100_000))
	var err error
	cost := taken(func() { _, err = readAll(NewLimitedReader(stream, Limits{Frame: 1 << 20})) })
	require.ErrorContains(t, err, "a frame of more than 1048576 bytes")
	require.Less(t, cost, uint64(8<<20))
}

// pinged is what a holder reads all day.
var pinged = string(AppendValue(nil, push(bulk("message"), bulk("my-queue"),
	bulk(EncodePing(protocol.Ping{Response: "my-queue-" + idA})))))

func TestReadAllocatesLittle(t *testing.T) {
	for stream, most := range map[string]float64{
		":1\r\n":      0,
		":-12345\r\n": 0,
		"+OK\r\n":     0,
		"_\r\n":       0,
		"#t\r\n":      0,
		pinged:        3, // the elements, the channel and the payload
	} {
		r := NewReader(&endless{stream: stream})
		require.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
			if _, err := r.Read(); err != nil {
				panic(err)
			}
		}), most, "%q", stream)
	}
}

// endless repeats a stream.
type endless struct {
	stream string
	at     int
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		m := copy(p[n:], e.stream[e.at:])
		n += m
		e.at = (e.at + m) % len(e.stream)
	}
	return n, nil
}

func BenchmarkReadMessage(b *testing.B) {
	r := NewReader(&endless{stream: pinged})
	b.ReportAllocs()
	b.SetBytes(int64(len(pinged)))
	for b.Loop() {
		if _, err := r.Read(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadInteger(b *testing.B) {
	r := NewReader(&endless{stream: ":1\r\n"})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Read(); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, c := range readable {
		f.Add([]byte(c.stream))
	}
	for _, s := range []string{"*1\r\n.\r\n", "$1073741824\r\n", ":01\r\n", "|1\r\n:1\r\n:2\r\n", "%?\r\n:1\r\n.\r\n", "HTTP/1.1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		frames, err := readAll(NewReader(bytes.NewReader(stream)))
		require.Error(t, err)
		single, errSingle := readAll(NewReader(iotest.OneByteReader(bytes.NewReader(stream))))
		require.Equal(t, frames, single)
		require.Equal(t, err, errSingle)
		batched, errBatched := readBatches(NewReader(bytes.NewReader(stream)))
		require.Equal(t, frames, batched)
		require.Equal(t, err, errBatched)
		var again []byte
		for _, v := range frames {
			again = AppendValue(again, v)
		}
		back, err := readAll(NewReader(bytes.NewReader(again)))
		require.Equal(t, io.EOF, err)
		require.Equal(t, frames, back)
	})
}

package wire

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A socket's maps are cut down to the keys that are looked at, and nothing else
// that comes on it is.
func TestWantedKeys(t *testing.T) {
	role := Value{Kind: Map, Elems: []Value{bulk("role"), bulk("master")}}
	ping := push(bulk("message"), bulk("pair"), bulk("a ping"))
	for _, c := range []struct {
		name, stream string
		frames       []Value
	}{
		{"a key that is not wanted", "%2\r\n$5\r\nproto\r\n:3\r\n$4\r\nrole\r\n$6\r\nmaster\r\n", []Value{role}},
		{"a map as its value", "%2\r\n$1\r\nm\r\n%1\r\n$1\r\na\r\n*1\r\n+b\r\n$4\r\nrole\r\n$6\r\nmaster\r\n", []Value{role}},
		{"an empty value", "%2\r\n$1\r\nm\r\n*0\r\n$4\r\nrole\r\n$6\r\nmaster\r\n", []Value{role}},
		{"a key that is no string", "%2\r\n:1\r\n$1\r\nx\r\n$4\r\nrole\r\n$6\r\nmaster\r\n", []Value{role}},
		{"a streamed map", "%?\r\n$5\r\nproto\r\n:3\r\n$4\r\nrole\r\n$6\r\nmaster\r\n.\r\n", []Value{role}},
		{"none that is wanted", "%1\r\n$5\r\nproto\r\n:3\r\n", []Value{{Kind: Map, Elems: []Value{}}}},
		{
			"a push in front of a value", "%2\r\n$7\r\nversion\r\n>3\r\n$7\r\nmessage\r\n$4\r\npair\r\n$6\r\na ping\r\n$5\r\n7.0.1\r\n$4\r\nrole\r\n$6\r\nmaster\r\n",
			[]Value{ping, role},
		},
		{"a map in a reply", "*1\r\n%1\r\n$1\r\na\r\n:3\r\n", []Value{array(Value{Kind: Map, Elems: []Value{bulk("a"), number(3)}})}},
		{"what RESP2 makes of a map", "*2\r\n$1\r\na\r\n:3\r\n", []Value{array(bulk("a"), number(3))}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader(strings.NewReader(c.stream))
			r.wanted = &looked
			b := receive(r)
			require.Equal(t, c.frames, b.Frames)
			require.NoError(t, b.Err)
			require.Equal(t, io.EOF, receive(r).Err)
		})
	}
}

// Values of one batch share their memory and stand beside each other in it, so
// one that grows must not grow into the next.
func TestRoomIsNotSharedTwice(t *testing.T) {
	first := array(number(1), number(2))
	second := array(number(3), number(4))
	r := NewReader(strings.NewReader("*?\r\n:1\r\n:2\r\n.\r\n*2\r\n:3\r\n:4\r\n*?\r\n:1\r\n:2\r\n.\r\n*2\r\n:3\r\n:4\r\n"))
	b := receive(r)
	require.Equal(t, []Value{first, second, first, second}, b.Frames)
	for _, v := range b.Frames {
		_ = append(v.Elems, number(9))
	}
	require.Equal(t, []Value{first, second, first, second}, b.Frames)
}

// A stream that breaks at the start of a batch says so once, with its own error.
func TestErrorOfAWait(t *testing.T) {
	r := NewReader(io.MultiReader(strings.NewReader(":1\r\n*2\r\n:1\r\n"), brokenStream{}))
	r.wanted = &looked
	require.Equal(t, []Value{number(1)}, receive(r).Frames)
	for range 2 {
		require.Equal(t, errBroken, receive(r).Err)
	}
}

type brokenStream struct{}

var errBroken = io.ErrClosedPipe

func (brokenStream) Read([]byte) (int, error) { return 0, errBroken }

package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A buffer is as large as what arrives, and no larger for long.
func TestBufferGrowsAndShrinks(t *testing.T) {
	src := strings.NewReader("")
	r := NewReader(src)
	read := func() {
		_, err := r.Read()
		require.NoError(t, err)
	}
	size := func() int { return len(r.src.data) }

	src.Reset(":1\r\n")
	read()
	require.Equal(t, bufferSize, size())

	src.Reset("+" + strings.Repeat("x", 3000) + "\r\n")
	read()
	require.Equal(t, maxBuffer, size())

	for range quietReads + 1 {
		require.Equal(t, maxBuffer, size(), "one short read is not enough")
		src.Reset(":1\r\n")
		read()
	}
	require.Equal(t, bufferSize, size())

	r.shed()
	require.Equal(t, idleSize, size())
	src.Reset("+" + strings.Repeat("x", idleSize) + "\r\n")
	read()
	require.Equal(t, bufferSize, size())
}

// A buffer with something in it is not given up.
func TestShedKeepsWhatWasRead(t *testing.T) {
	r := NewReader(&pieces{t: t, rest: []string{":1\r\n:2\r\n*2\r\n:3\r\n", ":4\r\n"}})
	for _, want := range []Value{number(1), number(2), array(number(3), number(4))} {
		v, err := r.Read()
		require.NoError(t, err)
		require.Equal(t, want, v)
		r.shed()
	}
}

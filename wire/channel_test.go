package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	idA = "00112233445566778899aabbccddeeff"
	idB = "ffeeddccbbaa99887766554433221100"
)

// channels are names of locks: plain ones, ones that look like other names, and
// ones that cannot be a connection name or JSON.
var channels = []string{
	"my-queue",
	"a",
	"a-lock-b",
	"a-lock-" + idA,
	"tether-idle",
	"tenant:{42}:jobs",
	"100%s-%d",
	"with space",
	" ",
	"tab\tline\r\nnul\x00del\x7f",
	`quote " and \ backslash`,
	"<html>&",
	"größe",
	"鎖-🔒",
	"separators\u2028\u2029",
	"\ufffd",
	"\xff\xfe",
	"half a rune \xe2\x82",
	"surrogate \xed\xa0\x80",
	strings.Repeat("k", 10_000),
	strings.Repeat("ö", 5_000),
	strings.Repeat("\xff", 10_000),
}

func TestResponseChannel(t *testing.T) {
	require.Equal(t, "my-queue-"+idA, ResponseChannel("my-queue", idA))
	require.Equal(t, "鎖 \n-"+idA, ResponseChannel("鎖 \n", idA))
	require.Equal(t, "tether-b3d510ef04275ca8e698e5b3cbb0ece3949ef9252f0cdc839e9ee347409a2209-"+idA+"-reply",
		ResponseChannel("\xff\xfe", idA))
}

func TestDerivedChannels(t *testing.T) {
	const a = "ca978112ca1bbdcafac231b39a23dc4d" // the beginning of sha256("a")
	require.Equal(t, "a-"+a, WaitersChannel("a"))
	require.Equal(t, "a-"+idA, WakeChannel("a", idA))
	require.Equal(t, "a-fence", FenceKey("a"))

	const hashOfChannel = "b3d510ef04275ca8e698e5b3cbb0ece3949ef9252f0cdc839e9ee347409a2209"
	require.Equal(t, "tether-"+hashOfChannel+"-"+hashOfChannel[:32]+"-reply", WaitersChannel("\xff\xfe"))
	require.Equal(t, "tether-"+hashOfChannel+"-"+idA+"-reply", WakeChannel("\xff\xfe", idA))
	require.Equal(t, "\xff\xfe-fence", FenceKey("\xff\xfe"))
}

// A message for one lock must not arrive on a channel of another.
func TestDerivedChannelsAreDistinct(t *testing.T) {
	seen := map[string]string{}
	for _, c := range channels {
		for _, name := range []string{c, ResponseChannel(c, idA), WakeChannel(c, idB), WaitersChannel(c)} {
			require.NotContains(t, seen, name, "%q and %q", c, seen[name])
			seen[name] = c
		}
	}
}

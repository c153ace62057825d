package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConnName(t *testing.T) {
	require.Equal(t, "my-queue-lock-"+idA, ConnName("my-queue", idA))
	require.Equal(t, "t:{42}:100%-lock-"+idA, ConnName("t:{42}:100%", idA))
	require.Regexp(t, "^tether-[0-9a-f]{64}-hold-"+idA+"$", ConnName("a b", idA))
	long := strings.Repeat("k", 10_000)
	require.Equal(t, long+"-lock-"+idA, ConnName(long, idA))
}

func TestLegacyConnName(t *testing.T) {
	require.Equal(t, "my-queue-lock", LegacyConnName("my-queue"))
	for _, refused := range []string{"a b", "a\n", "\x7f", "é", "\xff"} {
		require.Empty(t, LegacyConnName(refused), "%q", refused)
	}
}

// Redis accepts every connection name, no two channels have the same one, and
// each is parsed as a name of its own channel only.
func TestConnNames(t *testing.T) {
	names := map[string]string{IdleName: "an idle socket"}
	for _, c := range channels {
		name := ConnName(c, idA)
		require.Empty(t, strings.Trim(name, allowed()), "%q", c)
		require.NotContains(t, names, name, "%q and %q", c, names[name])
		names[name] = c
		require.NotEqual(t, name, ConnName(c, idB))
		for _, other := range channels {
			id, ok := ParseConnName(other, name)
			require.Equal(t, c == other, ok, "%q is taken for a name of %q", name, other)
			if ok {
				require.Equal(t, idA, id)
			}
			require.NotEqual(t, name, LegacyConnName(other))
		}
	}
}

// allowed returns the bytes that Redis accepts in a connection name.
func allowed() string {
	var b strings.Builder
	for c := byte('!'); c <= '~'; c++ {
		b.WriteByte(c)
	}
	return b.String()
}

// A channel may have the name of another channel's connections.
func TestConnNamesOfImitatingChannels(t *testing.T) {
	unnameable := "a b"
	prefix := strings.TrimSuffix(ConnName(unnameable, idA), "-hold-"+idA)
	for _, c := range []string{prefix, prefix + "-hold", prefix + "-hold-" + idA, "tether-idle", "tether"} {
		require.NotEqual(t, ConnName(unnameable, idA), ConnName(c, idA))
		_, ok := ParseConnName(unnameable, ConnName(c, idA))
		require.False(t, ok, c)
		_, ok = ParseConnName(c, ConnName(unnameable, idA))
		require.False(t, ok, c)
	}
}

func TestParseConnName(t *testing.T) {
	hashed := ConnName("a b", idA)
	for _, c := range []struct {
		channel, name string
		ok            bool
	}{
		{"a", "a-lock-" + idA, true},
		{"a-lock-b", "a-lock-b-lock-" + idA, true},
		{"a-lock-" + idB, "a-lock-" + idB + "-lock-" + idA, true},
		{"a b", hashed, true},

		{"a", "a-lock-b-lock-" + idA, false},
		{"a", "a-lock-" + idB + "-lock-" + idA, false},
		{"b", "a-lock-b-lock-" + idA, false},
		{"a", "a-lock", false},
		{"a", "a-lock-", false},
		{"a", "a-lock-" + idA[1:], false},
		{"a", "a-lock-0" + idA, false},
		{"a", "a-lock-" + idA + " ", false},
		{"a", "a-lock-" + strings.ToUpper(idA), false},
		{"a", "a-lock-" + strings.Replace(idA, "f", "g", 1), false},
		{"a", "a-hold-" + idA, false},
		{"a", "A-lock-" + idA, false},
		{"a", "xa-lock-" + idA, false},
		{"a.", "ab-lock-" + idA, false},
		{"a", idA, false},
		{"a", "", false},
		{"", "", false},
		{"a b", "a b-lock-" + idA, false},
		{"a c", hashed, false},
		{"a b", strings.Replace(hashed, "-hold-", "-lock-", 1), false},
		{"a b", hashed[1:], false},
		{"a", IdleName, false},
	} {
		id, ok := ParseConnName(c.channel, c.name)
		require.Equal(t, c.ok, ok, "%q %q", c.channel, c.name)
		if ok {
			require.Equal(t, idA, id)
		} else {
			require.Empty(t, id)
		}
	}
}

func TestValidHolderID(t *testing.T) {
	require.True(t, validHolderID(idA))
	for _, s := range []string{"", idA[1:], idA + "0", strings.ToUpper(idA), "g" + idA[1:], " " + idA[1:], "é" + idA[2:]} {
		require.False(t, validHolderID(s), "%q", s)
	}
}

func TestNameRoundTrip(t *testing.T) {
	rng := random(t)
	for range 2000 {
		c := randomBytes(rng, 30)
		if rng.IntN(2) == 0 {
			c = randomText(rng)
		}
		id, ok := ParseConnName(c, ConnName(c, idB))
		require.True(t, ok, "%q", c)
		require.Equal(t, idB, id)
		_, ok = ParseConnName(c+"x", ConnName(c, idB))
		require.False(t, ok, "%q", c)
	}
}

// ParseConnName may be called for every connection of a server.
func TestParseConnNameAllocatesNothing(t *testing.T) {
	for _, channel := range []string{"a", "a b", strings.Repeat("k", 10_000)} {
		for _, name := range []string{"", "web-1", "b-lock-" + idA, ConnName("a", idA)} {
			require.Zero(t, testing.AllocsPerRun(100, func() { ParseConnName(channel, name) }))
		}
	}
}

func FuzzParseConnName(f *testing.F) {
	for _, c := range channels {
		f.Add(c, ConnName(c, idA))
		f.Add("a", ConnName(c, idB))
		f.Add(c, LegacyConnName(c))
	}
	f.Fuzz(func(t *testing.T, channel, name string) {
		id, ok := ParseConnName(channel, name)
		if !ok {
			require.Empty(t, id)
			return
		}
		require.True(t, validHolderID(id))
		require.Equal(t, name, ConnName(channel, id))
		_, ok = ParseConnName(channel+"-lock-"+id, name)
		require.False(t, ok)
	})
}

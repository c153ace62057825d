package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOptions(t *testing.T) {
	o, err := parseOptions(nil)
	require.NoError(t, err)
	require.Equal(t, options{rounds: defaultRounds, duration: defaultDuration, out: "report"}, o)

	o, err = parseOptions([]string{"-quick", "-rounds", "3", "-peers", "redsync,etcd:best", "-sections", "alone,crowd"})
	require.NoError(t, err)
	require.Equal(t, 3, o.rounds, "what was given stays")
	require.Equal(t, quickDuration, o.duration)
	require.Equal(t, []string{"alone", "crowd"}, o.sections)
	wanted := map[string]bool{}
	for _, p := range allPeers() {
		wanted[p.id()] = o.wants(p)
	}
	require.Subset(t, wanted, map[string]bool{
		"raw": true, "tether": true, "redsync": true, "redsync:best": true, "etcd:best": true, "etcd": false, "rueidislock": false,
	})

	for _, bad := range [][]string{
		{"-sections", "nothing"}, {"-peers", "nobody"}, {"-rounds", "0"}, {"-duration", time.Microsecond.String()},
	} {
		_, err = parseOptions(bad)
		require.Error(t, err, "%v", bad)
	}
}

func TestPartsAreOneRoundAtLeast(t *testing.T) {
	o := options{rounds: 2}
	require.Equal(t, 1, o.part(1, 5))
	o.rounds = 15
	require.Equal(t, 3, o.part(1, 5))
	require.Equal(t, 30, o.part(2, 1))
}

package interop

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
)

// The lowest and the highest id. All other ids are between them.
var lowestID, highestID = strings.Repeat("0", 32), strings.Repeat("f", 32)

// awaitParticipant waits until tether's probe shows this participant. Without an
// ID in want, it may have any.
func awaitParticipant(t testing.TB, channel string, want participant) participant {
	t.Helper()
	var found participant
	until(t, "a participant like "+want.Mode, func() bool {
		for _, m := range probe(t, channel) {
			found = m
			if want.ID == "" {
				m.ID = ""
			}
			if m == want {
				return true
			}
		}
		return false
	})
	return found
}

// probe returns what tether's probe shows. It returns nothing if the probe is
// inconclusive, which happens while participants join and leave.
func probe(t testing.TB, channel string) []participant {
	t.Helper()
	client := tether.New(shared.Client(t))
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	holders, err := client.Probe(ctx, channel)
	if err != nil {
		return nil
	}
	var list []participant
	for _, h := range holders {
		list = append(list, participant{h.ID, h.Mode, h.Legacy, h.Elected})
	}
	return list
}

// A portalocker process gets the highest id if it is the elected one, and the
// lowest if it is the later one. If ids alone decided, the later one would win.
func TestALaterWriterDefersToTheElectedOne(t *testing.T) {
	forPairs(t, withElections, func(t *testing.T, p pair) {
		reader, elected, later := startTether(t, shared), p.first.start(t), p.second.start(t)
		reader.open(t, lock{Channel: p.channel, Shared: true})
		reader.tryMustSucceed(t)

		elected.open(t, lock{Channel: p.channel, ID: highestID})
		first := elected.acquireAsync(t)
		id := awaitParticipant(t, p.channel, participant{Mode: "pending", Elected: true}).ID
		pings := countPings(t, p.channel)
		later.open(t, lock{Channel: p.channel, ID: lowestID})
		second := later.acquireAsync(t)
		pings.requireWaiting(t, later, second)

		reader.release(t)
		require.Equal(t, id, elected.granted(t, first).ID)
		pings.requireWaiting(t, later, second)
		elected.release(t)
		later.granted(t, second)
		later.release(t)
	})
}

// Portalocker 4.1 promotes the lowest id, even if another writer was elected, and
// does not probe again. So tether's writer demotes itself, and either may be
// granted first.
func TestAWriterOf41AndAnElectedOneExcludeEachOther(t *testing.T) {
	only41 := func(p python) bool { return p.withRecords && !p.withElections }
	forPairs(t, only41, func(t *testing.T, p pair) {
		reader := startTether(t, shared)
		reader.open(t, lock{Channel: p.channel, Shared: true})
		reader.tryMustSucceed(t)
		writers := []*process{p.first.start(t), p.second.start(t)}
		writers[0].open(t, lock{Channel: p.channel, ID: highestID})
		writers[1].open(t, lock{Channel: p.channel, ID: lowestID})
		first := writers[0].acquireAsync(t)
		awaitParticipant(t, p.channel, participant{Mode: "pending", Elected: writers[0].python == nil})
		pings := countPings(t, p.channel)
		second := writers[1].acquireAsync(t)
		pings.requireWaiting(t, writers[1], second)
		reader.release(t)

		var winner, loser *process
		var rest <-chan response
		select {
		case a := <-first:
			require.Equal(t, granted, a.Outcome, a.Text)
			winner, loser, rest = writers[0], writers[1], second
		case a := <-second:
			require.Equal(t, granted, a.Outcome, a.Text)
			winner, loser, rest = writers[1], writers[0], first
		case <-time.After(testTimeout):
			require.FailNow(t, "nobody gets the lock")
		}
		pings.requireWaiting(t, loser, rest)
		winner.release(t)
		loser.granted(t, rest)
		loser.release(t)
	})
}

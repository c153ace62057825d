package interop

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
)

// The ends of all ids: holders of other ids stand between them.
var lowest, highest = strings.Repeat("0", 32), strings.Repeat("f", 32)

// awaitMember waits until tether's probe shows a participant like this one, of
// any id if it has none here.
func awaitMember(t testing.TB, channel string, want member) member {
	t.Helper()
	var found member
	until(t, "a participant like "+want.Mode, func() bool {
		for _, m := range probed(t, channel) {
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

// probed is what tether's probe shows. While participants come and go it may
// be inconclusive, then it is nothing.
func probed(t testing.TB, channel string) []member {
	t.Helper()
	client := tether.New(shared.Client(t))
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	holders, err := client.Probe(ctx, channel)
	if err != nil {
		return nil
	}
	var list []member
	for _, h := range holders {
		list = append(list, member{h.ID, h.Mode, h.Legacy, h.Elected})
	}
	return list
}

// The later one has the lower id if it is portalocker's, and the elected one the
// highest: ids alone would make the later one the winner.
func TestALaterWriterDefersToTheElectedOne(t *testing.T) {
	duels(t, tells, func(t *testing.T, d duel) {
		reader, elected, later := startTether(t, shared), d.first.start(t), d.second.start(t)
		reader.open(t, lock{Channel: d.channel, Shared: true})
		reader.mustSucceed(t)

		elected.open(t, lock{Channel: d.channel, ID: highest})
		first := elected.acquiring(t)
		id := awaitMember(t, d.channel, member{Mode: "pending", Elected: true}).ID
		seen := watch(t, d.channel)
		later.open(t, lock{Channel: d.channel, ID: lowest})
		second := later.acquiring(t)
		seen.waits(t, later, second)

		reader.release(t)
		require.Equal(t, id, elected.granted(t, first).ID)
		seen.waits(t, later, second)
		elected.release(t)
		later.granted(t, second)
		later.release(t)
	})
}

// Portalocker 4.1 promotes the lowest id, whoever was elected, and does not
// look again afterwards. So tether's writer gives way, and the order is open.
func TestAWriterOf41AndAnElectedOneExcludeEachOther(t *testing.T) {
	v41Only := func(p python) bool { return p.records && !p.tells }
	duels(t, v41Only, func(t *testing.T, d duel) {
		reader := startTether(t, shared)
		reader.open(t, lock{Channel: d.channel, Shared: true})
		reader.mustSucceed(t)
		writers := []*peer{d.first.start(t), d.second.start(t)}
		writers[0].open(t, lock{Channel: d.channel, ID: highest})
		writers[1].open(t, lock{Channel: d.channel, ID: lowest})
		first := writers[0].acquiring(t)
		awaitMember(t, d.channel, member{Mode: "pending", Elected: writers[0].python == nil})
		seen := watch(t, d.channel)
		second := writers[1].acquiring(t)
		seen.waits(t, writers[1], second)
		reader.release(t)

		var winner, loser *peer
		var rest <-chan answer
		select {
		case a := <-first:
			require.Equal(t, granted, a.Outcome, a.Text)
			winner, loser, rest = writers[0], writers[1], second
		case a := <-second:
			require.Equal(t, granted, a.Outcome, a.Text)
			winner, loser, rest = writers[1], writers[0], first
		case <-time.After(patience):
			require.FailNow(t, "nobody gets the lock")
		}
		seen.waits(t, loser, rest)
		winner.release(t)
		loser.granted(t, rest)
		loser.release(t)
	})
}

package interop

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// probes shows a probe of each kind that the version has.
func probes(t *testing.T, d duel) []*peer {
	t.Helper()
	list := []*peer{startTether(t, shared)}
	if d.python.tells {
		list = append(list, startPython(t, d.python, shared))
	}
	for _, v := range list {
		v.open(t, lock{Channel: d.channel})
	}
	return list
}

func TestProbesShowTheOthersMode(t *testing.T) {
	duels(t, records, func(t *testing.T, d duel) {
		looks := probes(t, d)
		for _, v := range looks {
			require.Empty(t, v.probe(t))
		}
		for _, mode := range []string{"exclusive", "shared"} {
			holder := d.first.start(t)
			holder.open(t, lock{Channel: d.channel, Shared: mode == "shared"})
			id := holder.mustSucceed(t).ID
			for _, v := range looks {
				require.Len(t, v.probe(t), 1)
				seen := v.probe(t)[0]
				require.Equal(t, member{ID: id, Mode: mode, Elected: seen.Elected}, seen, "seen by %v", v)
			}
			holder.release(t)
		}
	})
}

func TestProbesShowReadersAndTheElectedWriter(t *testing.T) {
	duels(t, tells, func(t *testing.T, d duel) {
		reader, writer := d.first.start(t), d.second.start(t)
		reader.open(t, lock{Channel: d.channel, Shared: true})
		writer.open(t, lock{Channel: d.channel})
		readerID := reader.mustSucceed(t).ID
		waiting := writer.acquiring(t)
		writerID := awaitMember(t, d.channel, member{Mode: "pending", Elected: true}).ID
		for _, v := range probes(t, d) {
			require.ElementsMatch(t, []member{
				{ID: readerID, Mode: "shared"}, {ID: writerID, Mode: "pending", Elected: true},
			}, v.probe(t), "seen by %v", v)
		}
		reader.release(t)
		require.Equal(t, writerID, writer.granted(t, waiting).ID)
		writer.release(t)
	})
}

func TestAProbeShowsAHolderOf32AsLegacy(t *testing.T) {
	onPythons(t, oldest, func(t *testing.T, p python) {
		channel := newChannel()
		holder, look := startPython(t, p, shared), startTether(t, shared)
		holder.open(t, lock{Channel: channel})
		look.open(t, lock{Channel: channel})
		holder.mustSucceed(t)
		require.Equal(t, []member{{ID: "legacy-0", Mode: "exclusive", Legacy: true}}, look.probe(t))
		holder.release(t)
	})
}

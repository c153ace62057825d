package interop

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// probes returns a process for each side that has a probe.
func probes(t *testing.T, p pair) []*process {
	t.Helper()
	list := []*process{startTether(t, shared)}
	if p.python.withElections {
		list = append(list, startPython(t, p.python, shared))
	}
	for _, peer := range list {
		peer.open(t, lock{Channel: p.channel})
	}
	return list
}

func TestProbesShowTheOthersMode(t *testing.T) {
	forPairs(t, withRecords, func(t *testing.T, p pair) {
		probers := probes(t, p)
		for _, peer := range probers {
			require.Empty(t, peer.probe(t))
		}
		for _, mode := range []string{"exclusive", "shared"} {
			holder := p.first.start(t)
			holder.open(t, lock{Channel: p.channel, Shared: mode == "shared"})
			id := holder.tryMustSucceed(t).ID
			for _, peer := range probers {
				require.Len(t, peer.probe(t), 1)
				seen := peer.probe(t)[0]
				require.Equal(t, participant{ID: id, Mode: mode, Elected: seen.Elected}, seen, "seen by %v", peer)
			}
			holder.release(t)
		}
	})
}

func TestProbesShowReadersAndTheElectedWriter(t *testing.T) {
	forPairs(t, withElections, func(t *testing.T, p pair) {
		reader, writer := p.first.start(t), p.second.start(t)
		reader.open(t, lock{Channel: p.channel, Shared: true})
		writer.open(t, lock{Channel: p.channel})
		readerID := reader.tryMustSucceed(t).ID
		waiting := writer.acquireAsync(t)
		writerID := awaitParticipant(t, p.channel, participant{Mode: "pending", Elected: true}).ID
		for _, peer := range probes(t, p) {
			require.ElementsMatch(t, []participant{
				{ID: readerID, Mode: "shared"}, {ID: writerID, Mode: "pending", Elected: true},
			}, peer.probe(t), "seen by %v", peer)
		}
		reader.release(t)
		require.Equal(t, writerID, writer.granted(t, waiting).ID)
		writer.release(t)
	})
}

func TestAProbeShowsAHolderOf32AsLegacy(t *testing.T) {
	forVersions(t, withoutRecords, func(t *testing.T, p python) {
		channel := newChannel()
		holder, prober := startPython(t, p, shared), startTether(t, shared)
		holder.open(t, lock{Channel: channel})
		prober.open(t, lock{Channel: channel})
		holder.tryMustSucceed(t)
		require.Equal(t, []participant{{ID: "legacy-0", Mode: "exclusive", Legacy: true}}, prober.probe(t))
		holder.release(t)
	})
}

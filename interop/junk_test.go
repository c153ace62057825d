package interop

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// junk are messages that do not belong on a lock's channel. Bytes that are not
// UTF-8 and deeply nested lists are left out: they end portalocker's reader.
var junk = []string{
	"", "x", "{", "null", "1", `"ping"`, "[]", "{}", "\x00", strings.Repeat("[", 100),
	`{"message":"ping"}`, `{"message":"ping","response_channel":null}`, `{"message":"ping","response_channel":""}`,
	`{"message":"ping","response_channel":7}`, `{"message":"ping","response_channel":["a"]}`,
	`{"message":"ping","response_channel":"nobody-listens"}`,
	`{"message":"pong","response_channel":"nobody-listens"}`,
	`{"message":"wake","tether":{"queue":[["` + strings.Repeat("a", 32) + `","x"]]}}`,
	`{"message":"ping","response_channel":"nobody-listens","tether":{"id":7,"want":[],"queue":"x"}}`,
	`{"holder_id":"` + strings.Repeat("0", 32) + `","mode":"exclusive","protocol":1,"elected":true}`,
	`{"message":"ping","response_channel":"` + strings.Repeat("long", 25000) + `"}`,
}

func TestJunkOnTheChannelHurtsNobody(t *testing.T) {
	forPairs(t, withRecords, func(t *testing.T, p pair) {
		first, second, pings := p.first.start(t), p.second.start(t), countPings(t, p.channel)
		first.open(t, lock{Channel: p.channel})
		second.open(t, lock{Channel: p.channel})
		first.tryMustSucceed(t)
		waiting := second.acquireAsync(t)
		pings.requireWaiting(t, second, waiting)
		publish := func() {
			rdb := shared.Client(t)
			for _, m := range junk {
				require.NoError(t, rdb.Publish(context.Background(), p.channel, m).Err())
			}
		}
		publish()
		pings.requireWaiting(t, second, waiting)
		require.False(t, first.isLost(t))
		first.release(t)
		second.granted(t, waiting)
		publish()
		first.tryMustFail(t)
		require.False(t, second.isLost(t))
		second.release(t)
	})
}

// Junk ends the reader thread of portalocker 3.2. Nothing that tether sends may do
// that. The process reports every thread that ends with an exception, and the test
// fails.
func TestNothingThatTetherSendsHurtsAHolderOf32(t *testing.T) {
	forVersions(t, withoutRecords, func(t *testing.T, p python) {
		channel := newChannel()
		holder, pings := startPython(t, p, shared), countPings(t, channel)
		holder.open(t, lock{Channel: channel})
		holder.tryMustSucceed(t)
		var contenders []*process
		var waiting []<-chan response
		for _, l := range []lock{{}, {Shared: true}, {Fenced: true}, {SelfCheck: 0.2}, {Shared: true, SelfCheck: 0.2}} {
			l.Channel = channel
			peer := startTether(t, shared)
			peer.open(t, l)
			peer.tryMustFail(t)
			peer.probe(t)
			contenders, waiting = append(contenders, peer), append(waiting, peer.acquireAsync(t))
		}
		for i, peer := range contenders {
			pings.requireWaiting(t, peer, waiting[i])
		}
		require.False(t, holder.isLost(t))
		holder.release(t)
		// Writers are granted in the order of the queue, and readers together.
		for range contenders {
			next := -1
			until(t, "the next one", func() bool {
				next = slices.IndexFunc(waiting, func(a <-chan response) bool { return len(a) > 0 })
				return next >= 0
			})
			contenders[next].granted(t, waiting[next])
			contenders[next].release(t)
		}
		holder.acquire(t)
		holder.release(t)
	})
}

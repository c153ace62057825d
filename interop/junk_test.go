package interop

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// junk is what nobody should publish on a lock's channel. Bytes that are not
// UTF-8 are not in it, and neither are deeply nested lists: portalocker's reader
// ends at the first of them.
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
	duels(t, records, func(t *testing.T, d duel) {
		first, second, seen := d.first.start(t), d.second.start(t), watch(t, d.channel)
		first.open(t, lock{Channel: d.channel})
		second.open(t, lock{Channel: d.channel})
		first.mustSucceed(t)
		waiting := second.acquiring(t)
		seen.waits(t, second, waiting)
		publish := func() {
			rdb := shared.Client(t)
			for _, m := range junk {
				require.NoError(t, rdb.Publish(context.Background(), d.channel, m).Err())
			}
		}
		publish()
		seen.waits(t, second, waiting)
		require.False(t, first.isLost(t))
		first.release(t)
		second.granted(t, waiting)
		publish()
		first.mustFail(t)
		require.False(t, second.isLost(t))
		second.release(t)
	})
}

// Portalocker 3.2 dies of junk. It must not die of anything that tether sends:
// the process reports every thread that ends with an exception.
func TestNothingThatTetherSendsHurtsAHolderOf32(t *testing.T) {
	onPythons(t, oldest, func(t *testing.T, p python) {
		channel := newChannel()
		holder, seen := startPython(t, p, shared), watch(t, channel)
		holder.open(t, lock{Channel: channel})
		holder.mustSucceed(t)
		var contenders []*peer
		var waiting []<-chan answer
		for _, l := range []lock{{}, {Shared: true}, {Fenced: true}, {SelfCheck: 0.2}, {Shared: true, SelfCheck: 0.2}} {
			l.Channel = channel
			v := startTether(t, shared)
			v.open(t, l)
			v.mustFail(t)
			v.probe(t)
			contenders, waiting = append(contenders, v), append(waiting, v.acquiring(t))
		}
		for i, v := range contenders {
			seen.waits(t, v, waiting[i])
		}
		require.False(t, holder.isLost(t))
		holder.release(t)
		// They come in the order of the queue, the readers among them together.
		for range contenders {
			next := -1
			until(t, "the next one", func() bool {
				next = slices.IndexFunc(waiting, func(a <-chan answer) bool { return len(a) > 0 })
				return next >= 0
			})
			contenders[next].granted(t, waiting[next])
			contenders[next].release(t)
		}
		holder.acquire(t)
		holder.release(t)
	})
}

package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/protocol"
)

func TestEncodeWakeReaders(t *testing.T) {
	require.Equal(t, `{"message":"wake","tether":{"want":"shared"}}`, EncodeWakeReaders())
	wake, ok := DecodeWake(EncodeWakeReaders())
	require.True(t, ok)
	require.Equal(t, protocol.Wake{Readers: true}, wake)
}

// wakeWithExtension returns a wake with this JSON as its extension.
func wakeWithExtension(ext string) string { return `{"message":"wake","tether":` + ext + `}` }

// wakeWithQueue returns a wake with this queue, as [WakeScript] writes it.
func wakeWithQueue(queue protocol.Queue) string {
	return wakePrefix + string(appendWaiters(nil, queue)) + wakeSuffix
}

var wakes = []struct {
	data string
	want protocol.Wake
	ok   bool
}{
	{wakeWithQueue(nil), protocol.Wake{}, true},
	{wakeWithQueue(queueOf(3)), protocol.Wake{Queue: queueOf(3)}, true},
	{wakeWithExtension(`{"queue":[["` + idB + `","x"]]}`), protocol.Wake{Queue: waiterB}, true},
	{wakeWithExtension(`{"want":"shared"}`), protocol.Wake{Readers: true}, true},
	{wakeWithExtension(`{"want":"shared","queue":[["` + idB + `","x"]]}`), protocol.Wake{Readers: true}, true},
	{wakeWithExtension(`{"want":"exclusive"}`), protocol.Wake{}, true},
	{wakeWithExtension(`{"want":"exclusive","queue":[["` + idB + `","x"]]}`), protocol.Wake{Queue: waiterB}, true},
	{wakeWithExtension(`{"want":7,"queue":[["` + idB + `","x"],7],"new":{}}`), protocol.Wake{Queue: waiterB}, true},
	{wakeWithExtension(`{"Want":"shared","QUEUE":[["` + idB + `","x"]]}`), protocol.Wake{}, true},
	{wakeWithExtension(`{}`), protocol.Wake{}, true},
	{wakeWithExtension(`null`), protocol.Wake{}, true},
	{wakeWithExtension(`[["` + idB + `","x"]]`), protocol.Wake{}, true},
	{wakeWithExtension(`"shared"`), protocol.Wake{}, true},
	{`{"message":"wake"}`, protocol.Wake{}, true},
	{` { "tether" : {} , "mess\u0061ge" : "w\u0061ke" } `, protocol.Wake{}, true},
	{`{"message":"wake","response_channel":"C-1","holder_id":"` + idA + `"}`, protocol.Wake{}, true},
	{`{"message":"ping","message":"wake"}`, protocol.Wake{}, true},
	{`{"tether":{"want":"shared"},"message":"wake","tether":{}}`, protocol.Wake{}, true},

	{``, protocol.Wake{}, false},
	{`{}`, protocol.Wake{}, false},
	{`null`, protocol.Wake{}, false},
	{`"wake"`, protocol.Wake{}, false},
	{`["message","wake"]`, protocol.Wake{}, false},
	{`[{"message":"wake"}]`, protocol.Wake{}, false},
	{`{"message":"ping","response_channel":"C-1"}`, protocol.Wake{}, false},
	{`{"message":"wake","message":"ping"}`, protocol.Wake{}, false},
	{`{"message":"wake","message":null}`, protocol.Wake{}, false},
	{`{"message":"Wake"}`, protocol.Wake{}, false},
	{`{"message":"wake "}`, protocol.Wake{}, false},
	{`{"message":["wake"]}`, protocol.Wake{}, false},
	{`{"Message":"wake"}`, protocol.Wake{}, false},
	{`{"tether":{"queue":[]}}`, protocol.Wake{}, false},
	{`{"message":"wake"`, protocol.Wake{}, false},
	{`{"message":"wake"}x`, protocol.Wake{}, false},
	{"{\"message\":\"wake\",\"x\":\"\xff\"}", protocol.Wake{}, false},
	{`1700000000.123`, protocol.Wake{}, false},
}

func TestDecodeWake(t *testing.T) {
	for _, c := range wakes {
		wake, ok := DecodeWake(c.data)
		require.Equal(t, c.ok, ok, c.data)
		require.Equal(t, c.want, wake, c.data)
	}
}

func TestWakeRoundTrip(t *testing.T) {
	rng := random(t)
	for range 500 {
		queue := randomQueue(rng)
		wake, ok := DecodeWake(wakeWithQueue(queue))
		require.True(t, ok)
		require.Equal(t, protocol.Wake{Queue: queue}, wake)
	}
}

// A wake is not decoded as a ping, so no participant answers it.
func TestWakesAreNoPings(t *testing.T) {
	for _, data := range []string{wakeWithQueue(queueOf(3)), EncodeWakeReaders()} {
		_, ok := DecodePing(data)
		require.False(t, ok)
	}
}

func FuzzDecodeWake(f *testing.F) {
	for _, c := range wakes {
		f.Add(c.data)
	}
	f.Fuzz(func(t *testing.T, data string) {
		wake, ok := DecodeWake(data)
		if !ok || wake.Readers {
			require.Empty(t, wake.Queue)
			require.Equal(t, protocol.Wake{Readers: ok && wake.Readers}, wake)
			return
		}
		requireValidQueue(t, wake.Queue)
		again, ok := DecodeWake(wakeWithQueue(wake.Queue))
		require.True(t, ok)
		require.Equal(t, wake, again)
	})
}

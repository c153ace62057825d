package wire

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/protocol"
)

func TestEncodePing(t *testing.T) {
	const head = `{"message":"ping","response_channel":"C-1"`
	full := protocol.Queue{{ID: idB, Want: protocol.Exclusive}, {ID: idA, Want: protocol.Shared}}
	for _, c := range []struct {
		ping protocol.Ping
		want string
	}{
		{protocol.Ping{}, head + `}`},
		{protocol.Ping{Want: protocol.Shared, First: true, Queue: full}, head + `}`},
		{protocol.Ping{ID: idA}, head + `,"tether":{"id":"` + idA + `"}}`},
		{protocol.Ping{ID: idA, Want: protocol.Exclusive}, head + `,"tether":{"id":"` + idA + `","want":"exclusive"}}`},
		{protocol.Ping{ID: idA, Want: protocol.Shared}, head + `,"tether":{"id":"` + idA + `","want":"shared"}}`},
		{protocol.Ping{ID: idA, Want: protocol.Pending}, head + `,"tether":{"id":"` + idA + `"}}`},
		{protocol.Ping{ID: idA, Queue: full}, head + `,"tether":{"id":"` + idA + `"}}`},
		{protocol.Ping{ID: idA, First: true}, head + `,"tether":{"id":"` + idA + `","queue":[]}}`},
		{protocol.Ping{ID: idA, Want: protocol.Exclusive, First: true, Queue: full},
			head + `,"tether":{"id":"` + idA + `","want":"exclusive","queue":[["` + idB + `","x"],["` + idA + `","s"]]}}`},
		{protocol.Ping{ID: `a"b`}, head + `,"tether":{"id":"a\"b"}}`},
	} {
		c.ping.Response = "C-1"
		require.Equal(t, c.want, EncodePing(c.ping))
	}
}

func TestEncodePingOfOddChannels(t *testing.T) {
	for response, want := range map[string]string{
		"my-queue-" + idA: `my-queue-` + idA,
		"a\"b\\c\n\x01é":  `a\"b\\c\n\u0001é`,
		"a\xff":           `a\ufffd`,
		"<&>\u2028":       `\u003c\u0026\u003e\u2028`,
	} {
		require.Equal(t, `{"message":"ping","response_channel":"`+want+`"}`, EncodePing(protocol.Ping{Response: response}))
	}
}

// Encoding and decoding must not change the response channel: the sender is
// subscribed to exactly this one.
func TestPingNamesTheResponseChannel(t *testing.T) {
	for _, c := range channels {
		want := ResponseChannel(c, idA)
		ping := EncodePing(protocol.Ping{Response: want})
		got, ok := DecodePing(ping)
		require.True(t, ok, "%q", c)
		require.Equal(t, protocol.Ping{Response: want}, got)

		// Other participants decode the ping with another JSON parser.
		var fields map[string]string
		require.NoError(t, json.Unmarshal([]byte(ping), &fields))
		require.Equal(t, map[string]string{"message": "ping", "response_channel": want}, fields)
	}
}

var pings = []struct {
	data, response string
	ok             bool
}{
	{`{"message":"ping","response_channel":"C-1"}`, "C-1", true},
	{`{"response_channel": "C-1", "message": "ping"}`, "C-1", true},
	{"\n{ \"response_channel\" :\t\"C-1\" }\r\n", "C-1", true},
	{`{"response_channel":"C-1"}`, "C-1", true},
	{`{"message":"pong","response_channel":"C-1"}`, "C-1", true},
	{`{"message":7,"response_channel":"C-1","tether":{"want":"shared","queue":[["x","s"]]}}`, "C-1", true},
	{`{"response_channel":"C-1","tether":3,"later":[{"deep":[1,{}]}]}`, "C-1", true},
	{`{"response_channel":"a","response_channel":"b"}`, "b", true},
	{`{"response_channel":"a","response_channel":7}`, "", false},
	{`{"response\u005fchannel":"C-1"}`, "C-1", true},
	{`{"response_channel":"\ud83d\udd12 \u00e9 \"\\\/\n"}`, "🔒 é \"\\/\n", true},
	{`{"response_channel":"é🔒"}`, "é🔒", true},
	{`{"response_channel":"\ud800"}`, "\ufffd", true},

	{``, "", false},
	{` `, "", false},
	{`null`, "", false},
	{`true`, "", false},
	{`1700000000.123`, "", false},
	{`"ping"`, "", false},
	{`[]`, "", false},
	{`["response_channel","C-1"]`, "", false},
	{`[{"response_channel":"C-1"}]`, "", false},
	{`{}`, "", false},
	{`{"message":"ping"}`, "", false},
	{`{"message":"wake","tether":{"queue":[]}}`, "", false},
	{`{"response_channel":""}`, "", false},
	{`{"response_channel":null}`, "", false},
	{`{"response_channel":5}`, "", false},
	{`{"response_channel":true}`, "", false},
	{`{"response_channel":["C-1"]}`, "", false},
	{`{"response_channel":{"a":"C-1"}}`, "", false},
	{`{"Response_Channel":"C-1"}`, "", false},
	{`{"RESPONSE_CHANNEL":"C-1","response_channel":""}`, "", false},
	{`{"response_channel":"C-1"`, "", false},
	{`{"response_channel":"C-1"} x`, "", false},
	{`{"response_channel":"C-1"}{}`, "", false},
	{`{"response_channel":"C-1",}`, "", false},
	{`{'response_channel':'C-1'}`, "", false},
	{"{\"response_channel\":\"C\n1\"}", "", false},
	{"{\"response_channel\":\"C\xff\"}", "", false},
	{"{\"response_channel\":\"C\",\"label\":\"\xff\"}", "", false},
	{"\xef\xbb\xbf{\"response_channel\":\"C-1\"}", "", false},
	{"\x00\x01junk", "", false},
}

func TestDecodePing(t *testing.T) {
	for _, c := range pings {
		p, ok := DecodePing(c.data)
		require.Equal(t, c.ok, ok, "%q", c.data)
		require.Equal(t, protocol.Ping{Response: c.response}, p, "%q", c.data)
	}
}

// pingWithExtension returns a ping with this JSON as its extension.
func pingWithExtension(ext string) string {
	return `{"message":"ping","response_channel":"C-1","tether":` + ext + `}`
}

var pingExtensions = []struct {
	name, data string
	want       protocol.Ping
}{
	{"an id", pingWithExtension(`{"id":"` + idA + `"}`), protocol.Ping{ID: idA}},
	{"everything", pingWithExtension(`{"id":"` + idA + `","want":"shared","queue":[["` + idB + `","x"]]}`),
		protocol.Ping{ID: idA, Want: protocol.Shared, First: true, Queue: protocol.Queue{{ID: idB, Want: protocol.Exclusive}}}},
	{"in another order", `{"tether":{"queue":[],"want":"exclusive","id":"` + idA + `"},"response_channel":"C-1"}`,
		protocol.Ping{ID: idA, Want: protocol.Exclusive, First: true}},
	{"escaped and spaced", pingWithExtension(` { "\u0069d" : "\u0030` + idA[1:] + `" , "want" : "\u0073hared" } `),
		protocol.Ping{ID: idA, Want: protocol.Shared}},
	{"unknown keys", pingWithExtension(`{"id":"` + idA + `","new":[{"id":7}],"Want":"shared","QUEUE":[]}`), protocol.Ping{ID: idA}},
	{"empty", pingWithExtension(`{}`), protocol.Ping{}},
	{"null", pingWithExtension(`null`), protocol.Ping{}},
	{"a list", pingWithExtension(`["id","` + idA + `"]`), protocol.Ping{}},
	{"a string", pingWithExtension(`"` + idA + `"`), protocol.Ping{}},
	{"no id", pingWithExtension(`{"want":"shared","queue":[]}`), protocol.Ping{}},
	{"id null", pingWithExtension(`{"id":null,"want":"shared","queue":[]}`), protocol.Ping{}},
	{"id a number", pingWithExtension(`{"id":7,"want":"shared"}`), protocol.Ping{}},
	{"id in a list", pingWithExtension(`{"id":["` + idA + `"],"want":"shared"}`), protocol.Ping{}},
	{"id empty", pingWithExtension(`{"id":"","want":"shared"}`), protocol.Ping{}},
	{"id too short", pingWithExtension(`{"id":"` + idA[1:] + `","want":"shared"}`), protocol.Ping{}},
	{"id too long", pingWithExtension(`{"id":"` + idA + `0","want":"shared"}`), protocol.Ping{}},
	{"id in capitals", pingWithExtension(`{"id":"00112233445566778899AABBCCDDEEFF","want":"shared"}`), protocol.Ping{}},
	{"id not hex", pingWithExtension(`{"id":"g` + idA[1:] + `","want":"shared"}`), protocol.Ping{}},
	{"Id is another key", pingWithExtension(`{"Id":"` + idA + `","want":"shared"}`), protocol.Ping{}},
	{"the last id counts", pingWithExtension(`{"id":"` + idB + `","id":"` + idA + `"}`), protocol.Ping{ID: idA}},
	{"the last id counts, be it none", pingWithExtension(`{"id":"` + idB + `","id":0}`), protocol.Ping{}},
	{"the last want counts", pingWithExtension(`{"want":"exclusive","id":"` + idA + `","want":7}`), protocol.Ping{ID: idA}},
	{"the last extension counts", `{"tether":{"id":"` + idB + `","want":"shared"},"response_channel":"C-1","tether":{"id":"` + idA + `"}}`,
		protocol.Ping{ID: idA}},
	{"want pending", pingWithExtension(`{"id":"` + idA + `","want":"pending"}`), protocol.Ping{ID: idA}},
	{"want of the future", pingWithExtension(`{"id":"` + idA + `","want":"upgradable"}`), protocol.Ping{ID: idA}},
	{"want in other case", pingWithExtension(`{"id":"` + idA + `","want":"Shared"}`), protocol.Ping{ID: idA}},
	{"want null", pingWithExtension(`{"id":"` + idA + `","want":null}`), protocol.Ping{ID: idA}},
	{"want a letter", pingWithExtension(`{"id":"` + idA + `","want":"s"}`), protocol.Ping{ID: idA}},
	{"queue null", pingWithExtension(`{"id":"` + idA + `","queue":null}`), protocol.Ping{ID: idA}},
	{"queue an object", pingWithExtension(`{"id":"` + idA + `","queue":{"` + idB + `":"x"}}`), protocol.Ping{ID: idA}},
	{"queue a string", pingWithExtension(`{"id":"` + idA + `","queue":"[]"}`), protocol.Ping{ID: idA}},
	{"queue of junk", pingWithExtension(`{"id":"` + idA + `","queue":[7,null,[]]}`), protocol.Ping{ID: idA, First: true}},
}

func TestDecodePingExtension(t *testing.T) {
	for _, c := range pingExtensions {
		t.Run(c.name, func(t *testing.T) {
			c.want.Response = "C-1"
			p, ok := DecodePing(c.data)
			require.True(t, ok)
			require.Equal(t, c.want, p, c.data)
		})
	}
}

func TestPingRoundTrip(t *testing.T) {
	rng := random(t)
	for range 2000 {
		p := protocol.Ping{Response: randomText(rng)}
		if rng.IntN(2) == 0 {
			p.ID = randomID(rng)
			p.Want = []protocol.Mode{0, protocol.Exclusive, protocol.Shared}[rng.IntN(3)]
			p.First = rng.IntN(2) == 0
		}
		if p.First {
			p.Queue = randomQueue(rng)
		}
		got, ok := DecodePing(EncodePing(p))
		require.True(t, ok)
		require.Equal(t, p, got)
	}
}

func FuzzDecodePing(f *testing.F) {
	for _, c := range pings {
		f.Add(c.data)
	}
	for _, c := range pingExtensions {
		f.Add(c.data)
	}
	f.Fuzz(func(t *testing.T, data string) {
		p, ok := DecodePing(data)
		if !ok {
			require.Zero(t, p)
			return
		}
		require.NotEmpty(t, p.Response)
		requireValidQueue(t, p.Queue)
		if p.ID == "" {
			require.Equal(t, protocol.Ping{Response: p.Response}, p)
		} else {
			require.True(t, validHolderID(p.ID))
		}
		again, ok := DecodePing(EncodePing(p))
		require.True(t, ok)
		require.Equal(t, p, again)
	})
}

// benchmarkPings are pings without an extension, with one, and with luggage.
var benchmarkPings = map[string]protocol.Ping{
	"plain":   {Response: "my-queue-" + idA},
	"sender":  {Response: "my-queue-" + idA, ID: idB, Want: protocol.Exclusive},
	"luggage": {Response: "my-queue-" + idA, ID: idB, Want: protocol.Exclusive, First: true, Queue: queueOf(protocol.MaxLuggage)},
}

func BenchmarkEncodePing(b *testing.B) {
	for name, p := range benchmarkPings {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				EncodePing(p)
			}
		})
	}
}

func BenchmarkDecodePing(b *testing.B) {
	for name, p := range benchmarkPings {
		b.Run(name, func(b *testing.B) {
			data := EncodePing(p)
			b.ReportAllocs()
			for b.Loop() {
				DecodePing(data)
			}
		})
	}
}

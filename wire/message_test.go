package wire

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/protocol"
)

const (
	idA = "00112233445566778899aabbccddeeff"
	idB = "ffeeddccbbaa99887766554433221100"
)

// channels are names of locks, from ordinary to nasty.
var channels = []string{
	"my-queue",
	"a",
	"a-lock-b",
	"a-lock-" + idA,
	"tether-idle",
	"tenant:{42}:jobs",
	"100%s-%d",
	"with space",
	" ",
	"tab\tline\r\nnul\x00del\x7f",
	`quote " and \ backslash`,
	"<html>&",
	"größe",
	"鎖-🔒",
	"separators\u2028\u2029",
	"\ufffd",
	"\xff\xfe",
	"half a rune \xe2\x82",
	"surrogate \xed\xa0\x80",
	strings.Repeat("k", 10_000),
	strings.Repeat("ö", 5_000),
	strings.Repeat("\xff", 10_000),
}

func TestEncodePing(t *testing.T) {
	require.Equal(t, `{"message":"ping","response_channel":"my-queue-`+idA+`"}`, EncodePing("my-queue-"+idA))
	require.Equal(t, `{"message":"ping","response_channel":"a\"b\\c\n\u0001é"}`, EncodePing("a\"b\\c\n\x01é"))
	require.Equal(t, `{"message":"ping","response_channel":"a\ufffd"}`, EncodePing("a\xff"))
}

func TestResponseChannel(t *testing.T) {
	require.Equal(t, "my-queue-"+idA, ResponseChannel("my-queue", idA))
	require.Equal(t, "鎖 \n-"+idA, ResponseChannel("鎖 \n", idA))
	require.Equal(t, "tether-b3d510ef04275ca8e698e5b3cbb0ece3949ef9252f0cdc839e9ee347409a2209-"+idA+"-reply",
		ResponseChannel("\xff\xfe", idA))
}

// Whoever asks must be answered on the very channel that it subscribed to.
func TestPingNamesTheResponseChannel(t *testing.T) {
	seen := map[string]string{}
	for _, c := range channels {
		want := ResponseChannel(c, idA)
		require.NotContains(t, seen, want, "%q and %q", c, seen[want])
		seen[want] = c
		require.NotContains(t, channels, want)
		ping := EncodePing(want)
		got, ok := DecodePing(ping)
		require.True(t, ok, "%q", c)
		require.Equal(t, want, got)

		// Any JSON reader must read the same, not just this one.
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
		response, ok := DecodePing(c.data)
		require.Equal(t, c.ok, ok, "%q", c.data)
		if ok {
			require.Equal(t, c.response, response, "%q", c.data)
		}
	}
}

// hostile are messages that try what a decoder can bear.
func hostile(field string) []string {
	deep := 200_000
	return []string{
		`{` + field + `,"x":` + strings.Repeat("[", deep) + strings.Repeat("]", deep) + `}`,
		`{` + field + `,"x":` + strings.Repeat(`{"a":`, deep) + "1" + strings.Repeat("}", deep) + `}`,
		strings.Repeat("[", deep),
		`{` + field + `,"x":"` + strings.Repeat("y", maxMessage) + `"}`,
	}
}

func TestDecodeHostileMessages(t *testing.T) {
	for _, data := range hostile(`"response_channel":"C-1"`) {
		_, ok := DecodePing(data)
		require.False(t, ok, "%.60q", data)
	}
	for _, data := range hostile(`"holder_id":"` + idA + `","mode":"shared","protocol":1`) {
		require.True(t, DecodeRecord(data).Legacy, "%.60q", data)
	}
	huge := strings.Repeat(" ", 64<<20)
	require.Less(t, taken(func() { DecodePing(huge); DecodeRecord(huge) }), uint64(64<<10))
}

func TestDecodeUpToTheLimit(t *testing.T) {
	data := `{"response_channel":"C-1","x":"`
	data += strings.Repeat("y", maxMessage-len(data)-2) + `"}`
	require.Len(t, data, maxMessage)
	_, ok := DecodePing(data)
	require.True(t, ok)
	_, ok = DecodePing(data + " ")
	require.False(t, ok)
}

func TestEncodeRecord(t *testing.T) {
	const head = `{"holder_id":"` + idA + `",`
	for _, c := range []struct {
		r    protocol.Record
		want string
	}{
		{protocol.Record{Mode: protocol.Exclusive, Election: protocol.Elected},
			`"mode":"exclusive","protocol":1,"elected":true}`},
		{protocol.Record{Mode: protocol.Pending, Election: protocol.NotElected},
			`"mode":"pending","protocol":1,"elected":false}`},
		{protocol.Record{Mode: protocol.Shared, Election: protocol.Unstated},
			`"mode":"shared","protocol":1}`},
		{protocol.Record{Mode: protocol.Shared, Election: protocol.NotElected, Joining: true},
			`"mode":"shared","protocol":1,"elected":false,"tether":{"joining":true}}`},
		{protocol.Record{Mode: protocol.Exclusive, Election: protocol.Elected, Held: 1234},
			`"mode":"exclusive","protocol":1,"elected":true,"tether":{"held":1234}}`},
		{protocol.Record{Mode: protocol.Exclusive, Election: protocol.Elected, Joining: true, Held: 1234},
			`"mode":"exclusive","protocol":1,"elected":true,"tether":{"joining":true,"held":1234}}`},
		{protocol.Record{Mode: protocol.Exclusive, Election: protocol.Elected, Held: -1},
			`"mode":"exclusive","protocol":1,"elected":true}`},
	} {
		c.r.ID = idA
		require.Equal(t, head+c.want, EncodeRecord(c.r))
	}
}

// A record without a mode must not be one that lets others in.
func TestEncodeRecordWithoutModeIsLegacy(t *testing.T) {
	require.True(t, DecodeRecord(EncodeRecord(protocol.Record{ID: idA})).Legacy)
}

var (
	legacy = protocol.Record{Mode: protocol.Exclusive, Legacy: true}
	plain  = protocol.Record{ID: idA, Mode: protocol.Shared, Election: protocol.NotElected}
)

// edited is the record plain with changes.
func edited(change func(*protocol.Record)) protocol.Record {
	r := plain
	change(&r)
	return r
}

var (
	unstated = edited(func(r *protocol.Record) { r.Election = protocol.Unstated })
	joining  = edited(func(r *protocol.Record) { r.Joining = true })
	held     = edited(func(r *protocol.Record) { r.Held = 1234 })
)

// sharedBy is a record with this id, written as it stands.
func sharedBy(id string) string {
	return `{"holder_id":` + id + `,"mode":"shared","protocol":1,"elected":false}`
}

// versioned is the record plain with this protocol, written as it stands.
func versioned(version string) string {
	return `{"holder_id":"` + idA + `","mode":"shared","protocol":` + version + `,"elected":false}`
}

// moded is the record plain with this mode, written as it stands.
func moded(mode string) string {
	return `{"holder_id":"` + idA + `","mode":` + mode + `,"protocol":1,"elected":false}`
}

// running is the record plain with this election, written as it stands.
func running(elected string) string {
	return `{"holder_id":"` + idA + `","mode":"shared","protocol":1,"elected":` + elected + `}`
}

// extended is the record plain with this extension, written as it stands.
func extended(ext string) string {
	return `{"holder_id":"` + idA + `","mode":"shared","protocol":1,"elected":false,"tether":` + ext + `}`
}

var records = []struct {
	name, data string
	want       protocol.Record
}{
	{"plain", sharedBy(`"` + idA + `"`), plain},
	{"exclusive", moded(`"exclusive"`), edited(func(r *protocol.Record) { r.Mode = protocol.Exclusive })},
	{"pending", moded(`"pending"`), edited(func(r *protocol.Record) { r.Mode = protocol.Pending })},
	{"as Python spaces it", `{"holder_id": "` + idA + `", "mode": "shared", "protocol": 1, "elected": false}`, plain},
	{"in another order", ` {"elected":false,"protocol":1,"mode":"shared","holder_id":"` + idA + `"} `, plain},
	{"escaped keys and values", `{"holder\u005fid":"` + idA + `","mode":"\u0073hared","protocol":1,"elected":false}`, plain},
	{"unknown keys", `{"holder_id":"` + idA + `","mode":"shared","protocol":1,"elected":false,"x":{"y":[null]}}`, plain},
	{"an id of another shape", sharedBy(`"host-7"`), edited(func(r *protocol.Record) { r.ID = "host-7" })},

	{"4.0 and 4.1: no elected", `{"holder_id":"` + idA + `","mode":"shared","protocol":1}`, unstated},
	{"elected", running(`true`), edited(func(r *protocol.Record) { r.Election = protocol.Elected })},
	{"elected null", running(`null`), unstated},
	{"elected a number", running(`1`), unstated},
	{"elected a string", running(`"true"`), unstated},
	{"elected a list", running(`[true]`), unstated},
	{"elected in other case", `{"holder_id":"` + idA + `","mode":"shared","protocol":1,"Elected":true}`, unstated},

	{"3.2: a timestamp", `1700000000.123`, legacy},
	{"3.2: a timestamp in a string", `"1700000000.123"`, legacy},
	{"nothing", ``, legacy},
	{"blank", ` `, legacy},
	{"null", `null`, legacy},
	{"true", `true`, legacy},
	{"a list", `[1,2]`, legacy},
	{"a record in a list", `[` + sharedBy(`"`+idA+`"`) + `]`, legacy},
	{"an empty object", `{}`, legacy},
	{"a ping", `{"message":"ping","response_channel":"C-1"}`, legacy},
	{"junk", "\x00\xffjunk", legacy},
	{"cut off", sharedBy(`"` + idA + `"`)[:80], legacy},
	{"something behind it", sharedBy(`"`+idA+`"`) + "x", legacy},
	{"not UTF-8", strings.Replace(extended(`{"label":"?"}`), "?", "\xff", 1), legacy},

	{"protocol 1.0", versioned(`1.0`), plain},
	{"protocol 1e0", versioned(`1e0`), plain},
	{"protocol 10e-1", versioned(`10e-1`), plain},
	{"protocol 2", versioned(`2`), legacy},
	{"protocol 0", versioned(`0`), legacy},
	{"protocol -1", versioned(`-1`), legacy},
	{"protocol 1.5", versioned(`1.5`), legacy},
	{"protocol 1e999", versioned(`1e999`), legacy},
	{"protocol null", versioned(`null`), legacy},
	{"protocol true", versioned(`true`), legacy},
	{"protocol a string", versioned(`"1"`), legacy},
	{"protocol a list", versioned(`[1]`), legacy},
	{"protocol missing", `{"holder_id":"` + idA + `","mode":"shared","elected":false}`, legacy},
	{"Protocol is another key", `{"holder_id":"` + idA + `","mode":"shared","Protocol":1,"elected":false}`, legacy},
	{"Protocol beside protocol", `{"holder_id":"` + idA + `","mode":"shared","protocol":1,"PROTOCOL":2,"elected":false}`, plain},

	{"id missing", `{"mode":"shared","protocol":1,"elected":false}`, legacy},
	{"id null", sharedBy(`null`), legacy},
	{"id a number", sharedBy(`7`), legacy},
	{"id a list", sharedBy(`["` + idA + `"]`), legacy},
	{"id empty", sharedBy(`""`), legacy},
	{"id of a legacy participant", sharedBy(`"legacy-0"`), legacy},
	{"id that looks like one", sharedBy(`"legacy-x"`), legacy},
	{"HOLDER_ID is another key", `{"HOLDER_ID":"` + idA + `","mode":"shared","protocol":1,"elected":false}`, legacy},

	{"mode missing", `{"holder_id":"` + idA + `","protocol":1,"elected":false}`, legacy},
	{"mode null", moded(`null`), legacy},
	{"mode a number", moded(`1`), legacy},
	{"mode empty", moded(`""`), legacy},
	{"mode of the future", moded(`"upgradable"`), legacy},
	{"mode unknown", moded(`"unknown"`), legacy},
	{"mode in other case", moded(`"Shared"`), legacy},
	{"mode with a blank", moded(`"shared "`), legacy},
	{"Mode is another key", `{"holder_id":"` + idA + `","Mode":"shared","protocol":1,"elected":false}`, legacy},

	{"the last id counts", `{"holder_id":"` + idB + `","mode":"shared","protocol":1,"elected":false,"holder_id":"` + idA + `"}`, plain},
	{"the last mode counts", `{"holder_id":"` + idA + `","mode":"pending","protocol":1,"elected":false,"mode":"shared"}`, plain},
	{"the last protocol counts", `{"holder_id":"` + idA + `","mode":"shared","protocol":1,"elected":false,"protocol":2}`, legacy},
	{"the last elected counts", `{"holder_id":"` + idA + `","mode":"shared","protocol":1,"elected":true,"elected":0}`, unstated},

	{"extension", extended(`{"joining":true,"held":1234}`), edited(func(r *protocol.Record) { r.Joining, r.Held = true, 1234 })},
	{"extension empty", extended(`{}`), plain},
	{"extension with unknown keys", extended(`{"label":"x","place":3,"queue":[["a","x"]],"held":1234,"new":{}}`), held},
	{"extension null", extended(`null`), plain},
	{"extension a list", extended(`[true]`), plain},
	{"extension a string", extended(`"joining"`), plain},
	{"extension a number", extended(`7`), plain},
	{"joining", extended(`{"joining":true}`), joining},
	{"joining false", extended(`{"joining":false}`), plain},
	{"joining a number", extended(`{"joining":1}`), plain},
	{"joining a string", extended(`{"joining":"true"}`), plain},
	{"joining null", extended(`{"joining":null}`), plain},
	{"Joining is another key", extended(`{"Joining":true}`), plain},
	{"held", extended(`{"held":1234}`), held},
	{"held 0", extended(`{"held":0}`), plain},
	{"held negative", extended(`{"held":-5}`), plain},
	{"held a fraction", extended(`{"held":1.5}`), plain},
	{"held with an exponent", extended(`{"held":1e3}`), plain},
	{"held beyond 64 bits", extended(`{"held":9223372036854775808}`), plain},
	{"held a string", extended(`{"held":"1234"}`), plain},
	{"held malformed beside joining", extended(`{"held":[],"joining":true}`), joining},
	{"joining malformed beside held", extended(`{"held":1234,"joining":{}}`), held},
	{"joining outside the extension", `{"holder_id":"` + idA + `","mode":"shared","protocol":1,"elected":false,"joining":true}`, plain},
	{"the last extension counts", `{"tether":{"joining":true},"holder_id":"` + idA + `","mode":"shared","protocol":1,"elected":false,"tether":{"held":1234}}`, held},
	{"Tether is another key", `{"holder_id":"` + idA + `","mode":"shared","protocol":1,"elected":false,"Tether":{"joining":true}}`, plain},
}

func TestDecodeRecord(t *testing.T) {
	for _, c := range records {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, DecodeRecord(c.data), c.data)
		})
	}
}

func TestRecordRoundTrip(t *testing.T) {
	rng := random(t)
	for range 2000 {
		r := protocol.Record{
			ID:       fmt.Sprintf("%016x%016x", rng.Uint64(), rng.Uint64()),
			Mode:     protocol.Exclusive + protocol.Mode(rng.IntN(3)),
			Election: protocol.Election(rng.IntN(3)),
			Joining:  rng.IntN(2) == 0,
			Held:     rng.Int64() >> rng.IntN(63),
		}
		require.Equal(t, r, DecodeRecord(EncodeRecord(r)))
	}
}

func TestPingRoundTrip(t *testing.T) {
	rng := random(t)
	for range 2000 {
		c := randomText(rng)
		got, ok := DecodePing(EncodePing(c))
		require.True(t, ok)
		require.Equal(t, c, got)
	}
}

// randomText is valid UTF-8 and not empty.
func randomText(rng *rand.Rand) string {
	runes := make([]rune, 1+rng.IntN(20))
	for i := range runes {
		for runes[i] = -1; !utf8.ValidRune(runes[i]); {
			runes[i] = rng.Int32N(0x110000) >> rng.IntN(21)
		}
	}
	return string(runes)
}

func FuzzDecodePing(f *testing.F) {
	for _, c := range pings {
		f.Add(c.data)
	}
	f.Fuzz(func(t *testing.T, data string) {
		response, ok := DecodePing(data)
		if !ok {
			return
		}
		require.NotEmpty(t, response)
		again, ok := DecodePing(EncodePing(response))
		require.True(t, ok)
		require.Equal(t, response, again)
	})
}

func FuzzDecodeRecord(f *testing.F) {
	for _, c := range records {
		f.Add(c.data)
	}
	f.Fuzz(func(t *testing.T, data string) {
		r := DecodeRecord(data)
		if r.Legacy {
			require.Equal(t, legacy, r)
			return
		}
		require.NotEmpty(t, r.ID)
		require.GreaterOrEqual(t, r.Held, int64(0))
		require.True(t, json.Valid([]byte(data)))
		require.Equal(t, r, DecodeRecord(EncodeRecord(r)))
	})
}

func BenchmarkDecodePing(b *testing.B) {
	data := EncodePing("my-queue-" + idA)
	b.ReportAllocs()
	for b.Loop() {
		DecodePing(data)
	}
}

func BenchmarkRecord(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		DecodeRecord(EncodeRecord(held))
	}
}

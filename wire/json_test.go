package wire

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/protocol"
)

// hostileMessages returns messages that contain field and exceed the nesting or
// the length that a decoder accepts.
func hostileMessages(field string) []string {
	deep := 200_000
	return []string{
		`{` + field + `,"x":` + strings.Repeat("[", deep) + strings.Repeat("]", deep) + `}`,
		`{` + field + `,"x":` + strings.Repeat(`{"a":`, deep) + "1" + strings.Repeat("}", deep) + `}`,
		strings.Repeat("[", deep),
		`{` + field + `,"x":"` + strings.Repeat("y", maxMessage) + `"}`,
	}
}

func TestDecodeHostileMessages(t *testing.T) {
	for _, data := range hostileMessages(`"response_channel":"C-1"`) {
		_, ok := DecodePing(data)
		require.False(t, ok, "%.60q", data)
	}
	for _, data := range hostileMessages(`"holder_id":"` + idA + `","mode":"shared","protocol":1`) {
		r, queue := DecodeRecord(data)
		require.True(t, r.Legacy, "%.60q", data)
		require.Empty(t, queue)
	}
	for _, data := range hostileMessages(`"message":"wake"`) {
		_, ok := DecodeWake(data)
		require.False(t, ok, "%.60q", data)
	}
	huge := strings.Repeat(" ", 64<<20)
	require.Less(t, taken(func() { DecodePing(huge); DecodeRecord(huge); DecodeWake(huge) }), uint64(64<<10))
}

// A message has room for tens of thousands of waiters. Decoding them may cost
// only memory in proportion to the message.
func TestDecodeLongQueues(t *testing.T) {
	const before, behind = `{"message":"wake","tether":{"queue":[["` + idA + `","s"]`, `]}}`
	for _, piece := range []string{
		`,["` + idA + `","x"]`, // a duplicate
		`,["` + idB[1:] + `","s"]`,
		`,["` + idB + `","s",1]`,
		`,[]`,
		`,0`,
		`,{"a":[1,"]",[[{}]]]}`,
		`,"\"]\\"`,
		` `,
	} {
		data := before + strings.Repeat(piece, (maxMessage-len(before)-len(behind))/len(piece)) + behind
		wake, ok := DecodeWake(data)
		require.True(t, ok, "%q", piece)
		require.Equal(t, protocol.Wake{Queue: protocol.Queue{{ID: idA, Want: protocol.Shared}}}, wake, "%q", piece)
		require.Less(t, taken(func() { DecodeWake(data) }), uint64(4*maxMessage), "%q", piece)
	}
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

// Strings must be encoded exactly as encoding/json does, so that any JSON parser
// decodes the same text.
func TestAppendString(t *testing.T) {
	rng := random(t)
	all := make([]string, 0, 2300)
	for c := range 256 {
		all = append(all, string([]byte{byte(c)}), "a"+string(rune(c))+"b")
	}
	all = append(append(all, channels...), "", "\u2028")
	for range 1000 {
		all = append(all, randomText(rng), randomBytes(rng, 20))
	}
	for _, s := range all {
		want, err := json.Marshal(s)
		require.NoError(t, err)
		require.Equal(t, "x"+string(want), string(appendString([]byte("x"), s)))
	}
}

// unmarshalObject decodes an object with encoding/json.
func unmarshalObject(data string) (map[string]json.RawMessage, bool) {
	if len(data) > maxMessage || !utf8.ValidString(data) {
		return nil, false
	}
	var m map[string]json.RawMessage
	err := json.Unmarshal([]byte(data), &m)
	return m, err == nil && m != nil
}

// requireLikeEncodingJSON decodes a message and all values in it, and compares
// the result with that of encoding/json.
func requireLikeEncodingJSON(t *testing.T, data string) {
	want, wantOK := unmarshalObject(data)
	got, ok := parseObject(data)
	require.Equal(t, wantOK, ok)
	if !ok {
		return
	}
	members := map[string]raw{}
	for m := got.members(); m.member(); {
		members[string(m.key)] = m.value
	}
	require.Len(t, members, len(want))
	for key, value := range want {
		require.Equal(t, string(value), string(members[key]))
		requireValueLikeEncodingJSON(t, members[key])
	}
}

func requireValueLikeEncodingJSON(t *testing.T, r raw) {
	var list []json.RawMessage
	err := json.Unmarshal(r, &list)
	require.Equal(t, err == nil && list != nil, r.isArray())
	e := r.elements()
	for _, want := range list {
		require.True(t, e.element())
		require.Equal(t, string(want), string(e.value))
		requireValueLikeEncodingJSON(t, e.value)
	}
	require.False(t, e.element())
	require.False(t, e.element(), "an iterator must stay at its end")
	if bytes.HasPrefix(r, []byte{'{'}) {
		requireLikeEncodingJSON(t, string(r))
	} else {
		m := r.members()
		require.False(t, m.member())
	}
	var want *string
	isText := json.Unmarshal(r, &want) == nil && want != nil
	s, ok := r.asString()
	require.Equal(t, isText, ok)
	if ok {
		require.Equal(t, *want, s)
	}
}

var objects = []string{
	`{}`, ` { } `, `{"":{}}`, `{"a":[]}`, `{"a":[ ]}`, `{"a":1,"a":2,"b":[1,[2,[]],{"c":"]}"}]}`,
	"\t{ \"a\" : [ 1 , -2.5e-3 , true , null , \"\\\"\" ] ,\r\n\"\\u0062\" : \"\\\\\" }\n",
	`{"a":"\ud83d\ude00\ud800","\u00e9":1,"é":2}`, `{"a":"\\","b":"\\\"","c":"}"}`,
	`{"a":[,]}`, `{"a"}`, `{"a":1,}`, `{"a" 1}`, `[{}]`, `{}{}`, `null`, ``, "\u00a0{}", "\v{}",
}

func TestObject(t *testing.T) {
	for _, data := range objects {
		requireLikeEncodingJSON(t, data)
	}
	for _, c := range pings {
		requireLikeEncodingJSON(t, c.data)
	}
	for _, c := range records {
		requireLikeEncodingJSON(t, c.data)
	}
	for _, data := range hostileMessages(`"a":1`) {
		requireLikeEncodingJSON(t, data)
	}
}

func FuzzObject(f *testing.F) {
	for _, data := range objects {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data string) {
		if strings.Count(data, "[")+strings.Count(data, "{") < 30 { // the test decodes each level again
			requireLikeEncodingJSON(t, data)
		}
	})
}

// randomText returns a valid UTF-8 string that is not empty.
func randomText(rng *rand.Rand) string {
	runes := make([]rune, 1+rng.IntN(20))
	for i := range runes {
		for runes[i] = -1; !utf8.ValidRune(runes[i]); {
			runes[i] = rng.Int32N(0x110000) >> rng.IntN(21)
		}
	}
	return string(runes)
}

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
		r, queue := DecodeRecord(data)
		require.True(t, r.Legacy, "%.60q", data)
		require.Empty(t, queue)
	}
	for _, data := range hostile(`"message":"wake"`) {
		_, ok := DecodeWake(data)
		require.False(t, ok, "%.60q", data)
	}
	huge := strings.Repeat(" ", 64<<20)
	require.Less(t, taken(func() { DecodePing(huge); DecodeRecord(huge); DecodeWake(huge) }), uint64(64<<10))
}

// A message has room for tens of thousands of waiters. They cost what they are
// long, and what is behind the last that counts is not looked at.
func TestDecodeLongQueues(t *testing.T) {
	const before, behind = `{"message":"wake","tether":{"queue":[["` + idA + `","s"]`, `]}}`
	for _, piece := range []string{
		`,["` + idA + `","x"]`, // a double
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

// Any reader of JSON must read the same, not just this one.
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

// twin reads an object with encoding/json.
func twin(data string) (map[string]json.RawMessage, bool) {
	if len(data) > maxMessage || !utf8.ValidString(data) {
		return nil, false
	}
	var m map[string]json.RawMessage
	err := json.Unmarshal([]byte(data), &m)
	return m, err == nil && m != nil
}

// requireLikeTwin reads a message to its leaves, as it does and as encoding/json
// does.
func requireLikeTwin(t *testing.T, data string) {
	want, wanted := twin(data)
	got, ok := object(data)
	require.Equal(t, wanted, ok)
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
		requireValueLikeTwin(t, members[key])
	}
}

func requireValueLikeTwin(t *testing.T, r raw) {
	var list []json.RawMessage
	err := json.Unmarshal(r, &list)
	require.Equal(t, err == nil && list != nil, r.isArray())
	e := r.elements()
	for _, want := range list {
		require.True(t, e.element())
		require.Equal(t, string(want), string(e.value))
		requireValueLikeTwin(t, e.value)
	}
	require.False(t, e.element())
	require.False(t, e.element(), "the end is an end")
	if bytes.HasPrefix(r, []byte{'{'}) {
		requireLikeTwin(t, string(r))
	} else {
		m := r.members()
		require.False(t, m.member())
	}
	var want *string
	isText := json.Unmarshal(r, &want) == nil && want != nil
	s, ok := r.text()
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
		requireLikeTwin(t, data)
	}
	for _, c := range pings {
		requireLikeTwin(t, c.data)
	}
	for _, c := range records {
		requireLikeTwin(t, c.data)
	}
	for _, data := range hostile(`"a":1`) {
		requireLikeTwin(t, data)
	}
}

func FuzzObject(f *testing.F) {
	for _, data := range objects {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data string) {
		if strings.Count(data, "[")+strings.Count(data, "{") < 30 { // the twin reads each level anew
			requireLikeTwin(t, data)
		}
	})
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

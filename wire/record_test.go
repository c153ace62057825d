package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/protocol"
)

func TestEncodeRecord(t *testing.T) {
	const head = `{"holder_id":"` + idA + `",`
	const holds = `"mode":"exclusive","protocol":1,"elected":true`
	holder := protocol.Record{Mode: protocol.Exclusive, Election: protocol.Elected}
	with := func(change func(*protocol.Record)) protocol.Record {
		r := holder
		change(&r)
		return r
	}
	queue := protocol.Queue{{ID: idB, Want: protocol.Exclusive}, {ID: idA, Want: protocol.Shared}}
	for _, c := range []struct {
		r     protocol.Record
		queue protocol.Queue
		want  string
	}{
		{holder, nil, holds + `}`},
		{holder, protocol.Queue{}, holds + `}`},
		{protocol.Record{Mode: protocol.Pending, Election: protocol.NotElected}, nil,
			`"mode":"pending","protocol":1,"elected":false}`},
		{protocol.Record{Mode: protocol.Shared, Election: protocol.Unstated}, nil, `"mode":"shared","protocol":1}`},
		{protocol.Record{Mode: protocol.Shared, Election: protocol.NotElected, Joining: true}, nil,
			`"mode":"shared","protocol":1,"elected":false,"tether":{"joining":true}}`},
		{with(func(r *protocol.Record) { r.Held = 1234 }), nil, holds + `,"tether":{"held":1234}}`},
		{with(func(r *protocol.Record) { r.Held = -1 }), nil, holds + `}`},
		{with(func(r *protocol.Record) { r.Label = `a "b"` }), nil, holds + `,"tether":{"label":"a \"b\""}}`},
		{with(func(r *protocol.Record) { r.Label = strings.Repeat("é", 128) + "x" }), nil,
			holds + `,"tether":{"label":"` + strings.Repeat("é", 128) + `"}}`},
		{with(func(r *protocol.Record) { r.Label = "x" + strings.Repeat("é", 128) }), nil,
			holds + `,"tether":{"label":"x` + strings.Repeat("é", 127) + `"}}`},
		{with(func(r *protocol.Record) { r.Place = 3 }), nil, holds + `,"tether":{"place":3}}`},
		{with(func(r *protocol.Record) { r.Place = -3 }), nil, holds + `}`},
		{with(func(r *protocol.Record) { r.Fenced = true }), nil, holds + `,"tether":{"db":0}}`},
		{with(func(r *protocol.Record) { r.Fenced, r.DB = true, 15 }), nil, holds + `,"tether":{"db":15}}`},
		{with(func(r *protocol.Record) { r.DB = 15 }), nil, holds + `}`},
		{holder, queue, holds + `,"tether":{"queue":[["` + idB + `","x"],["` + idA + `","s"]]}}`},
		{with(func(r *protocol.Record) {
			r.Joining, r.Label, r.Held, r.Place, r.Fenced, r.DB = true, "l", 1234, 3, true, 2
		}), queue, holds + `,"tether":{"joining":true,"label":"l","held":1234,"place":3,"db":2,"queue":[["` + idB + `","x"],["` + idA + `","s"]]}}`},
	} {
		c.r.ID = idA
		require.Equal(t, head+c.want, EncodeRecord(c.r, c.queue))
	}
	require.Equal(t, `{"holder_id":"a\"b","mode":"shared","protocol":1}`,
		EncodeRecord(protocol.Record{ID: `a"b`, Mode: protocol.Shared}, nil))
}

// A record without a mode must be decoded as exclusive: otherwise a bug of the
// sender would let others in.
func TestEncodeRecordWithoutModeIsLegacy(t *testing.T) {
	r, _ := DecodeRecord(EncodeRecord(protocol.Record{ID: idA}, nil))
	require.True(t, r.Legacy)
}

var (
	legacy = protocol.Record{Mode: protocol.Exclusive, Legacy: true}
	plain  = protocol.Record{ID: idA, Mode: protocol.Shared, Election: protocol.NotElected}
)

// plainWith returns the record plain with changes.
func plainWith(change func(*protocol.Record)) protocol.Record {
	r := plain
	change(&r)
	return r
}

var (
	unstated = plainWith(func(r *protocol.Record) { r.Election = protocol.Unstated })
	joining  = plainWith(func(r *protocol.Record) { r.Joining = true })
	held     = plainWith(func(r *protocol.Record) { r.Held = 1234 })
)

// recordWithID returns the encoding of plain with this JSON as holder_id.
func recordWithID(id string) string {
	return `{"holder_id":` + id + `,"mode":"shared","protocol":1,"elected":false}`
}

// recordWithProtocol returns the encoding of plain with this JSON as protocol.
func recordWithProtocol(version string) string {
	return `{"holder_id":"` + idA + `","mode":"shared","protocol":` + version + `,"elected":false}`
}

// recordWithMode returns the encoding of plain with this JSON as mode.
func recordWithMode(mode string) string {
	return `{"holder_id":"` + idA + `","mode":` + mode + `,"protocol":1,"elected":false}`
}

// recordWithElected returns the encoding of plain with this JSON as elected.
func recordWithElected(elected string) string {
	return `{"holder_id":"` + idA + `","mode":"shared","protocol":1,"elected":` + elected + `}`
}

// recordWithExtension returns the encoding of plain with this JSON as extension.
func recordWithExtension(ext string) string {
	return `{"holder_id":"` + idA + `","mode":"shared","protocol":1,"elected":false,"tether":` + ext + `}`
}

var records = []struct {
	name, data string
	want       protocol.Record
}{
	{"plain", recordWithID(`"` + idA + `"`), plain},
	{"exclusive", recordWithMode(`"exclusive"`), plainWith(func(r *protocol.Record) { r.Mode = protocol.Exclusive })},
	{"pending", recordWithMode(`"pending"`), plainWith(func(r *protocol.Record) { r.Mode = protocol.Pending })},
	{"as Python spaces it", `{"holder_id": "` + idA + `", "mode": "shared", "protocol": 1, "elected": false}`, plain},
	{"in another order", ` {"elected":false,"protocol":1,"mode":"shared","holder_id":"` + idA + `"} `, plain},
	{"escaped keys and values", `{"holder\u005fid":"` + idA + `","mode":"\u0073hared","protocol":1,"elected":false}`, plain},
	{"unknown keys", `{"holder_id":"` + idA + `","mode":"shared","protocol":1,"elected":false,"x":{"y":[null]}}`, plain},
	{"an id of another shape", recordWithID(`"host-7"`), plainWith(func(r *protocol.Record) { r.ID = "host-7" })},

	{"4.0 and 4.1: no elected", `{"holder_id":"` + idA + `","mode":"shared","protocol":1}`, unstated},
	{"elected", recordWithElected(`true`), plainWith(func(r *protocol.Record) { r.Election = protocol.Elected })},
	{"elected null", recordWithElected(`null`), unstated},
	{"elected a number", recordWithElected(`1`), unstated},
	{"elected a string", recordWithElected(`"true"`), unstated},
	{"elected a list", recordWithElected(`[true]`), unstated},
	{"elected in other case", `{"holder_id":"` + idA + `","mode":"shared","protocol":1,"Elected":true}`, unstated},

	{"3.2: a timestamp", `1700000000.123`, legacy},
	{"3.2: a timestamp in a string", `"1700000000.123"`, legacy},
	{"nothing", ``, legacy},
	{"blank", ` `, legacy},
	{"null", `null`, legacy},
	{"true", `true`, legacy},
	{"a list", `[1,2]`, legacy},
	{"a record in a list", `[` + recordWithID(`"`+idA+`"`) + `]`, legacy},
	{"an empty object", `{}`, legacy},
	{"a ping", `{"message":"ping","response_channel":"C-1"}`, legacy},
	{"junk", "\x00\xffjunk", legacy},
	{"cut off", recordWithID(`"` + idA + `"`)[:80], legacy},
	{"something behind it", recordWithID(`"`+idA+`"`) + "x", legacy},
	{"not UTF-8", strings.Replace(recordWithExtension(`{"label":"?"}`), "?", "\xff", 1), legacy},

	{"protocol 1.0", recordWithProtocol(`1.0`), plain},
	{"protocol 1e0", recordWithProtocol(`1e0`), plain},
	{"protocol 10e-1", recordWithProtocol(`10e-1`), plain},
	{"protocol 2", recordWithProtocol(`2`), legacy},
	{"protocol 0", recordWithProtocol(`0`), legacy},
	{"protocol -1", recordWithProtocol(`-1`), legacy},
	{"protocol 1.5", recordWithProtocol(`1.5`), legacy},
	{"protocol 1e999", recordWithProtocol(`1e999`), legacy},
	{"protocol null", recordWithProtocol(`null`), legacy},
	{"protocol true", recordWithProtocol(`true`), legacy},
	{"protocol a string", recordWithProtocol(`"1"`), legacy},
	{"protocol a list", recordWithProtocol(`[1]`), legacy},
	{"protocol missing", `{"holder_id":"` + idA + `","mode":"shared","elected":false}`, legacy},
	{"Protocol is another key", `{"holder_id":"` + idA + `","mode":"shared","Protocol":1,"elected":false}`, legacy},
	{"Protocol beside protocol", `{"holder_id":"` + idA + `","mode":"shared","protocol":1,"PROTOCOL":2,"elected":false}`, plain},

	{"id missing", `{"mode":"shared","protocol":1,"elected":false}`, legacy},
	{"id null", recordWithID(`null`), legacy},
	{"id a number", recordWithID(`7`), legacy},
	{"id a list", recordWithID(`["` + idA + `"]`), legacy},
	{"id empty", recordWithID(`""`), legacy},
	{"id of a legacy participant", recordWithID(`"legacy-0"`), legacy},
	{"id that looks like one", recordWithID(`"legacy-x"`), legacy},
	{"HOLDER_ID is another key", `{"HOLDER_ID":"` + idA + `","mode":"shared","protocol":1,"elected":false}`, legacy},

	{"mode missing", `{"holder_id":"` + idA + `","protocol":1,"elected":false}`, legacy},
	{"mode null", recordWithMode(`null`), legacy},
	{"mode a number", recordWithMode(`1`), legacy},
	{"mode empty", recordWithMode(`""`), legacy},
	{"mode of the future", recordWithMode(`"upgradable"`), legacy},
	{"mode unknown", recordWithMode(`"unknown"`), legacy},
	{"mode in other case", recordWithMode(`"Shared"`), legacy},
	{"mode with a blank", recordWithMode(`"shared "`), legacy},
	{"Mode is another key", `{"holder_id":"` + idA + `","Mode":"shared","protocol":1,"elected":false}`, legacy},

	{"the last id counts", `{"holder_id":"` + idB + `","mode":"shared","protocol":1,"elected":false,"holder_id":"` + idA + `"}`, plain},
	{"the last mode counts", `{"holder_id":"` + idA + `","mode":"pending","protocol":1,"elected":false,"mode":"shared"}`, plain},
	{"the last protocol counts", `{"holder_id":"` + idA + `","mode":"shared","protocol":1,"elected":false,"protocol":2}`, legacy},
	{"the last elected counts", `{"holder_id":"` + idA + `","mode":"shared","protocol":1,"elected":true,"elected":0}`, unstated},

	{"extension", recordWithExtension(`{"joining":true,"held":1234}`), plainWith(func(r *protocol.Record) { r.Joining, r.Held = true, 1234 })},
	{"extension empty", recordWithExtension(`{}`), plain},
	{"extension with unknown keys", recordWithExtension(`{"Label":"x","held":1234,"new":{"place":3},"DB":0}`), held},
	{"extension null", recordWithExtension(`null`), plain},
	{"extension a list", recordWithExtension(`[true]`), plain},
	{"extension a string", recordWithExtension(`"joining"`), plain},
	{"extension a number", recordWithExtension(`7`), plain},
	{"joining", recordWithExtension(`{"joining":true}`), joining},
	{"joining false", recordWithExtension(`{"joining":false}`), plain},
	{"joining a number", recordWithExtension(`{"joining":1}`), plain},
	{"joining a string", recordWithExtension(`{"joining":"true"}`), plain},
	{"joining null", recordWithExtension(`{"joining":null}`), plain},
	{"Joining is another key", recordWithExtension(`{"Joining":true}`), plain},
	{"held", recordWithExtension(`{"held":1234}`), held},
	{"held 0", recordWithExtension(`{"held":0}`), plain},
	{"held negative", recordWithExtension(`{"held":-5}`), plain},
	{"held a fraction", recordWithExtension(`{"held":1.5}`), plain},
	{"held with an exponent", recordWithExtension(`{"held":1e3}`), plain},
	{"held beyond 64 bits", recordWithExtension(`{"held":9223372036854775808}`), plain},
	{"held a string", recordWithExtension(`{"held":"1234"}`), plain},
	{"held malformed beside joining", recordWithExtension(`{"held":[],"joining":true}`), joining},
	{"joining malformed beside held", recordWithExtension(`{"held":1234,"joining":{}}`), held},
	{"joining outside the extension", `{"holder_id":"` + idA + `","mode":"shared","protocol":1,"elected":false,"joining":true}`, plain},
	{"the last extension counts", `{"tether":{"joining":true},"holder_id":"` + idA + `","mode":"shared","protocol":1,"elected":false,"tether":{"held":1234}}`, held},
	{"Tether is another key", `{"holder_id":"` + idA + `","mode":"shared","protocol":1,"elected":false,"Tether":{"joining":true}}`, plain},
}

func TestDecodeRecord(t *testing.T) {
	for _, c := range records {
		t.Run(c.name, func(t *testing.T) {
			r, queue := DecodeRecord(c.data)
			require.Equal(t, c.want, r, c.data)
			require.Empty(t, queue)
		})
	}
}

var (
	waiterB  = protocol.Queue{{ID: idB, Want: protocol.Exclusive}}
	labelled = plainWith(func(r *protocol.Record) { r.Label = "l" })
	placed   = plainWith(func(r *protocol.Record) { r.Place = 3 })
	fenced   = plainWith(func(r *protocol.Record) { r.Fenced, r.DB = true, 2 })
)

// plainWithLabel returns the record plain with this label.
func plainWithLabel(s string) protocol.Record {
	return plainWith(func(r *protocol.Record) { r.Label = s })
}

var extensions = []struct {
	name, ext string
	want      protocol.Record
	queue     protocol.Queue
}{
	{"everything", `{"joining":true,"label":"l","held":1234,"place":3,"db":2,"queue":[["` + idB + `","x"]]}`,
		plainWith(func(r *protocol.Record) {
			r.Joining, r.Label, r.Held, r.Place, r.Fenced, r.DB = true, "l", 1234, 3, true, 2
		}), waiterB},
	{"in another order", `{"queue":[["` + idB + `","x"]],"label":"l"}`, labelled, waiterB},
	{"each malformed", `{"joining":1,"label":7,"held":"1","place":"3","db":"0","queue":7}`, plain, nil},
	{"each null", `{"joining":null,"label":null,"held":null,"place":null,"db":null,"queue":null}`, plain, nil},

	{"label", `{"label":"l"}`, labelled, nil},
	{"label escaped", `{"label":"\u006c"}`, labelled, nil},
	{"label empty", `{"label":""}`, plain, nil},
	{"label a list", `{"label":["l"]}`, plain, nil},
	{"label full", `{"label":"` + strings.Repeat("x", 256) + `"}`, plainWithLabel(strings.Repeat("x", 256)), nil},
	{"label too long", `{"label":"` + strings.Repeat("x", 257) + `"}`, plainWithLabel(strings.Repeat("x", 256)), nil},
	{"label cut before a rune of 2", `{"label":"x` + strings.Repeat("é", 200) + `"}`, plainWithLabel("x" + strings.Repeat("é", 127)), nil},
	{"label cut before a rune of 3", `{"label":"` + strings.Repeat("鎖", 200) + `"}`, plainWithLabel(strings.Repeat("鎖", 85)), nil},
	{"label cut before a rune of 4", `{"label":"xxx` + strings.Repeat("🔒", 200) + `"}`, plainWithLabel("xxx" + strings.Repeat("🔒", 63)), nil},
	{"label cut between runes", `{"label":"` + strings.Repeat("🔒", 200) + `"}`, plainWithLabel(strings.Repeat("🔒", 64)), nil},
	{"the last label counts", `{"label":"x","label":"l"}`, labelled, nil},
	{"the last label counts, be it none", `{"label":"x","label":7}`, plain, nil},

	{"place", `{"place":3}`, placed, nil},
	{"place 0", `{"place":0}`, plain, nil},
	{"place negative", `{"place":-3}`, plain, nil},
	{"place negative zero", `{"place":-0}`, plain, nil},
	{"place a fraction", `{"place":3.0}`, plain, nil},
	{"place with an exponent", `{"place":3e0}`, plain, nil},
	{"place at the limit", `{"place":2147483647}`, plainWith(func(r *protocol.Record) { r.Place = 1<<31 - 1 }), nil},
	{"place beyond it", `{"place":2147483648}`, plain, nil},
	{"place beyond 64 bits", `{"place":18446744073709551619}`, plain, nil},

	{"db", `{"db":2}`, fenced, nil},
	{"db 0", `{"db":0}`, plainWith(func(r *protocol.Record) { r.Fenced = true }), nil},
	{"db negative", `{"db":-1}`, plain, nil},
	{"db negative zero", `{"db":-0}`, plain, nil},
	{"db a fraction", `{"db":0.0}`, plain, nil},
	{"db true", `{"db":true}`, plain, nil},
	{"db at the limit", `{"db":2147483647}`, plainWith(func(r *protocol.Record) { r.Fenced, r.DB = true, 1<<31-1 }), nil},
	{"db beyond it", `{"db":2147483648}`, plain, nil},
	{"the last db counts", `{"db":0,"db":[]}`, plain, nil},

	{"queue", `{"queue":[["` + idB + `","x"]]}`, plain, waiterB},
	{"queue empty", `{"queue":[]}`, plain, nil},
	{"queue in part", `{"queue":[["` + idA + `"],["` + idB + `","x"],7]}`, plain, waiterB},
	{"queue malformed beside a label", `{"queue":{},"label":"l"}`, labelled, nil},
	{"the last queue counts", `{"queue":[["` + idA + `","s"]],"queue":[["` + idB + `","x"]]}`, plain, waiterB},
}

func TestDecodeRecordExtension(t *testing.T) {
	for _, c := range extensions {
		t.Run(c.name, func(t *testing.T) {
			r, queue := DecodeRecord(recordWithExtension(c.ext))
			require.Equal(t, c.want, r, c.ext)
			require.Equal(t, c.queue, queue, c.ext)
		})
	}
}

// The queue of a malformed record is ignored.
func TestDecodeRecordOfALegacyPeer(t *testing.T) {
	r, queue := DecodeRecord(`{"holder_id":"` + idA + `","mode":"later","protocol":1,"tether":{"label":"l","queue":[["` + idB + `","x"]]}}`)
	require.Equal(t, legacy, r)
	require.Empty(t, queue)
}

// Each invalid byte of a label becomes U+FFFD, which has three bytes, so the
// label grows. The decoder truncates it again.
func TestLabelOfOddBytes(t *testing.T) {
	for _, label := range []string{strings.Repeat("\xff", 300), strings.Repeat("\x80", 300), strings.Repeat("x", 255) + "\xe2\x82"} {
		r, _ := DecodeRecord(EncodeRecord(protocol.Record{ID: idA, Mode: protocol.Shared, Label: label}, nil))
		require.True(t, utf8.ValidString(r.Label))
		require.InDelta(t, maxLabel, len(r.Label), 2)
	}
}

func TestRecordRoundTrip(t *testing.T) {
	rng := random(t)
	for range 2000 {
		r := protocol.Record{
			ID:       randomID(rng),
			Mode:     protocol.Exclusive + protocol.Mode(rng.IntN(3)),
			Election: protocol.Election(rng.IntN(3)),
			Joining:  rng.IntN(2) == 0,
			Held:     rng.Int64() >> rng.IntN(63),
			Place:    rng.IntN(3) * rng.IntN(5000),
			Fenced:   rng.IntN(2) == 0,
		}
		if r.Fenced {
			r.DB = rng.IntN(16)
		}
		if rng.IntN(2) == 0 {
			r.Label = randomText(rng)
		}
		queue := randomQueue(rng)
		got, gotQueue := DecodeRecord(EncodeRecord(r, queue))
		require.Equal(t, r, got)
		require.Equal(t, queue, gotQueue)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	for _, c := range records {
		f.Add(c.data)
	}
	for _, c := range extensions {
		f.Add(recordWithExtension(c.ext))
	}
	f.Fuzz(func(t *testing.T, data string) {
		r, queue := DecodeRecord(data)
		if r.Legacy {
			require.Equal(t, legacy, r)
			require.Empty(t, queue)
			return
		}
		require.NotEmpty(t, r.ID)
		require.GreaterOrEqual(t, r.Held, int64(0))
		require.GreaterOrEqual(t, r.Place, 0)
		require.GreaterOrEqual(t, r.DB, 0)
		require.LessOrEqual(t, len(r.Label), maxLabel)
		require.True(t, utf8.ValidString(r.Label))
		requireValidQueue(t, queue)
		require.True(t, json.Valid([]byte(data)))
		again, queueAgain := DecodeRecord(EncodeRecord(r, queue))
		require.Equal(t, r, again)
		require.Equal(t, queue, queueAgain)
	})
}

// benchmarkRecords are records without an extension, with a full one, and with
// as much luggage as possible.
var benchmarkRecords = map[string]struct {
	record protocol.Record
	queue  protocol.Queue
}{
	"plain": {record: protocol.Record{ID: idA, Mode: protocol.Exclusive, Election: protocol.Elected}},
	"extension": {record: protocol.Record{
		ID: idA, Mode: protocol.Exclusive, Election: protocol.Elected, Held: 1234, Label: "worker 7", Place: 3, Fenced: true,
	}},
	"luggage": {
		record: protocol.Record{ID: idA, Mode: protocol.Pending, Election: protocol.NotElected},
		queue:  queueOf(protocol.MaxLuggage),
	},
}

func BenchmarkEncodeRecord(b *testing.B) {
	for name, c := range benchmarkRecords {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				EncodeRecord(c.record, c.queue)
			}
		})
	}
}

func BenchmarkDecodeRecord(b *testing.B) {
	for name, c := range benchmarkRecords {
		b.Run(name, func(b *testing.B) {
			data := EncodeRecord(c.record, c.queue)
			b.ReportAllocs()
			for b.Loop() {
				DecodeRecord(data)
			}
		})
	}
}

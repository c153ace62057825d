package wire

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tetherlock/tether/protocol"
)

// protocolVersion is the value of the field protocol in every record.
const protocolVersion = 1

// maxLabel is the maximum length of a label, in bytes.
const maxLabel = 256

// EncodeRecord returns the answer to a ping, with the luggage of the queue that
// the participant passes on. An unstated election is left out, as 4.0 and 4.1
// peers do. The record must not be a legacy one, which has no encoding. A label
// is truncated to 256 bytes.
func EncodeRecord(r protocol.Record, queue protocol.Queue) string {
	dst := make([]byte, 0, 512)
	dst = appendString(append(dst, `{"holder_id":`...), r.ID)
	dst = appendString(append(dst, `,"mode":`...), r.Mode.String())
	dst = strconv.AppendInt(append(dst, `,"protocol":`...), protocolVersion, 10)
	if r.Election != protocol.Unstated {
		dst = strconv.AppendBool(append(dst, `,"elected":`...), r.Election == protocol.Elected)
	}
	dst = appendRecordExtension(dst, r, queue)
	return string(append(dst, '}'))
}

// appendRecordExtension appends the part of a record that only tether knows,
// unless it is empty. Other participants ignore it.
func appendRecordExtension(dst []byte, r protocol.Record, queue protocol.Queue) []byte {
	outer := len(dst)
	dst = append(dst, `,"tether":{`...)
	inner := len(dst)
	if r.Joining {
		dst = append(dst, `"joining":true,`...)
	}
	if r.Label != "" {
		dst = append(appendString(append(dst, `"label":`...), truncateLabel(r.Label)), ',')
	}
	dst = appendIfPositive(dst, `"held":`, r.Held)
	dst = appendIfPositive(dst, `"place":`, int64(r.Place))
	if r.Fenced {
		dst = append(strconv.AppendInt(append(dst, `"db":`...), int64(r.DB), 10), ',')
	}
	if r.Session {
		dst = append(dst, `"session":true,`...)
	}
	if len(queue) > 0 {
		dst = append(appendWaiters(append(dst, `"queue":[`...), queue), `],`...)
	}
	if len(dst) == inner {
		return dst[:outer]
	}
	dst[len(dst)-1] = '}'
	return dst
}

// appendIfPositive appends a key and a number, or nothing if the number is not
// positive: a missing number means 0.
func appendIfPositive(dst []byte, key string, n int64) []byte {
	if n <= 0 {
		return dst
	}
	return append(strconv.AppendInt(append(dst, key...), n, 10), ',')
}

// truncateLabel cuts a label to at most maxLabel bytes, between two runes.
func truncateLabel(label string) string {
	if len(label) <= maxLabel {
		return label
	}
	end := maxLabel
	for end > maxLabel-utf8.UTFMax && !utf8.RuneStart(label[end]) {
		end--
	}
	// A substring would keep the whole label in memory, which may be as long as
	// a message.
	return strings.Clone(label[:end])
}

// DecodeRecord decodes an answer to a ping, and the queue that comes with it. It
// never fails. An answer that is not a JSON object with the number 1 as
// protocol, a string holder_id and a known mode is the record of a legacy
// participant: exclusive, and without an id. If such an answer were ignored, two
// participants could hold the lock. The same applies to an answer that is longer
// than 1 MiB or not UTF-8.
//
// It also applies to an empty id and to one that starts with legacy-. A probe
// numbers legacy participants legacy-<n>, so one participant's answer could be
// mistaken for another's.
//
// If the field elected is missing or not a boolean, the election is Unstated.
// The extension is a hint: a malformed part of it is ignored, and the record
// remains valid.
func DecodeRecord(data string) (protocol.Record, protocol.Queue) {
	legacy := protocol.Record{Mode: protocol.Exclusive, Legacy: true}
	message, ok := parseObject(data)
	if !ok {
		return legacy, nil
	}
	var version, id, mode, elected, ext raw
	for m := message.members(); m.member(); {
		switch string(m.key) {
		case "protocol":
			version = m.value
		case "holder_id":
			id = m.value
		case "mode":
			mode = m.value
		case "elected":
			elected = m.value
		case "tether":
			ext = m.value
		}
	}
	r := protocol.Record{Election: elected.asElection()}
	if r.ID, ok = id.asString(); !ok || r.ID == "" || strings.HasPrefix(r.ID, "legacy-") {
		return legacy, nil
	}
	name, _ := mode.asBytes()
	if r.Mode, ok = protocol.ParseMode(string(name)); !ok || !version.equals(protocolVersion) {
		return legacy, nil
	}
	return r, ext.readRecordExtension(&r)
}

// readRecordExtension decodes a record's extension into record, and returns its
// queue.
func (r raw) readRecordExtension(record *protocol.Record) protocol.Queue {
	var joining, label, held, place, db, session, queue raw
	for m := r.members(); m.member(); {
		switch string(m.key) {
		case "joining":
			joining = m.value
		case "label":
			label = m.value
		case "held":
			held = m.value
		case "place":
			place = m.value
		case "db":
			db = m.value
		case "session":
			session = m.value
		case "queue":
			queue = m.value
		}
	}
	record.Joining = string(joining) == "true"
	name, _ := label.asString()
	record.Label = truncateLabel(name)
	record.Held, _ = held.asInteger(math.MaxInt64)
	record.Place, _ = place.asInt32()
	record.DB, record.Fenced = db.asInt32()
	record.Session = string(session) == "true"
	return queue.asQueue()
}

// asInt32 parses a non-negative integer of at most 31 bits, which fits in an int
// on every platform.
func (r raw) asInt32() (int, bool) {
	n, ok := r.asInteger(math.MaxInt32)
	return int(n), ok
}

// asElection decodes a record's field elected.
func (r raw) asElection() protocol.Election {
	switch string(r) {
	case "true":
		return protocol.Elected
	case "false":
		return protocol.NotElected
	default:
		return protocol.Unstated
	}
}

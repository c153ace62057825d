package wire

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tetherlock/tether/protocol"
)

// protocolVersion stands in every record.
const protocolVersion = 1

// maxLabel is how long a label may be, in bytes.
const maxLabel = 256

// EncodeRecord is the answer to a ping, with the queue that the participant
// hands over. An election that is unstated is left out, which is what a 4.0 or
// 4.1 peer does. The record must not be a legacy one: those have no form of
// their own. A label is cut after 256 bytes.
func EncodeRecord(r protocol.Record, queue protocol.Queue) string {
	dst := make([]byte, 0, 512)
	dst = appendString(append(dst, `{"holder_id":`...), r.ID)
	dst = appendString(append(dst, `,"mode":`...), r.Mode.String())
	dst = strconv.AppendInt(append(dst, `,"protocol":`...), protocolVersion, 10)
	if r.Election != protocol.Unstated {
		dst = strconv.AppendBool(append(dst, `,"elected":`...), r.Election == protocol.Elected)
	}
	dst = appendTold(dst, r, queue)
	return string(append(dst, '}'))
}

// appendTold adds what a record says to participants that know tether, if
// anything. The others pass over it.
func appendTold(dst []byte, r protocol.Record, queue protocol.Queue) []byte {
	outer := len(dst)
	dst = append(dst, `,"tether":{`...)
	inner := len(dst)
	if r.Joining {
		dst = append(dst, `"joining":true,`...)
	}
	if r.Label != "" {
		dst = append(appendString(append(dst, `"label":`...), cutLabel(r.Label)), ',')
	}
	dst = appendPositive(dst, `"held":`, r.Held)
	dst = appendPositive(dst, `"place":`, int64(r.Place))
	if r.Fenced {
		dst = append(strconv.AppendInt(append(dst, `"db":`...), int64(r.DB), 10), ',')
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

// appendPositive adds a number with its key, or nothing if it says nothing.
func appendPositive(dst []byte, key string, n int64) []byte {
	if n <= 0 {
		return dst
	}
	return append(strconv.AppendInt(append(dst, key...), n, 10), ',')
}

// cutLabel bounds a label, between two runes.
func cutLabel(label string) string {
	if len(label) <= maxLabel {
		return label
	}
	end := maxLabel
	for end > maxLabel-utf8.UTFMax && !utf8.RuneStart(label[end]) {
		end--
	}
	// What is cut off is given back: it may be a whole message.
	return strings.Clone(label[:end])
}

// DecodeRecord reads an answer to a ping. What is not a JSON object with the
// number 1 as protocol, a string holder_id and a known mode is a legacy
// participant, exclusive and without id: about a claim that cannot be read the
// worst must be supposed, or two would hold the lock. The same goes for what is
// longer than 1 MiB or not UTF-8, and for an id that identifies nobody: an empty
// one, or one of the names legacy-<n> that a probe gives to legacy participants.
// With such an id one participant's answer could pass for another's.
//
// A field elected that is missing or no boolean is unstated. The extension is a
// hint: what is malformed in it is as if absent, and never spoils the record.
func DecodeRecord(data string) (protocol.Record, protocol.Queue) {
	legacy := protocol.Record{Mode: protocol.Exclusive, Legacy: true}
	message, ok := object(data)
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
	r := protocol.Record{Election: elected.election()}
	if r.ID, ok = id.text(); !ok || r.ID == "" || strings.HasPrefix(r.ID, "legacy-") {
		return legacy, nil
	}
	name, _ := mode.bytes()
	if r.Mode, ok = protocol.ParseMode(string(name)); !ok || !version.is(protocolVersion) {
		return legacy, nil
	}
	return r, ext.told(&r)
}

// told reads a record's extension.
func (r raw) told(record *protocol.Record) protocol.Queue {
	var joining, label, held, place, db, queue raw
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
		case "queue":
			queue = m.value
		}
	}
	record.Joining = string(joining) == "true"
	name, _ := label.text()
	record.Label = cutLabel(name)
	record.Held, _ = held.integer(math.MaxInt64)
	record.Place, _ = place.small()
	record.DB, record.Fenced = db.small()
	return queue.queue()
}

// small is an integer from 0 on that fits everywhere.
func (r raw) small() (int, bool) {
	n, ok := r.integer(math.MaxInt32)
	return int(n), ok
}

// election reads a record's field elected.
func (r raw) election() protocol.Election {
	switch string(r) {
	case "true":
		return protocol.Elected
	case "false":
		return protocol.NotElected
	default:
		return protocol.Unstated
	}
}

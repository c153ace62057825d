package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tetherlock/tether/protocol"
)

// protocolVersion stands in every record.
const protocolVersion = 1

// maxMessage is how long a ping or a record may be, in bytes. Anybody may
// publish on a lock's channel, and its participants read all of it.
const maxMessage = 1 << 20

type ping struct {
	Message         string `json:"message"`
	ResponseChannel string `json:"response_channel"`
}

// record is a record as it travels.
type record struct {
	HolderID string     `json:"holder_id"`
	Mode     string     `json:"mode"`
	Protocol int        `json:"protocol"`
	Elected  *bool      `json:"elected,omitempty"`
	Tether   *extension `json:"tether,omitempty"`
}

// extension is what a record says to participants that know tether. The others
// pass over it.
type extension struct {
	Joining bool  `json:"joining,omitempty"`
	Held    int64 `json:"held,omitempty"`
}

// ResponseChannel is the channel on which one probe of a lock's channel wants
// its answers: <channel>-<id>. The id must be new for every probe, 32 lowercase
// hex digits.
//
// A ping is JSON and can only carry UTF-8. When the channel is not UTF-8 the
// name is tether-<hash of the channel>-<id>-reply, which no other channel's
// plain name can be: that would end in the id.
func ResponseChannel(channel, id string) string {
	if utf8.ValidString(channel) {
		return channel + "-" + id
	}
	return "tether-" + hash(channel) + "-" + id + "-reply"
}

// hash stands for a channel in names that cannot hold the channel itself.
func hash(channel string) string {
	sum := sha256.Sum256([]byte(channel))
	return hex.EncodeToString(sum[:])
}

// EncodePing is the message that asks every participant of a channel for its
// record. The response channel must be UTF-8, as [ResponseChannel] makes it: in
// any other, each wrong byte becomes U+FFFD and the answers go astray.
func EncodePing(response string) string {
	return encode(ping{"ping", response})
}

// DecodePing reads a message on a lock's channel. It is a ping when it is a JSON
// object with a non-empty string response_channel, whatever else is in it: the
// participants of other versions answer that, and who does not answer counts as
// frozen. Anything else is not, nor is what is longer than 1 MiB or not UTF-8.
func DecodePing(data string) (response string, ok bool) {
	fields, ok := object(data)
	if !ok {
		return "", false
	}
	response, ok = fields.text("response_channel")
	return response, ok && response != ""
}

// EncodeRecord is the answer to a ping. An election that is unstated is left
// out, which is what a 4.0 or 4.1 peer does. The record must not be a legacy
// one: those have no form of their own.
func EncodeRecord(r protocol.Record) string {
	out := record{HolderID: r.ID, Mode: r.Mode.String(), Protocol: protocolVersion}
	if r.Election != protocol.Unstated {
		out.Elected = new(r.Election == protocol.Elected)
	}
	if ext := (extension{r.Joining, max(r.Held, 0)}); ext != (extension{}) {
		out.Tether = &ext
	}
	return encode(out)
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
func DecodeRecord(data string) protocol.Record {
	legacy := protocol.Record{Mode: protocol.Exclusive, Legacy: true}
	fields, ok := object(data)
	if !ok || !fields.number("protocol", protocolVersion) {
		return legacy
	}
	id, ok := fields.text("holder_id")
	if !ok || id == "" || strings.HasPrefix(id, "legacy-") {
		return legacy
	}
	name, _ := fields.text("mode")
	mode, ok := protocol.ParseMode(name)
	if !ok {
		return legacy
	}
	r := protocol.Record{ID: id, Mode: mode, Election: fields.election()}
	if ext, ok := object(string(fields["tether"])); ok {
		r.Joining = string(ext["joining"]) == "true"
		r.Held = ext.milliseconds("held")
	}
	return r
}

// fields is a JSON object. It is no struct: encoding/json would fill a field
// named protocol from a key Protocol, which to every other peer is a stranger.
// Of equal keys the last one counts, as it does there.
type fields map[string]json.RawMessage

// object reads a JSON object.
func object(data string) (fields, bool) {
	if len(data) > maxMessage || !utf8.ValidString(data) {
		return nil, false
	}
	var f fields
	if err := json.Unmarshal([]byte(data), &f); err != nil {
		return nil, false
	}
	return f, f != nil // null is no object
}

// text is a string field. A null is none.
func (f fields) text(key string) (string, bool) {
	raw := f[key]
	if !bytes.HasPrefix(raw, []byte{'"'}) {
		return "", false
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

// number says whether a field is this number, however it is written: 1, 1.0.
func (f fields) number(key string, want float64) bool {
	n, err := strconv.ParseFloat(string(f[key]), 64)
	return err == nil && n == want
}

// election reads a record's field elected.
func (f fields) election() protocol.Election {
	switch string(f["elected"]) {
	case "true":
		return protocol.Elected
	case "false":
		return protocol.NotElected
	default:
		return protocol.Unstated
	}
}

// milliseconds is an integer field, 0 when it is negative or none.
func (f fields) milliseconds(key string) int64 {
	n, err := strconv.ParseInt(string(f[key]), 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// encode writes a message of strings, numbers and booleans, which always have a
// form in JSON.
func encode(message any) string {
	out, err := json.Marshal(message)
	if err != nil {
		panic("wire: " + err.Error())
	}
	return string(out)
}

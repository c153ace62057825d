package wire

import "github.com/tetherlock/tether/protocol"

// EncodePing returns the message that asks every participant of a channel for
// its record. The response channel must be valid UTF-8, as one of
// [ResponseChannel] is: otherwise each invalid byte becomes U+FFFD, and the
// answers go to another channel. Without an ID the ping has no extension.
func EncodePing(p protocol.Ping) string {
	dst := make([]byte, 0, 512)
	dst = append(dst, `{"message":"ping","response_channel":`...)
	dst = appendString(dst, p.Response)
	if p.ID != "" {
		dst = appendPingExtension(dst, p)
	}
	return string(append(dst, '}'))
}

// appendPingExtension appends the part of a ping that only tether knows. Other
// participants ignore it.
func appendPingExtension(dst []byte, p protocol.Ping) []byte {
	dst = appendString(append(dst, `,"tether":{"id":`...), p.ID)
	if p.Want == protocol.Exclusive || p.Want == protocol.Shared {
		dst = appendString(append(dst, `,"want":`...), p.Want.String())
	}
	if p.First {
		dst = append(appendWaiters(append(dst, `,"queue":[`...), p.Queue), ']')
	}
	return append(dst, '}')
}

// DecodePing decodes a message on a lock's channel. It is a ping if it is a JSON
// object with a non-empty string response_channel, regardless of its other
// members. Participants of other versions answer such a message, and a
// participant that does not answer is taken for frozen and reaped. A message
// that is longer than 1 MiB or not UTF-8 is not a ping.
//
// The extension is a hint. A malformed part of it is ignored, and all of it is
// ignored without a valid holder id of the sender.
func DecodePing(data string) (protocol.Ping, bool) {
	message, ok := parseObject(data)
	if !ok {
		return protocol.Ping{}, false
	}
	var response, ext raw
	for m := message.members(); m.member(); {
		switch string(m.key) {
		case "response_channel":
			response = m.value
		case "tether":
			ext = m.value
		}
	}
	var p protocol.Ping
	if p.Response, ok = response.asString(); !ok || p.Response == "" {
		return protocol.Ping{}, false
	}
	ext.readPingExtension(&p)
	return p, true
}

// readPingExtension decodes a ping's extension into p.
func (r raw) readPingExtension(p *protocol.Ping) {
	var id, want, queue raw
	for m := r.members(); m.member(); {
		switch string(m.key) {
		case "id":
			id = m.value
		case "want":
			want = m.value
		case "queue":
			queue = m.value
		}
	}
	sender, _ := id.asString()
	if !validHolderID(sender) {
		return
	}
	p.ID, p.Want = sender, want.asWant()
	p.First, p.Queue = queue.isArray(), queue.asQueue()
}

// asWant decodes the mode that a waiter wants: Exclusive, Shared, or zero for
// anything else.
func (r raw) asWant() protocol.Mode {
	name, _ := r.asBytes()
	mode, _ := protocol.ParseMode(string(name))
	if mode == protocol.Pending {
		return 0
	}
	return mode
}

package wire

import "github.com/tetherlock/tether/protocol"

// EncodePing is the message that asks every participant of a channel for its
// record. The response channel must be UTF-8, as [ResponseChannel] makes it: in
// any other, each wrong byte becomes U+FFFD and the answers go astray. Without
// an id the ping says nothing of who asks.
func EncodePing(p protocol.Ping) string {
	dst := make([]byte, 0, 512)
	dst = append(dst, `{"message":"ping","response_channel":`...)
	dst = appendString(dst, p.Response)
	if p.ID != "" {
		dst = appendAsker(dst, p)
	}
	return string(append(dst, '}'))
}

// appendAsker adds what a ping says to participants that know tether. The
// others pass over it.
func appendAsker(dst []byte, p protocol.Ping) []byte {
	dst = appendString(append(dst, `,"tether":{"id":`...), p.ID)
	if p.Want == protocol.Exclusive || p.Want == protocol.Shared {
		dst = appendString(append(dst, `,"want":`...), p.Want.String())
	}
	if p.First {
		dst = append(appendWaiters(append(dst, `,"queue":[`...), p.Queue), ']')
	}
	return append(dst, '}')
}

// DecodePing reads a message on a lock's channel. It is a ping when it is a JSON
// object with a non-empty string response_channel, whatever else is in it: the
// participants of other versions answer that, and who does not answer counts as
// frozen. Anything else is not, nor is what is longer than 1 MiB or not UTF-8.
//
// The extension is a hint: what is malformed in it is as if absent, and without
// the holder id of whoever asks all of it is.
func DecodePing(data string) (protocol.Ping, bool) {
	message, ok := object(data)
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
	if p.Response, ok = response.text(); !ok || p.Response == "" {
		return protocol.Ping{}, false
	}
	ext.asker(&p)
	return p, true
}

// asker reads a ping's extension.
func (r raw) asker(p *protocol.Ping) {
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
	sender, _ := id.text()
	if !validHolderID(sender) {
		return
	}
	p.ID, p.Want = sender, want.want()
	p.First, p.Queue = queue.isArray(), queue.queue()
}

// want reads what somebody waits for, zero if it is nothing that one can wait
// for.
func (r raw) want() protocol.Mode {
	name, _ := r.bytes()
	mode, _ := protocol.ParseMode(string(name))
	if mode == protocol.Pending {
		return 0
	}
	return mode
}

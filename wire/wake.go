package wire

import "github.com/tetherlock/tether/protocol"

// A wake is sent by [WakeScript], which puts the rest of the queue between these
// two pieces.
const (
	wakePrefix = `{"message":"wake","tether":{"queue":[`
	wakeSuffix = `]}}`
)

// EncodeWakeReaders returns the wake for all sleeping readers.
func EncodeWakeReaders() string { return `{"message":"wake","tether":{"want":"shared"}}` }

// DecodeWake decodes a message on a [WakeChannel] or a [WaitersChannel]. It is a
// wake if it is a JSON object whose member message is "wake". The extension is a
// hint: a malformed part of it is ignored.
func DecodeWake(data string) (protocol.Wake, bool) {
	message, ok := parseObject(data)
	if !ok {
		return protocol.Wake{}, false
	}
	var kind, ext raw
	for m := message.members(); m.member(); {
		switch string(m.key) {
		case "message":
			kind = m.value
		case "tether":
			ext = m.value
		}
	}
	if name, _ := kind.asBytes(); string(name) != "wake" {
		return protocol.Wake{}, false
	}
	return ext.readWakeExtension(), true
}

// readWakeExtension decodes a wake's extension. A wake for all readers carries
// no queue: each of them would receive a copy of it.
func (r raw) readWakeExtension() protocol.Wake {
	var want, queue raw
	for m := r.members(); m.member(); {
		switch string(m.key) {
		case "want":
			want = m.value
		case "queue":
			queue = m.value
		}
	}
	if want.asWant() == protocol.Shared {
		return protocol.Wake{Readers: true}
	}
	return protocol.Wake{Queue: queue.asQueue()}
}

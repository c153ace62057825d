package wire

import "github.com/tetherlock/tether/protocol"

// Wakes are written in pieces, because the script that sends them decides what
// of the queue travels with which.
const (
	wakeBefore = `{"message":"wake","tether":{"queue":[`
	wakeBehind = `]}}`
)

// EncodeWakeReaders is the wake for all readers that sleep.
func EncodeWakeReaders() string { return `{"message":"wake","tether":{"want":"shared"}}` }

// DecodeWake reads a message on a waiter's own channel or on the waiters'
// channel. It is a wake when it is a JSON object with the message wake; the
// extension is a hint, and what is malformed in it is as if absent.
func DecodeWake(data string) (protocol.Wake, bool) {
	message, ok := object(data)
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
	if name, _ := kind.bytes(); string(name) != "wake" {
		return protocol.Wake{}, false
	}
	return ext.wake(), true
}

// wake reads a wake's extension. One for all readers hands over no queue, or
// each of them would have it.
func (r raw) wake() protocol.Wake {
	var want, queue raw
	for m := r.members(); m.member(); {
		switch string(m.key) {
		case "want":
			want = m.value
		case "queue":
			queue = m.value
		}
	}
	if want.want() == protocol.Shared {
		return protocol.Wake{Readers: true}
	}
	return protocol.Wake{Queue: queue.queue()}
}

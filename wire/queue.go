package wire

import (
	"slices"

	"github.com/tetherlock/tether/protocol"
)

// waiterLen is the length of an encoded waiter, ["<holder id>","x"], with the
// comma after it.
const waiterLen = len(`["`) + holderIDLen + len(`","x"],`)

// appendWaiters appends the luggage of a queue, without the enclosing brackets.
// It leaves out waiters without a valid holder id: decoders drop them, and
// [WakeScript] relies on every waiter having the same length.
func appendWaiters(dst []byte, queue protocol.Queue) []byte {
	luggage := queue.Luggage()
	dst = slices.Grow(dst, len(luggage)*waiterLen)
	start := len(dst)
	for _, w := range luggage {
		if !validHolderID(w.ID) {
			continue
		}
		dst = append(append(dst, `["`...), w.ID...)
		if w.Want == protocol.Shared {
			dst = append(dst, `","s"],`...)
		} else {
			dst = append(dst, `","x"],`...)
		}
	}
	if len(dst) == start {
		return dst
	}
	return dst[:len(dst)-1]
}

// asQueue decodes an array of the waiters that appendWaiters encodes. It drops
// malformed waiters and repeated ones, and stops after MaxLuggage valid ones.
func (r raw) asQueue() protocol.Queue {
	var queue protocol.Queue
	var ids []byte
	var seen map[holderID]bool // a search of the queue would be slow: a message may repeat waiters thousands of times
	for e := r.elements(); len(queue) < protocol.MaxLuggage && e.element(); {
		id, want, ok := e.value.asWaiter()
		if !ok || seen[id] {
			continue
		}
		if queue == nil {
			expected := min(1+len(r)/waiterLen, protocol.MaxLuggage)
			queue, seen = make(protocol.Queue, 0, expected), make(map[holderID]bool, expected)
			ids = make([]byte, 0, expected*holderIDLen)
		}
		seen[id] = true
		queue, ids = append(queue, protocol.Waiter{Want: want}), append(ids, id[:]...)
	}
	all := string(ids) // one allocation for all ids, not one for each
	for i := range queue {
		queue[i].ID = all[i*holderIDLen:][:holderIDLen]
	}
	return queue
}

type holderID [holderIDLen]byte

// asWaiter decodes one waiter of a queue.
func (r raw) asWaiter() (id holderID, want protocol.Mode, ok bool) {
	e := r.elements()
	e.element()
	name, _ := e.value.asBytes()
	e.element()
	letter, _ := e.value.asBytes()
	if e.element() || !validHolderID(string(name)) {
		return holderID{}, 0, false
	}
	switch string(letter) {
	case "x":
		want = protocol.Exclusive
	case "s":
		want = protocol.Shared
	default:
		return holderID{}, 0, false
	}
	return holderID(name), want, true
}

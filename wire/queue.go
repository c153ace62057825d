package wire

import (
	"slices"

	"github.com/tetherlock/tether/protocol"
)

// waiterLen is the length of a waiter as it travels, ["<holder id>","x"], with
// the comma behind it.
const waiterLen = len(`["`) + holderIDLen + len(`","x"],`)

// appendWaiters adds as much of a queue as travels, without brackets around it.
// A waiter without a holder id is left out: nobody would read it, and the script
// that wakes counts on all being of one length.
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

// queue reads what [appendWaiters] writes, with the brackets. Malformed waiters
// are dropped, and those that were named before; what is behind the last that
// may travel is not looked at.
func (r raw) queue() protocol.Queue {
	var queue protocol.Queue
	var ids []byte
	var seen map[holderID]bool // not a search of the queue: a message has room for many doubles
	for e := r.elements(); len(queue) < protocol.MaxLuggage && e.element(); {
		id, want, ok := e.value.waiter()
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
	all := string(ids) // a string for each would be a hundred pieces of memory
	for i := range queue {
		queue[i].ID = all[i*holderIDLen:][:holderIDLen]
	}
	return queue
}

type holderID [holderIDLen]byte

// waiter reads one place in a queue.
func (r raw) waiter() (id holderID, want protocol.Mode, ok bool) {
	e := r.elements()
	e.element()
	name, _ := e.value.bytes()
	e.element()
	letter, _ := e.value.bytes()
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

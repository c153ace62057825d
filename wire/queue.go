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
	var seen map[string]bool // not a search of the queue: a message has room for many doubles
	for e := r.elements(); len(queue) < protocol.MaxLuggage && e.element(); {
		w, ok := e.value.waiter()
		if !ok || seen[w.ID] {
			continue
		}
		if queue == nil {
			expected := min(1+len(r)/waiterLen, protocol.MaxLuggage)
			queue, seen = make(protocol.Queue, 0, expected), make(map[string]bool, expected)
		}
		seen[w.ID] = true
		queue = append(queue, w)
	}
	return queue
}

// waiter reads one place in a queue.
func (r raw) waiter() (protocol.Waiter, bool) {
	e := r.elements()
	e.element()
	id, _ := e.value.text()
	e.element()
	want, _ := e.value.text()
	if e.element() || !validHolderID(id) {
		return protocol.Waiter{}, false
	}
	switch want {
	case "x":
		return protocol.Waiter{ID: id, Want: protocol.Exclusive}, true
	case "s":
		return protocol.Waiter{ID: id, Want: protocol.Shared}, true
	}
	return protocol.Waiter{}, false
}

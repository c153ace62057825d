package wire

import (
	"bytes"
	"slices"
)

// lines is how many lines have been read ahead. No value takes less than one.
func (r *Reader) lines() int {
	return bytes.Count(r.src.buffered(), []byte{'\n'})
}

// elems returns room for the elements of an aggregate.
func (r *Reader) elems(n int) []Value {
	if n > len(r.room) {
		return make([]Value, 0, n)
	}
	elems := r.room[:0:n]
	r.room = r.room[n:]
	return elems
}

// expected is how many elements get room on the word of a header alone.
func (r *Reader) expected(kind Kind) int {
	if r.wanted != nil && len(r.open) == 0 && kind == Map {
		return 2*len(*r.wanted) + 1
	}
	return firstElems
}

// unwanted says whether the value that comes next is that of a key which nobody
// will look up. What stands inside such a value is read like anything else.
func (r *Reader) unwanted() bool {
	if r.wanted == nil || len(r.open) != 1 || r.open[0].kind != Map {
		return false
	}
	last := len(r.open[0].elems) - 1
	return last >= 0 && last%2 == 0 && !slices.Contains(*r.wanted, r.open[0].elems[last].Str)
}

// text makes a string. The words that stand in nearly every frame of a
// subscribed connection cost no memory, nor does a channel that several pushes
// in a row are about.
func (r *Reader) text(b []byte) string {
	switch {
	case r.unwanted():
		return ""
	case string(b) == r.about:
		return r.about
	}
	s := word(b)
	if last := len(r.open) - 1; last >= 0 && r.open[last].kind == Push && len(r.open[last].elems) == 1 {
		r.about = s
	}
	return s
}

func word(b []byte) string {
	switch string(b) {
	case "message":
		return "message"
	case "subscribe":
		return "subscribe"
	case "unsubscribe":
		return "unsubscribe"
	case "OK":
		return "OK"
	case "server":
		return "server"
	case "version":
		return "version"
	case "proto":
		return "proto"
	case "id":
		return "id"
	case "mode":
		return "mode"
	case "standalone":
		return "standalone"
	case "role":
		return "role"
	case "master":
		return "master"
	case "modules":
		return "modules"
	default:
		return string(b)
	}
}

package wire

import (
	"bytes"
	"slices"
)

// lines returns the number of lines in the buffer. There are no more values in it,
// as each takes a line at least.
func (r *Reader) lines() int {
	return bytes.Count(r.src.buffered(), []byte{'\n'})
}

// elems returns an empty slice for n elements. Its capacity ends there, so that an
// aggregate that grows does not write over the elements of the next one.
func (r *Reader) elems(n int) []Value {
	if n > len(r.room) {
		return make([]Value, 0, n)
	}
	elems := r.room[:0:n]
	r.room = r.room[n:]
	return elems
}

// expected returns the largest number of elements to allocate before they arrive.
func (r *Reader) expected(kind Kind) int {
	if r.wanted != nil && len(r.open) == 0 && kind == Map {
		return 2*len(*r.wanted) + 1
	}
	return firstElems
}

// unwanted returns true if the next value belongs to a key that is not wanted. Only
// the value itself is dropped; the elements of one that is an aggregate are read
// like any others.
func (r *Reader) unwanted() bool {
	if r.wanted == nil || len(r.open) != 1 || r.open[0].kind != Map {
		return false
	}
	last := len(r.open[0].elems) - 1
	return last >= 0 && last%2 == 0 && !slices.Contains(*r.wanted, r.open[0].elems[last].Str)
}

// text returns b as a string. It does not allocate for the words that are in nearly
// every frame of a subscribed connection, nor for the channel of the last push.
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

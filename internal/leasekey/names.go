package leasekey

import (
	"strconv"
	"strings"
)

// beside names what belongs to a lease's key. A cluster or a ring must keep it where
// it keeps the key, so its hash tag is that of the name, or else the whole name.
func beside(name, what string) string {
	switch open := strings.IndexByte(name, '{'); {
	case open >= 0 && strings.IndexByte(name[open:], '}') > 1:
		return name + "-" + what
	case strings.Contains(name, "}"):
		// A tag ends at the first brace: {a}b} has the tag a, not a}b.
		return "{" + tagIn(slot(name)) + "}" + name + "-" + what
	default:
		return "{" + name + "}-" + what
	}
}

// releaseChannel is where releases of a lease are told. It is not the channel of
// the presence lock of that name, whose participants take no such message.
func releaseChannel(name string) string { return beside(name, "released") }

// fenceKey is the counter of a lease's tokens.
func fenceKey(name string) string { return beside(name, "fence") }

// slot is the slot in which a cluster keeps a key without a hash tag.
func slot(key string) uint16 {
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ carry*0x1021
		}
	}
	return crc % 16384
}

// tagIn is a hash tag of a slot. The search ends: each slot has one.
func tagIn(want uint16) string {
	for n := 0; ; n++ {
		if tag := strconv.Itoa(n); slot(tag) == want {
			return tag
		}
	}
}

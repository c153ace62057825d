package leasekey

import (
	"strconv"
	"strings"
)

// beside names what belongs to a lease's key. On a cluster or a ring it lives
// where the key does: by the part of the name in braces, or by the whole.
func beside(name, what string) string {
	switch open := strings.IndexByte(name, '{'); {
	case open >= 0 && strings.IndexByte(name[open:], '}') > 1:
		return name + "-" + what
	case strings.Contains(name, "}"):
		// In braces it would be read up to here only.
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

// slot is where a cluster keeps a key that has no part in braces.
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

// tagIn is a text that a cluster keeps in a slot. There is one for each.
func tagIn(want uint16) string {
	for n := 0; ; n++ {
		if tag := strconv.Itoa(n); slot(tag) == want {
			return tag
		}
	}
}

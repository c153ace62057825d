package wire

import "strings"

// IdleName is the connection name of a socket that is subscribed to no lock's
// channel.
const IdleName = "tether-idle"

// ConnName is the connection name of a participant: <channel>-lock-<holder id>.
// Peers find by it whom to disconnect when a participant is counted and does not
// answer.
//
// Redis accepts only the bytes from '!' to '~' in a name. For a channel with any
// other the name is tether-<hash of the channel>-hold-<holder id>, which no other
// channel's plain name can be: that would end in -lock-<holder id>.
func ConnName(channel, holderID string) string {
	return connNameBefore(channel) + holderID
}

// connNameBefore is what stands before the holder id in a connection name.
func connNameBefore(channel string) string {
	if nameable(channel) {
		return channel + "-lock-"
	}
	return "tether-" + hash(channel) + "-hold-"
}

// LegacyConnName is the connection name of every participant up to version 3.2,
// <channel>-lock, or empty if Redis refuses that name.
func LegacyConnName(channel string) string {
	if nameable(channel) {
		return channel + "-lock"
	}
	return ""
}

// ParseConnName says whether a connection's name is that of a participant of a
// channel, and which holder id it bears. Only the whole name counts: a-lock-b is
// a channel of its own, and its participants are none of the channel a.
func ParseConnName(channel, name string) (holderID string, ok bool) {
	at := len(name) - holderIDLen
	if at < 0 || !validHolderID(name[at:]) {
		return "", false
	}
	id := name[at:]
	if nameable(channel) {
		named, ok := strings.CutSuffix(name[:at], "-lock-")
		if !ok || named != channel {
			return "", false
		}
		return id, true
	}
	// The prefix comes first: to hash a long channel for each of a server's
	// connections would take its time.
	if !strings.HasPrefix(name, "tether-") || name != ConnName(channel, id) {
		return "", false
	}
	return id, true
}

// isConnName says whether a name is that of a participant of some channel, in
// either form.
func isConnName(name string) bool {
	at := len(name) - holderIDLen
	if at < 0 || !validHolderID(name[at:]) {
		return false
	}
	if strings.HasSuffix(name[:at], "-lock-") {
		return true
	}
	hashed, named := strings.CutSuffix(name[:at], "-hold-")
	hashed, tether := strings.CutPrefix(hashed, "tether-")
	return named && tether && len(hashed) > holderIDLen &&
		validHolderID(hashed[:holderIDLen]) && validHolderID(hashed[holderIDLen:])
}

const holderIDLen = 32

// validHolderID says whether s has the form of a holder id: 32 lowercase hex
// digits.
func validHolderID(s string) bool {
	if len(s) != holderIDLen {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// nameable says whether Redis accepts s in a connection name.
func nameable(s string) bool {
	for i := range len(s) {
		if s[i] < '!' || s[i] > '~' {
			return false
		}
	}
	return true
}

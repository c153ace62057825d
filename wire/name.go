package wire

import "strings"

// IdleName is the connection name of a socket that is not subscribed to the
// channel of a lock.
const IdleName = "tether-idle"

// SessionName returns the connection name of a session, a socket that many locks are
// on: tether-session-<session id>. It is not the name of a participant of any channel,
// so peers that do not know of sessions never end one.
func SessionName(sessionID string) string { return sessionPrefix + sessionID }

const sessionPrefix = "tether-session-"

// ConnName returns the connection name of a participant:
// <channel>-lock-<holder id>. Peers use it to find the connection of a silent
// participant, which they reap.
//
// Redis accepts only the bytes from '!' to '~' in a name. For a channel with
// other bytes the name is tether-<hash of the channel>-hold-<holder id>. It
// cannot collide with the plain name of another channel, because a plain name
// ends in -lock-<holder id>.
func ConnName(channel, holderID string) string {
	return connNamePrefix(channel) + holderID
}

// connNamePrefix returns the part of a connection name before the holder id.
func connNamePrefix(channel string) string {
	if visibleASCII(channel) {
		return channel + "-lock-"
	}
	return "tether-" + channelHash(channel) + "-hold-"
}

// LegacyConnName returns the connection name of every participant of version
// 3.2 or older: <channel>-lock. It is empty if Redis refuses that name.
func LegacyConnName(channel string) string {
	if visibleASCII(channel) {
		return channel + "-lock"
	}
	return ""
}

// ParseConnName reports whether a connection name is that of a participant of a
// channel, and returns its holder id. It compares the whole name. A prefix is
// not enough: the participants of the channel a-lock-b, whose names start with
// a-lock-, are not participants of the channel a.
func ParseConnName(channel, name string) (holderID string, ok bool) {
	at := len(name) - holderIDLen
	if at < 0 || !validHolderID(name[at:]) {
		return "", false
	}
	id := name[at:]
	if visibleASCII(channel) {
		named, ok := strings.CutSuffix(name[:at], "-lock-")
		if !ok || named != channel {
			return "", false
		}
		return id, true
	}
	// The prefix is compared first, to avoid hashing a long channel for each
	// connection of the server.
	if !strings.HasPrefix(name, "tether-") || name != ConnName(channel, id) {
		return "", false
	}
	return id, true
}

// isConnName reports whether a name has one of the two forms of [ConnName], for
// any channel.
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

// holderIDLen is the length of a holder id, in bytes.
const holderIDLen = 32

// validHolderID reports whether s has the form of a holder id: 32 lowercase hex
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

// visibleASCII reports whether all bytes of s are from '!' to '~', the only ones
// that Redis accepts in a connection name.
func visibleASCII(s string) bool {
	for i := range len(s) {
		if s[i] < '!' || s[i] > '~' {
			return false
		}
	}
	return true
}

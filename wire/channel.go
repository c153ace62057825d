package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf8"
)

// ResponseChannel returns the channel on which the participants answer one
// probe: <channel>-<id>. The id must be 32 lowercase hex digits, and new for
// every probe: with a reused id, late answers to one probe would be counted as
// answers to the next.
//
// A ping is JSON, which carries only UTF-8. If the channel is not UTF-8, the
// name is tether-<hash of the channel>-<id>-reply. It cannot collide with the
// plain name of another channel, because a plain name ends in the id.
func ResponseChannel(channel, id string) string {
	prefix, suffix := affixes(channel)
	return prefix + id + suffix
}

// WakeChannel returns the channel on which one waiter of a lock is woken. It
// has the form of a [ResponseChannel], with the waiter's holder id as the id.
// The waiter is subscribed to it for as long as it sleeps, so the number of
// subscribers tells whether it does.
func WakeChannel(channel, holderID string) string { return ResponseChannel(channel, holderID) }

// WaitersChannel returns the channel that all sleepers of a lock subscribe to,
// so its number of subscribers is the number of sleepers. It has the form of a
// [ResponseChannel], with the first 32 digits of the channel's hash as the id.
func WaitersChannel(channel string) string {
	return ResponseChannel(channel, channelHash(channel)[:holderIDLen])
}

// MarkerChannel returns the channel that a session subscribes to together with a
// lock's channel, and leaves together with it: <channel>-at-<session id>. A connection's
// name cannot tell on which of its many channels a session is; the number of subscribers
// of its marker does.
func MarkerChannel(channel, sessionID string) string { return channel + markerInfix + sessionID }

const markerInfix = "-at-"

// FenceKey returns the key of the counter that a lock's fencing tokens are
// drawn from: <channel>-fence.
func FenceKey(channel string) string { return channel + "-fence" }

// affixes returns what precedes and what follows the id in the names that
// [ResponseChannel] and [WakeChannel] return.
func affixes(channel string) (prefix, suffix string) {
	if utf8.ValidString(channel) {
		return channel + "-", ""
	}
	return "tether-" + channelHash(channel) + "-", "-reply"
}

// channelHash returns the SHA-256 of a channel's name in hex. It replaces the
// channel in names that cannot contain it.
func channelHash(channel string) string {
	sum := sha256.Sum256([]byte(channel))
	return hex.EncodeToString(sum[:])
}

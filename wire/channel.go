package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf8"
)

// ResponseChannel is the channel on which one probe of a lock's channel wants
// its answers: <channel>-<id>. The id must be new for every probe, 32 lowercase
// hex digits.
//
// A ping is JSON and can only carry UTF-8. When the channel is not UTF-8 the
// name is tether-<hash of the channel>-<id>-reply, which no other channel's
// plain name can be: that would end in the id.
func ResponseChannel(channel, id string) string {
	before, behind := affixes(channel)
	return before + id + behind
}

// WakeChannel is the channel on which a waiter of a lock is woken. It has the
// form of a [ResponseChannel], with the waiter's holder id as the id, and lasts
// for as long as the waiter sleeps.
func WakeChannel(channel, holderID string) string { return ResponseChannel(channel, holderID) }

// WaitersChannel is the channel of all who wait for a lock. Its subscribers are
// the number of sleepers. It has the form of a [ResponseChannel] as well, with
// the beginning of the channel's hash as the id.
func WaitersChannel(channel string) string {
	return ResponseChannel(channel, hash(channel)[:holderIDLen])
}

// FenceKey is the key of the counter that a lock's fencing tokens are drawn
// from, <channel>-fence.
func FenceKey(channel string) string { return channel + "-fence" }

// affixes are what stands before and behind the id in the name of a channel
// that belongs to a lock's channel.
func affixes(channel string) (before, behind string) {
	if utf8.ValidString(channel) {
		return channel + "-", ""
	}
	return "tether-" + hash(channel) + "-", "-reply"
}

// hash stands for a channel in names that cannot hold the channel itself.
func hash(channel string) string {
	sum := sha256.Sum256([]byte(channel))
	return hex.EncodeToString(sum[:])
}

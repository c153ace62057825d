package wire

import (
	"crypto/sha1"
	"encoding/hex"
)

// ProbeScript counts a channel's subscribers and pings them, atomically. In two
// steps it would be unsafe: a holder that is counted leaves, another participant
// joins, and its answer completes the count in place of the holder's.
//
// The arguments are the channel and the ping. The channel is not passed as a
// key, so that a user of the lock needs no permission for keys. The reply is the
// count of NUMSUB. The count of PUBLISH would not do: it includes the
// subscribers of patterns, which are not participants.
const ProbeScript = `local n = redis.call('PUBSUB', 'NUMSUB', ARGV[1])[2]
redis.call('PUBLISH', ARGV[1], ARGV[2])
return n`

// FenceScript is [ProbeScript] with a fencing token, which it draws from the
// counter in its key. Without a ping it only counts, and draws a token only if
// the count is one. The reply is the count, and the token or null.
//
// A token is the counter's next number, or the server's time in microseconds if
// that is larger. So tokens rise even if the counter is lost.
//
//   - The token is a string, because Lua's numbers are exact only up to 2^53.
//   - The time is formatted explicitly, because how Lua's numbers become strings
//     depends on the server.
//   - The ping comes last. If drawing fails, the caller gives up, and the others
//     would answer a participant that has left.
//   - The error of the draw is returned and not raised, because Redis 6 would
//     replace the code of a raised error.
const FenceScript = `local n = redis.call('PUBSUB', 'NUMSUB', ARGV[1])[2]
local token = false
if ARGV[2] or n == 1 then
  local drawn = redis.pcall('INCR', KEYS[1])
  if type(drawn) == 'table' then return drawn end
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  if drawn < now then redis.call('SET', KEYS[1], string.format('%.0f', now)) end
  token = redis.call('GET', KEYS[1])
end
if ARGV[2] then redis.call('PUBLISH', ARGV[1], ARGV[2]) end
return {n, token}`

// WakeScript walks down a queue until it has woken at least one sleeper: either
// one writer, or all readers up to the next writer. Each wake carries the rest
// of the queue. Waiters that are not subscribed to their wake channel are
// skipped. The reply is the number of sleepers woken.
//
// The arguments are the prefix and the suffix of a wake channel's name around
// the holder id, the prefix and the suffix of a wake around its queue, and the
// queue. Every waiter has 41 bytes with its comma, so the script parses nothing,
// and the rest of the queue is a suffix of the argument. Whether a waiter sleeps
// is decided by NUMSUB. The count of PUBLISH would not do: with a client that is
// subscribed to the pattern *, every waiter would seem to sleep.
const WakeScript = `local queue, at, woken = ARGV[5], 1, 0
while woken == 0 and at <= #queue do
  local first, wake = at, nil
  local want = string.sub(queue, at + 37, at + 37)
  repeat at = at + 41 until want == 'x' or string.sub(queue, at + 37, at + 37) ~= 's'
  for i = first, at - 1, 41 do
    local channel = ARGV[1] .. string.sub(queue, i + 2, i + 33) .. ARGV[2]
    local n = redis.call('PUBSUB', 'NUMSUB', channel)[2]
    if n > 0 then
      wake = wake or ARGV[3] .. string.sub(queue, at) .. ARGV[4]
      redis.call('PUBLISH', channel, wake)
      woken = woken + n
    end
  end
end
return woken`

// script is the text of a script and its SHA-1, which EVALSHA takes.
type script struct{ text, hash string }

var (
	probeScript = newScript(ProbeScript)
	fenceScript = newScript(FenceScript)
	wakeScript  = newScript(WakeScript)
)

func newScript(text string) script {
	sum := sha1.Sum([]byte(text))
	return script{text, hex.EncodeToString(sum[:])}
}

// append appends the command that runs the script: EVAL with the text, or
// EVALSHA with the hash. The first of args is the number of keys.
func (s script) append(dst []byte, withText bool, args ...string) []byte {
	command, body := "EVALSHA", s.hash
	if withText {
		command, body = "EVAL", s.text
	}
	dst = appendHeader(dst, '*', 2+len(args))
	dst = appendBulk(dst, '$', command)
	dst = appendBulk(dst, '$', body)
	for _, arg := range args {
		dst = appendBulk(dst, '$', arg)
	}
	return dst
}

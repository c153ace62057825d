package wire

import (
	"crypto/sha1"
	"encoding/hex"
)

// ProbeScript counts a channel's subscribers and pings them in one step: who
// joins between a count and a ping could stand in for a holder that leaves.
// The channel is an argument and no key, so that a user of the lock needs no
// permission for keys. The reply is NUMSUB's and not PUBLISH's, which counts
// the subscribers of patterns as well, who are no participants.
const ProbeScript = `local n = redis.call('PUBSUB', 'NUMSUB', ARGV[1])[2]
redis.call('PUBLISH', ARGV[1], ARGV[2])
return n`

// FenceScript is ProbeScript for who wants a fencing token, which is drawn from
// the key. Without a ping it only counts, and draws if the count is one.
//
// A token is the counter's next number, or the server's time in microseconds if
// that is larger: so tokens rise also when the counter is lost. The reply is the
// count and the token, or null for none. The token is a string, because Lua's
// numbers are exact up to 2^53 only. The time is formatted, or how it is written
// were up to the server. The ping comes last: an error of the draw must not make
// others answer somebody who has gone. That error is returned and not raised, or
// Redis 6 would hide its code.
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

// WakeScript goes down a queue until it has woken somebody: a writer alone, or
// all readers up to the next writer together. Who is woken is handed everybody
// behind. The reply is how many were woken.
//
// The arguments are what stands before and behind the holder id in the name of
// a wake channel, what stands before and behind the queue in a wake, and the
// queue. A waiter takes 41 bytes of it, so that nothing has to be parsed and the
// rest is a suffix. Whether somebody sleeps says NUMSUB, for the reason given at
// ProbeScript: to PUBLISH a monitor of all channels would be every waiter.
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

// script is a script with the hash that the server knows it by.
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

// append adds the command that runs the script, by its hash or with its text.
// The first argument is how many keys there are.
func (s script) append(dst []byte, text bool, args ...string) []byte {
	command, body := "EVALSHA", s.hash
	if text {
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

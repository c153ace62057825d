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

var probeSHA = func() string {
	sum := sha1.Sum([]byte(ProbeScript))
	return hex.EncodeToString(sum[:])
}()

// AppendHello adds HELLO 3, with AUTH unless login is nil, and with SETNAME
// unless name is empty.
func AppendHello(dst []byte, login *Login, name string) []byte {
	args := append(make([]string, 0, 7), "HELLO", "3")
	if login != nil && login.Password != "" {
		args = append(args, "AUTH", login.user(), login.Password)
	}
	if name != "" {
		args = append(args, "SETNAME", name)
	}
	return AppendCommand(dst, args...)
}

// AppendAuth adds AUTH.
func AppendAuth(dst []byte, login Login) []byte {
	return AppendCommand(dst, "AUTH", login.user(), login.Password)
}

// user is the name that the server knows the login by.
func (l Login) user() string {
	if l.User == "" {
		return "default"
	}
	return l.User
}

// AppendProbe adds the script that counts and pings a channel, by its hash or
// with its text.
func AppendProbe(dst []byte, channel, ping string, text bool) []byte {
	if text {
		return AppendCommand(dst, "EVAL", ProbeScript, "0", channel, ping)
	}
	return AppendCommand(dst, "EVALSHA", probeSHA, "0", channel, ping)
}

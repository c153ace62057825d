package wire

import (
	"strconv"

	"github.com/tetherlock/tether/protocol"
)

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
	return probeScript.append(dst, text, "0", channel, ping)
}

// AppendFence adds the script that counts a channel, draws a fencing token, and
// pings unless the ping is empty, by its hash or with its text.
func AppendFence(dst []byte, channel, ping string, text bool) []byte {
	if ping == "" {
		return fenceScript.append(dst, text, "1", FenceKey(channel), channel)
	}
	return fenceScript.append(dst, text, "1", FenceKey(channel), channel, ping)
}

// AppendWake adds the script that wakes the first of a queue that sleep, by its
// hash or with its text.
func AppendWake(dst []byte, channel string, queue protocol.Queue, text bool) []byte {
	before, behind := affixes(channel)
	waiters := appendWaiters(nil, queue)
	return wakeScript.append(dst, text, "0", before, behind, wakeBefore, wakeBehind, string(waiters))
}

// AppendCall adds the wake for all readers that sleep.
func AppendWakeReaders(dst []byte, channel string) []byte {
	return AppendCommand(dst, "PUBLISH", WaitersChannel(channel), EncodeWakeReaders())
}

// AppendCount adds the count of a channel's subscribers.
func AppendCount(dst []byte, channel string) []byte {
	return AppendCommand(dst, "PUBSUB", "NUMSUB", channel)
}

// AppendLook adds the count of a channel's subscribers and of those that sleep.
func AppendPoll(dst []byte, channel string) []byte {
	return AppendCommand(dst, "PUBSUB", "NUMSUB", channel, WaitersChannel(channel))
}

// AppendListening adds the count of those who listen on the wake channels of a
// queue, in its order.
func AppendCountWaiters(dst []byte, channel string, queue protocol.Queue) []byte {
	before, behind := affixes(channel)
	args := append(make([]string, 0, 2+len(queue)), "PUBSUB", "NUMSUB")
	for _, w := range queue {
		args = append(args, before+w.ID+behind)
	}
	return AppendCommand(dst, args...)
}

// AppendList adds the list of the server's subscribed clients, which
// [ParseClients] reads.
func AppendList(dst []byte) []byte { return AppendCommand(dst, "CLIENT", "LIST", "TYPE", "pubsub") }

// AppendKill adds the end of the client with this number.
func AppendKill(dst []byte, num int64) []byte {
	return AppendCommand(dst, "CLIENT", "KILL", "ID", strconv.FormatInt(num, 10))
}

// AppendSelect adds the choice of a database.
func AppendSelect(dst []byte, db int) []byte {
	return AppendCommand(dst, "SELECT", strconv.Itoa(db))
}

package wire

import (
	"strconv"

	"github.com/tetherlock/tether/protocol"
)

// AppendHello appends HELLO 3, with AUTH if login has a password, and with
// SETNAME unless name is empty.
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

// AppendAuth appends AUTH.
func AppendAuth(dst []byte, login Login) []byte {
	return AppendCommand(dst, "AUTH", login.user(), login.Password)
}

// user returns the ACL user of the login. Without one, Redis means "default".
func (l Login) user() string {
	if l.User == "" {
		return "default"
	}
	return l.User
}

// AppendProbe appends a call of [ProbeScript]: by its text if withText is true
// (EVAL), by its hash otherwise (EVALSHA).
func AppendProbe(dst []byte, channel, ping string, withText bool) []byte {
	return probeScript.append(dst, withText, "0", channel, ping)
}

// AppendFence appends a call of [FenceScript]: by its text if withText is true
// (EVAL), by its hash otherwise (EVALSHA). With an empty ping the script only
// counts.
func AppendFence(dst []byte, channel, ping string, withText bool) []byte {
	if ping == "" {
		return fenceScript.append(dst, withText, "1", FenceKey(channel), channel)
	}
	return fenceScript.append(dst, withText, "1", FenceKey(channel), channel, ping)
}

// AppendWake appends a call of [WakeScript] with the luggage of the queue: by
// its text if withText is true (EVAL), by its hash otherwise (EVALSHA).
func AppendWake(dst []byte, channel string, queue protocol.Queue, withText bool) []byte {
	prefix, suffix := affixes(channel)
	waiters := appendWaiters(nil, queue)
	return wakeScript.append(dst, withText, "0", prefix, suffix, wakePrefix, wakeSuffix, string(waiters))
}

// AppendWakeReaders appends the PUBLISH that wakes all sleeping readers.
func AppendWakeReaders(dst []byte, channel string) []byte {
	return AppendCommand(dst, "PUBLISH", WaitersChannel(channel), EncodeWakeReaders())
}

// AppendCount appends the command that counts a channel's subscribers.
func AppendCount(dst []byte, channel string) []byte {
	return AppendCommand(dst, "PUBSUB", "NUMSUB", channel)
}

// AppendPoll appends a sleeper's poll: the command that counts the subscribers
// of a channel and of its [WaitersChannel], in this order.
func AppendPoll(dst []byte, channel string) []byte {
	return AppendCommand(dst, "PUBSUB", "NUMSUB", channel, WaitersChannel(channel))
}

// AppendCountWaiters appends the command that counts the subscribers of each
// waiter's wake channel, in the order of the queue. A waiter that is not
// subscribed to its wake channel no longer sleeps.
func AppendCountWaiters(dst []byte, channel string, queue protocol.Queue) []byte {
	prefix, suffix := affixes(channel)
	args := append(make([]string, 0, 2+len(queue)), "PUBSUB", "NUMSUB")
	for _, w := range queue {
		args = append(args, prefix+w.ID+suffix)
	}
	return AppendCommand(dst, args...)
}

// AppendList appends the command that lists the server's subscribed clients.
// [ParseClients] parses the reply.
func AppendList(dst []byte) []byte { return AppendCommand(dst, "CLIENT", "LIST", "TYPE", "pubsub") }

// AppendKill appends the command that ends a connection. num is [Client.Num].
func AppendKill(dst []byte, num int64) []byte {
	return AppendCommand(dst, "CLIENT", "KILL", "ID", strconv.FormatInt(num, 10))
}

// AppendSelect appends SELECT.
func AppendSelect(dst []byte, db int) []byte {
	return AppendCommand(dst, "SELECT", strconv.Itoa(db))
}

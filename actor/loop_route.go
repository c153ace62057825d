package actor

import (
	"slices"
	"strconv"

	"github.com/tetherlock/tether/wire"
)

// router matches the frames of one stream with the commands that were written:
// pushes by channel, replies first in, first out.
type router struct {
	unanswered []sent // in the order in which they were written
	// The last inputs of their kind, for reuseLast: most are about one channel.
	subscribed, unsubscribed Input
}

// Inputs of nearly every attempt. Made anew, each would be an allocation.
var (
	countedOne    Input = Counted{N: 1}
	greetedMaster Input = Greeted{Role: "master", Mode: "standalone"}
)

// sent is a command that was written.
type sent struct {
	op   Op
	text bool // a script was sent by its text
}

func (t *router) sent(c Command) { t.unanswered = append(t.unanswered, sent{c.Op, c.Text}) }

// awaits reports whether a command is unanswered.
func (t *router) awaits() bool { return len(t.unanswered) > 0 }

// shed frees the memory of a router that awaits nothing.
func (t *router) shed() { t.unanswered = nil }

// channels are the lock's channel, the waiters' channel and the wake channel.
// Every other channel on the socket is a response channel.
type channels struct{ channel, waiters, wake string }

// input turns a frame into an input, or into nil for a push that means nothing to
// a lock. After an error it is not known which reply belongs to which command,
// and the socket must be closed.
func (t *router) input(n channels, v wire.Value) (Input, error) {
	if v.Kind == wire.Push {
		return t.push(n, v), nil
	}
	c, ok := t.reply(v.IsError())
	if !ok {
		return nil, &Fault{Kind: Transient, Message: "a reply that nobody asked for"}
	}
	if v.IsError() {
		return Failed{Command: c.op, Text: c.text, Message: v.Text()}, nil
	}
	if in := parseReply(n.channel, c.op, v); in != nil {
		return in, nil
	}
	return nil, &Fault{Kind: Unsupported, Command: c.op.String(), Message: "a reply of an unexpected kind"}
}

// reply removes the command that a reply belongs to. A SUBSCRIBE or UNSUBSCRIBE
// has no reply unless it is refused; the error has its place among the replies.
func (t *router) reply(refused bool) (sent, bool) {
	i := slices.IndexFunc(t.unanswered, func(c sent) bool { return refused || !c.op.pushed() })
	if i < 0 {
		return sent{}, false
	}
	c := t.unanswered[i]
	t.unanswered = slices.Delete(t.unanswered, i, i+1)
	return c, true
}

func (t *router) push(n channels, v wire.Value) Input {
	if len(v.Elems) != 3 {
		return nil
	}
	about := v.Elems[1].Text()
	switch v.Elems[0].Text() {
	case "message":
		return message(n, about, v.Elems[2].Text())
	case "subscribe":
		t.confirm(Subscribe)
		return reuseLast(&t.subscribed, Subscribed{Channel: about})
	case "unsubscribe":
		t.confirm(Unsubscribe)
		return reuseLast(&t.unsubscribed, Unsubscribed{Channel: about})
	}
	return nil
}

// reuseLast returns an input. If it equals the last one, it returns that and so
// allocates nothing.
func reuseLast[T interface {
	comparable
	Input
}](last *Input, in T) Input {
	if *last != Input(in) {
		*last = in
	}
	return *last
}

// confirm removes the command that a push confirms, the oldest of its kind.
func (t *router) confirm(op Op) {
	if i := slices.IndexFunc(t.unanswered, func(c sent) bool { return c.op == op }); i >= 0 {
		t.unanswered = slices.Delete(t.unanswered, i, i+1)
	}
}

// message reads a published message. A malformed one is ignored, but for those on
// a response channel: there it counts as the answer of a legacy participant.
func message(n channels, about, payload string) Input {
	switch about {
	case n.channel:
		if p, ok := wire.DecodePing(payload); ok {
			return Pinged{Ping: p}
		}
	case n.wake, n.waiters:
		if w, ok := wire.DecodeWake(payload); ok && w.Readers == (about == n.waiters) {
			return Woken{Wake: w}
		}
	default:
		record, queue := wire.DecodeRecord(payload)
		return Answered{Response: about, Record: record, Queue: queue}
	}
	return nil
}

// parseReply reads the reply to a command, nil if it is malformed.
func parseReply(channel string, op Op, v wire.Value) Input {
	switch op {
	case Count:
		if numsub(v, 1) {
			return counted(subscribers(v, 0))
		}
	case Poll:
		if numsub(v, 2) {
			return Polled{N: subscribers(v, 0), Sleepers: subscribers(v, 1)}
		}
	case CountWaiters:
		if n := len(v.Elems) / 2; numsub(v, n) {
			return waitersCounted(v, n)
		}
	case CountAndDraw:
		if n, token, ok := countAndToken(v); ok {
			return Counted{N: n, Token: token}
		}
	case ProbeAndDraw:
		if n, token, ok := countAndToken(v); ok {
			return Probed{N: n, Token: token}
		}
	case List:
		if v.Kind == wire.BulkString || v.Kind == wire.Verbatim {
			return Listed{Connections: connections(channel, v.Text())}
		}
	case Hello:
		if v.Kind == wire.Map || v.Kind == wire.Array {
			return greeted(v)
		}
	case Login, Auth, Select, Answer, SelfPing, WakeReaders:
		return Done{}
	case Probe, Wake, Kill:
		if v.Kind == wire.Integer {
			return integer(op, int(v.Int))
		}
	}
	return nil
}

func counted(n int) Input {
	if n == 1 {
		return countedOne
	}
	return Counted{N: n}
}

func greeted(v wire.Value) Input {
	role, _ := v.Lookup("role")
	mode, _ := v.Lookup("mode")
	if g := (Greeted{Role: role.Text(), Mode: mode.Text()}); g != greetedMaster {
		return g
	}
	return greetedMaster
}

func integer(op Op, n int) Input {
	switch op {
	case Wake:
		return Waked{N: n}
	case Kill:
		return Killed{N: n}
	default:
		return Probed{N: n}
	}
}

// numsub reports whether a value is the reply of PUBSUB NUMSUB for a number of
// channels.
func numsub(v wire.Value, channels int) bool {
	if len(v.Elems) != 2*channels {
		return false
	}
	for i := range channels {
		if v.Elems[2*i+1].Kind != wire.Integer {
			return false
		}
	}
	return true
}

// subscribers returns the count of one channel in the reply of PUBSUB NUMSUB.
func subscribers(v wire.Value, channel int) int { return int(v.Elems[2*channel+1].Int) }

func waitersCounted(v wire.Value, channels int) Input {
	counts := make([]int, channels)
	for i := range counts {
		counts[i] = subscribers(v, i)
	}
	return WaitersCounted{Counts: counts}
}

// countAndToken reads the reply of a fencing script: the count, and the token, 0
// if none was drawn.
func countAndToken(v wire.Value) (n int, token int64, ok bool) {
	if len(v.Elems) == 0 || v.Elems[0].Kind != wire.Integer {
		return 0, 0, false
	}
	if len(v.Elems) > 1 && v.Elems[1].Kind == wire.BulkString {
		token, _ = strconv.ParseInt(v.Elems[1].Text(), 10, 64)
	}
	return int(v.Elems[0].Int), token, true
}

func connections(channel, list string) []Connection {
	var all []Connection
	for _, c := range wire.ParseClients(channel, list) {
		all = append(all, Connection{Num: c.Num, ID: c.HolderID, Legacy: c.Legacy, Addr: c.Addr})
	}
	return all
}

// encode appends a command to dst as it is written to the socket.
func (r *runner) encode(dst []byte, c Command) []byte {
	channel := r.cfg.Channel
	switch c.Op {
	case Login:
		return wire.AppendHello(dst, &r.socket.Login, r.name(c.Naming))
	case Hello:
		return wire.AppendHello(dst, nil, r.name(c.Naming))
	case Auth:
		return wire.AppendAuth(dst, r.socket.Login)
	case Subscribe, Unsubscribe:
		return wire.AppendCommand(dst, c.Op.String(), c.Channel)
	case Select:
		return wire.AppendSelect(dst, r.cfg.DB)
	case Count:
		return wire.AppendCount(dst, channel)
	case CountAndDraw:
		return wire.AppendFence(dst, channel, "", c.Text)
	case ProbeAndDraw:
		return wire.AppendFence(dst, channel, wire.EncodePing(*c.Ping), c.Text)
	case Poll:
		return wire.AppendPoll(dst, channel)
	case CountWaiters:
		return wire.AppendCountWaiters(dst, channel, c.Queue)
	case Probe:
		return wire.AppendProbe(dst, channel, wire.EncodePing(*c.Ping), c.Text)
	case SelfPing:
		return wire.AppendCommand(dst, "PUBLISH", channel, wire.EncodePing(*c.Ping))
	case Answer:
		return wire.AppendCommand(dst, "PUBLISH", c.Channel, wire.EncodeRecord(*c.Record, c.Queue))
	case Wake:
		return wire.AppendWake(dst, channel, c.Queue, c.Text)
	case WakeReaders:
		return wire.AppendWakeReaders(dst, channel)
	case List:
		return wire.AppendList(dst)
	case Kill:
		return wire.AppendKill(dst, c.Num)
	}
	return dst
}

// name returns the connection's name that a HELLO sets, empty for none.
func (r *runner) name(n Naming) string {
	switch n {
	case LockName:
		if r.lockName == "" {
			r.lockName = wire.ConnName(r.cfg.Channel, r.socket.ID)
		}
		return r.lockName
	case IdleName:
		return wire.IdleName
	case KeepName:
	}
	return ""
}

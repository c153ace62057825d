package actor

import (
	"slices"

	"github.com/tetherlock/tether/wire"
)

// router matches the frames of one stream with the commands that were written:
// pushes by channel, replies first in, first out.
type router struct{ waiting []Op }

func (t *router) sent(c Command) { t.waiting = append(t.waiting, c.Op) }

// input turns a frame into an input, or nil for a frame that is for nobody. An
// error means that the stream cannot be followed any longer.
func (t *router) input(channel string, v wire.Value) (Input, error) {
	if v.Kind == wire.Push {
		return t.push(channel, v), nil
	}
	op, ok := t.reply(v.IsError())
	if !ok {
		return nil, &Fault{Kind: Transient, Message: "a reply that nobody asked for"}
	}
	if v.IsError() {
		return Failed{Command: op, Message: v.Text()}, nil
	}
	return parse(op, v)
}

// reply takes the command that a reply belongs to. A subscribe has no reply
// unless it is refused, and then its error takes a place among the replies.
func (t *router) reply(refused bool) (Op, bool) {
	i := slices.IndexFunc(t.waiting, func(op Op) bool { return refused || !op.pushed() })
	if i < 0 {
		return 0, false
	}
	op := t.waiting[i]
	t.waiting = slices.Delete(t.waiting, i, i+1)
	return op, true
}

func (t *router) push(channel string, v wire.Value) Input {
	if len(v.Elems) != 3 {
		return nil
	}
	about := v.Elems[1].Text()
	switch v.Elems[0].Text() {
	case "message":
		return message(channel, about, v.Elems[2].Text())
	case "subscribe":
		t.confirm(Subscribe)
		return Subscribed{Channel: about}
	case "unsubscribe":
		t.confirm(Unsubscribe)
		return Unsubscribed{Channel: about}
	}
	return nil
}

// confirm takes the first command that a push confirms.
func (t *router) confirm(op Op) {
	if i := slices.Index(t.waiting, op); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
}

func message(channel, about, payload string) Input {
	if about != channel {
		return Answered{Response: about, Record: wire.DecodeRecord(payload)}
	}
	if response, ok := wire.DecodePing(payload); ok {
		return Pinged{Response: response}
	}
	return nil // junk, which hurts nobody
}

// parse reads the reply to a command.
func parse(op Op, v wire.Value) (Input, error) {
	switch op {
	case Count:
		if len(v.Elems) == 2 && v.Elems[1].Kind == wire.Integer {
			return Counted{N: int(v.Elems[1].Int)}, nil
		}
	case Probe, LoadProbe:
		if v.Kind == wire.Integer {
			return Probed{N: int(v.Int)}, nil
		}
	case Hello:
		if v.Kind == wire.Map || v.Kind == wire.Array {
			role, _ := v.Lookup("role")
			mode, _ := v.Lookup("mode")
			return Greeted{Role: role.Text(), Mode: mode.Text()}, nil
		}
	case Login, Auth, Answer:
		return Done{}, nil
	}
	return nil, &Fault{Kind: Unsupported, Command: op.String(), Message: "a reply of an unexpected kind"}
}

// encode adds a command to what is to be written.
func (r *runner) encode(dst []byte, c Command) []byte {
	switch c.Op {
	case Login:
		return wire.AppendHello(dst, &r.socket.Login, r.name(c.Naming))
	case Hello:
		return wire.AppendHello(dst, nil, r.name(c.Naming))
	case Auth:
		return wire.AppendAuth(dst, r.socket.Login)
	case Subscribe, Unsubscribe:
		return wire.AppendCommand(dst, c.Op.String(), c.Channel)
	case Count:
		return wire.AppendCommand(dst, "PUBSUB", "NUMSUB", r.channel)
	case Probe, LoadProbe:
		return wire.AppendProbe(dst, r.channel, wire.EncodePing(c.Channel), c.Op == LoadProbe)
	case Answer:
		return wire.AppendCommand(dst, "PUBLISH", c.Channel, wire.EncodeRecord(c.Record))
	}
	return dst
}

func (r *runner) name(n Naming) string {
	switch n {
	case LockName:
		return wire.ConnName(r.channel, r.socket.ID)
	case IdleName:
		return wire.IdleName
	case KeepName:
	}
	return ""
}

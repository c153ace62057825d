package tethertest

import (
	"maps"
	"slices"

	"github.com/tetherlock/tether/wire"
)

func bulk(s string) wire.Value { return wire.Value{Kind: wire.BulkString, Str: s} }

func number(n int) wire.Value { return wire.Value{Kind: wire.Integer, Int: int64(n)} }

func push(elems ...wire.Value) wire.Value { return wire.Value{Kind: wire.Push, Elems: elems} }

// subscribe adds channels or patterns. A push confirms each; there is no other
// reply.
func subscribe(kind string, set func(*client) map[string]bool) commandFunc {
	return func(_ *engine, c *client, args []string) (wire.Value, bool) {
		if len(args) == 0 {
			return wrongNumber(kind), true
		}
		for _, name := range args {
			set(c)[name] = true
			c.reply(push(bulk(kind), bulk(name), number(len(c.channels)+len(c.patterns))))
		}
		return wire.Value{}, false
	}
}

// unsubscribe removes channels or patterns, or all of them without arguments.
func unsubscribe(kind string, set func(*client) map[string]bool) commandFunc {
	return func(_ *engine, c *client, args []string) (wire.Value, bool) {
		if len(args) == 0 {
			args = slices.Sorted(maps.Keys(set(c)))
		}
		for _, name := range args {
			delete(set(c), name)
			c.reply(push(bulk(kind), bulk(name), number(len(c.channels)+len(c.patterns))))
		}
		if len(args) == 0 {
			c.reply(push(bulk(kind), wire.Value{}, number(len(c.channels)+len(c.patterns))))
		}
		return wire.Value{}, false
	}
}

func channelsOf(c *client) map[string]bool { return c.channels }

func patternsOf(c *client) map[string]bool { return c.patterns }

// publish delivers a message to the clients in the order of their ids.
func publish(e *engine, _ *client, args []string) (wire.Value, bool) {
	if len(args) != 2 {
		return wrongNumber("publish"), true
	}
	n := 0
	for _, id := range slices.Sorted(maps.Keys(e.clients)) {
		c := e.clients[id]
		if c.channels[args[0]] {
			c.reply(push(bulk("message"), bulk(args[0]), bulk(args[1])))
			n++
		}
		for _, pattern := range slices.Sorted(maps.Keys(c.patterns)) {
			if glob(pattern, args[0]) {
				c.reply(push(bulk("pmessage"), bulk(pattern), bulk(args[0]), bulk(args[1])))
				n++
			}
		}
	}
	return number(n), true
}

func (e *engine) subscribers(channel string) int {
	n := 0
	for _, c := range e.clients {
		if c.channels[channel] {
			n++
		}
	}
	return n
}

func pubsub(e *engine, _ *client, args []string) (wire.Value, bool) {
	if len(args) == 0 {
		return wrongNumber("pubsub"), true
	}
	rest := args[1:]
	switch sub := upper(args[0]); {
	case sub == "NUMSUB":
		return e.numSub(rest), true
	case sub == "NUMPAT" && len(rest) > 0:
		return wrongNumber("pubsub|numpat"), true
	case sub == "NUMPAT":
		return number(len(e.union(patternsOf))), true
	case sub == "CHANNELS" && len(rest) > 1:
		return fail("ERR unknown subcommand or wrong number of arguments for '%s'. Try PUBSUB HELP.", args[0])
	case sub == "CHANNELS":
		return e.activeChannels(rest), true
	}
	return unknownSubcommand("PUBSUB", args[0]), true
}

func (e *engine) numSub(channels []string) wire.Value {
	reply := wire.Value{Kind: wire.Array}
	for _, channel := range channels {
		reply.Elems = append(reply.Elems, bulk(channel), number(e.subscribers(channel)))
	}
	return reply
}

// activeChannels lists the channels that have subscribers, or those that match a
// pattern.
func (e *engine) activeChannels(pattern []string) wire.Value {
	reply := wire.Value{Kind: wire.Array}
	for _, channel := range slices.Sorted(maps.Keys(e.union(channelsOf))) {
		if len(pattern) == 0 || glob(pattern[0], channel) {
			reply.Elems = append(reply.Elems, bulk(channel))
		}
	}
	return reply
}

// union returns the channels or the patterns that have subscribers.
func (e *engine) union(set func(*client) map[string]bool) map[string]bool {
	union := map[string]bool{}
	for _, c := range e.clients {
		maps.Copy(union, set(c))
	}
	return union
}

// glob reports whether s matches a pattern of Redis: *, ?, [a-z], [^a], and \
// before a literal character.
func glob(pattern, s string) bool {
	for pattern != "" {
		switch pattern[0] {
		case '*':
			for i := len(s); i >= 0; i-- {
				if glob(pattern[1:], s[i:]) {
					return true
				}
			}
			return false
		case '[':
			if s == "" {
				return false
			}
			rest, ok := matchClass(pattern[1:], s[0])
			if !ok {
				return false
			}
			pattern, s = rest, s[1:]
			continue
		case '\\':
			if len(pattern) > 1 {
				pattern = pattern[1:]
			}
		case '?':
			if s == "" {
				return false
			}
			pattern, s = pattern[1:], s[1:]
			continue
		}
		if s == "" || s[0] != pattern[0] {
			return false
		}
		pattern, s = pattern[1:], s[1:]
	}
	return s == ""
}

// matchClass reports whether a byte is in a character class. pattern starts after
// the opening bracket, rest after the closing one.
func matchClass(pattern string, c byte) (rest string, ok bool) {
	not := pattern != "" && pattern[0] == '^'
	if not {
		pattern = pattern[1:]
	}
	found := false
	for pattern != "" && pattern[0] != ']' {
		switch {
		case pattern[0] == '\\' && len(pattern) > 1:
			found = found || pattern[1] == c
			pattern = pattern[2:]
		case len(pattern) > 2 && pattern[1] == '-':
			low, high := min(pattern[0], pattern[2]), max(pattern[0], pattern[2])
			found = found || low <= c && c <= high
			pattern = pattern[3:]
		default:
			found = found || pattern[0] == c
			pattern = pattern[1:]
		}
	}
	if pattern != "" {
		pattern = pattern[1:]
	}
	return pattern, found != not
}

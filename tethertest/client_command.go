package tethertest

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tetherlock/tether/wire"
)

func clientCommand(e *engine, c *client, args []string) (wire.Value, bool) {
	if len(args) == 0 {
		return wrongNumber("client"), true
	}
	sub, args := upper(args[0]), args[1:]
	c.last = "client|" + strings.ToLower(sub)
	switch {
	case sub == "SETNAME" && len(args) == 1:
		if !validName(args[0]) {
			return fail(msgName)
		}
		c.name = args[0]
		return ok()
	case sub == "GETNAME" && len(args) == 0:
		if c.name == "" {
			return wire.Value{}, true
		}
		return bulk(c.name), true
	case sub == "ID" && len(args) == 0:
		return number(c.id), true
	case sub == "INFO" && len(args) == 0:
		return bulk(c.describe() + "\n"), true
	case sub == "SETINFO" && len(args) == 2, sub == "NO-EVICT" && len(args) == 1, sub == "NO-TOUCH" && len(args) == 1:
		return ok()
	case sub == "LIST":
		return clientList(e, args)
	case sub == "KILL" && len(args) > 0:
		return clientKill(e, c, args)
	}
	return unknownSub("CLIENT", sub), true
}

func clientList(e *engine, args []string) (wire.Value, bool) {
	listed := func(*client) bool { return true }
	switch {
	case len(args) == 0:
	case len(args) == 2 && upper(args[0]) == "TYPE":
		listed = ofType(args[1])
	case len(args) >= 2 && upper(args[0]) == "ID":
		ids := args[1:]
		listed = func(c *client) bool { return slices.Contains(ids, strconv.Itoa(c.id)) }
	default:
		return fail("ERR syntax error")
	}
	var text strings.Builder
	for _, id := range slices.Sorted(maps.Keys(e.clients)) {
		if c := e.clients[id]; listed(c) {
			text.WriteString(c.describe() + "\n")
		}
	}
	return wire.Value{Kind: wire.Verbatim, Format: [3]byte{'t', 'x', 't'}, Str: text.String()}, true
}

func ofType(kind string) func(*client) bool {
	subscriber := upper(kind) == "PUBSUB"
	return func(c *client) bool {
		return subscriber == (len(c.channels)+len(c.patterns) > 0) && (subscriber || upper(kind) == "NORMAL")
	}
}

// clientKill ends connections by address, which is the old form, or by
// filters. A client that kills itself still gets the reply.
func clientKill(e *engine, c *client, args []string) (wire.Value, bool) {
	if len(args) == 1 {
		for _, other := range e.clients {
			if other.addr == args[0] {
				e.end(c, other)
				return ok()
			}
		}
		return fail("ERR No such client")
	}
	if len(args)%2 != 0 {
		return fail("ERR syntax error")
	}
	var filters []func(*client) bool
	skipMe := true
	for ; len(args) > 0; args = args[2:] {
		value := args[1]
		switch upper(args[0]) {
		case "ID":
			if _, err := strconv.Atoi(value); err != nil {
				return fail("ERR client-id should be greater than 0")
			}
			filters = append(filters, func(o *client) bool { return strconv.Itoa(o.id) == value })
		case "ADDR":
			filters = append(filters, func(o *client) bool { return o.addr == value })
		case "LADDR":
			filters = append(filters, func(o *client) bool { return o.laddr == value })
		case "USER":
			filters = append(filters, func(o *client) bool { return o.user == value })
		case "TYPE":
			filters = append(filters, ofType(value))
		case "SKIPME":
			skipMe = upper(value) != "NO"
		default:
			return fail("ERR syntax error")
		}
	}
	n := 0
	for _, id := range slices.Sorted(maps.Keys(e.clients)) {
		o := e.clients[id]
		if o == c && skipMe || slices.ContainsFunc(filters, func(f func(*client) bool) bool { return !f(o) }) {
			continue
		}
		e.end(c, o)
		n++
	}
	return number(n), true
}

// end ends another client at once, and the caller behind its reply.
func (e *engine) end(caller, c *client) {
	if c == caller {
		c.quits = true
		return
	}
	e.drop(c)
}

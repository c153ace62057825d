package tethertest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tetherlock/tether/wire"
)

// subcommand is a subcommand of CLIENT, with its minimum and maximum number of
// arguments.
type subcommand struct {
	least, most int
	run         commandFunc
}

var clientSubcommands map[string]subcommand

func init() {
	const unlimited = math.MaxInt
	clientSubcommands = map[string]subcommand{
		"SETNAME":  {1, 1, setName},
		"GETNAME":  {0, 0, getName},
		"SETINFO":  {2, 2, acceptAny},
		"NO-EVICT": {1, 1, onOff},
		"NO-TOUCH": {1, 1, onOff},
		"ID":       {0, 0, func(_ *engine, c *client, _ []string) (wire.Value, bool) { return number(c.id), true }},
		"INFO":     {0, 0, func(_ *engine, c *client, _ []string) (wire.Value, bool) { return verbatim(c.listLine() + "\n"), true }},
		"LIST":     {0, unlimited, clientList},
		"KILL":     {1, unlimited, clientKill},
		"PAUSE":    {1, unlimited, clientPause},
		"UNPAUSE":  {0, 0, clientUnpause},
	}
}

func clientCommand(e *engine, c *client, args []string) (wire.Value, bool) {
	if len(args) == 0 {
		return wrongNumber("client"), true
	}
	sub, ok := clientSubcommands[upper(args[0])]
	switch rest := args[1:]; {
	case !ok:
		c.last = "NULL"
		return unknownSubcommand("CLIENT", args[0]), true
	case len(rest) < sub.least || len(rest) > sub.most:
		return wrongNumber("client|" + strings.ToLower(args[0])), true
	default:
		return sub.run(e, c, rest)
	}
}

// verbatim returns a verbatim string of the format txt.
func verbatim(s string) wire.Value {
	return wire.Value{Kind: wire.Verbatim, Format: [3]byte{'t', 'x', 't'}, Str: s}
}

func acceptAny(*engine, *client, []string) (wire.Value, bool) { return ok() }

func onOff(_ *engine, _ *client, args []string) (wire.Value, bool) {
	if s := upper(args[0]); s != "ON" && s != "OFF" {
		return fail(msgSyntax)
	}
	return ok()
}

func setName(_ *engine, c *client, args []string) (wire.Value, bool) {
	if !validName(args[0]) {
		return fail(msgName)
	}
	c.name = args[0]
	return ok()
}

func getName(_ *engine, c *client, _ []string) (wire.Value, bool) {
	if c.name == "" {
		return wire.Value{}, true
	}
	return bulk(c.name), true
}

func clientList(e *engine, _ *client, args []string) (wire.Value, bool) {
	ids := slices.Sorted(maps.Keys(e.clients))
	listed := func(*client) bool { return true }
	switch {
	case len(args) == 0:
	case len(args) == 2 && upper(args[0]) == "TYPE":
		var known bool
		if listed, known = ofType(args[1]); !known {
			return fail(msgType, args[1])
		}
	case len(args) >= 2 && upper(args[0]) == "ID":
		ids = nil
		for _, arg := range args[1:] {
			id, ok := integer(arg)
			if !ok {
				return fail("ERR Invalid client ID")
			}
			ids = append(ids, id)
		}
	default:
		return fail(msgSyntax)
	}
	var lines strings.Builder
	for _, id := range ids {
		if c := e.clients[id]; c != nil && listed(c) {
			lines.WriteString(c.listLine() + "\n")
		}
	}
	return verbatim(lines.String()), true
}

// ofType returns the condition for clients of a type. known is false for an
// unknown type. No client is a replica or a master.
func ofType(kind string) (matches func(*client) bool, known bool) {
	subscribed := func(c *client) bool { return len(c.channels)+len(c.patterns) > 0 }
	switch upper(kind) {
	case "PUBSUB":
		return subscribed, true
	case "NORMAL":
		return func(c *client) bool { return !subscribed(c) }, true
	case "REPLICA", "SLAVE", "MASTER":
		return func(*client) bool { return false }, true
	}
	return nil, false
}

// clientKill ends connections by filters, or by an address alone, which is the
// old form. A client that kills itself still gets the reply.
func clientKill(e *engine, c *client, args []string) (wire.Value, bool) {
	if len(args) == 1 {
		for _, other := range e.clients {
			if other.addr == args[0] {
				e.killClient(c, other)
				return ok()
			}
		}
		return fail("ERR No such client")
	}
	f := killFilter{conditions: map[string]func(*client) bool{}, skipMe: true}
	if refusal := f.parse(e, args); refusal != "" {
		return fail("%s", refusal)
	}
	n := 0
	for _, id := range slices.Sorted(maps.Keys(e.clients)) {
		if o := e.clients[id]; f.matches(o) && (o != c || !f.skipMe) {
			e.killClient(c, o)
			n++
		}
	}
	return number(n), true
}

// killFilter holds the options of CLIENT KILL. The conditions are stored by the
// name of the option, because the last of several with the same name wins.
type killFilter struct {
	conditions map[string]func(*client) bool
	skipMe     bool
}

func (f *killFilter) matches(c *client) bool {
	for _, holds := range f.conditions {
		if !holds(c) {
			return false
		}
	}
	return true
}

// parse parses the options. It returns the text of an error, or "".
func (f *killFilter) parse(e *engine, args []string) string {
	if len(args)%2 != 0 {
		return msgSyntax
	}
	for ; len(args) > 0; args = args[2:] {
		option, value := upper(args[0]), args[1]
		var condition func(*client) bool
		switch option {
		case "ID":
			id, ok := integer(value)
			if !ok || id < 1 {
				return "ERR client-id should be greater than 0"
			}
			condition = func(c *client) bool { return c.id == id }
		case "ADDR":
			condition = func(c *client) bool { return c.addr == value }
		case "LADDR":
			condition = func(c *client) bool { return c.laddr == value }
		case "USER":
			if value != "default" && (value == "" || value != e.user) {
				return fmt.Sprintf("ERR No such user '%s'", value)
			}
			condition = func(c *client) bool { return c.user == value }
		case "TYPE":
			var known bool
			if condition, known = ofType(value); !known {
				return fmt.Sprintf(msgType, value)
			}
		case "SKIPME":
			if s := upper(value); s != "YES" && s != "NO" {
				return msgSyntax
			}
			f.skipMe = upper(value) == "YES"
			continue
		default:
			return msgSyntax
		}
		f.conditions[option] = condition
	}
	return ""
}

// killClient ends another client at once, and the caller after its reply.
func (e *engine) killClient(caller, c *client) {
	if c == caller {
		c.closeAfterReply = true
		return
	}
	e.drop(c)
}

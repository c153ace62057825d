package tethertest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/tetherlock/tether/wire"
)

// commandFunc runs a command. It returns the reply, or false if there is none.
type commandFunc func(e *engine, c *client, args []string) (wire.Value, bool)

// commands are the commands that this package implements. All others run in
// miniredis.
var commands map[string]commandFunc

const blockingCommands = "BLPOP BRPOP BRPOPLPUSH BLMOVE BZPOPMIN BZPOPMAX XREAD XREADGROUP WAIT"

func init() {
	commands = map[string]commandFunc{
		"HELLO": hello, "AUTH": auth, "PING": ping, "SELECT": selectDB, "QUIT": quit, "RESET": reset, "ROLE": role,
		"CLIENT":    clientCommand,
		"SUBSCRIBE": subscribe("subscribe", channelsOf), "UNSUBSCRIBE": unsubscribe("unsubscribe", channelsOf),
		"PSUBSCRIBE": subscribe("psubscribe", patternsOf), "PUNSUBSCRIBE": unsubscribe("punsubscribe", patternsOf),
		"PUBLISH": publish, "PUBSUB": pubsub, "TTL": ttl,
	}
	for name := range setOf(blockingCommands) {
		commands[name] = blocking
	}
}

// setOf returns the set of words in a string.
func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

func upper(s string) string { return strings.ToUpper(s) }

// integer parses a number as strictly as Redis, which rejects "+5" and "05".
func integer(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && strconv.Itoa(n) == s
}

func ok() (wire.Value, bool) { return wire.Value{Kind: wire.SimpleString, Str: "OK"}, true }

func fail(format string, args ...any) (wire.Value, bool) {
	return failure(fmt.Sprintf(format, args...)), true
}

func wrongNumber(command string) wire.Value {
	return failure("ERR wrong number of arguments for '" + command + "' command")
}

func unknownSubcommand(command, sub string) wire.Value {
	return failure(fmt.Sprintf("ERR unknown subcommand '%s'. Try %s HELP.", sub, command))
}

// version is the version of Redis whose replies this package reproduces. CLIENT
// SETINFO is newer, but clients send it to every server.
const version = "7.0.15"

func blocking(*engine, *client, []string) (wire.Value, bool) {
	return fail("ERR tethertest does not support commands that block")
}

const (
	msgSyntax    = "ERR syntax error"
	msgExecAbort = "EXECABORT Transaction discarded because of previous errors."
	msgWrongPass = "WRONGPASS invalid username-password pair or user is disabled."
	msgType      = "ERR Unknown client type '%s'"
	msgName      = "ERR Client names cannot contain spaces, newlines or special characters."
	msgHelloAuth = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> " +
		"option can be used to authenticate the client and select the RESP protocol version at the same time"
)

// login logs a client in, and reports whether the user and the password are
// right.
func (e *engine) login(c *client, user, password string) bool {
	if e.password == "" && user == "default" {
		c.user = user
		return true
	}
	if e.password == "" || user != e.user || password != e.password {
		return false
	}
	c.user, c.loggedIn = user, true
	return true
}

func auth(e *engine, c *client, args []string) (wire.Value, bool) {
	user, password := "default", ""
	switch len(args) {
	case 1:
		if e.password == "" {
			return fail("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
		}
		password = args[0]
	case 2:
		user, password = args[0], args[1]
	case 0:
		return wrongNumber("auth"), true
	default:
		return fail(msgSyntax)
	}
	if !e.login(c, user, password) {
		return fail(msgWrongPass)
	}
	return ok()
}

func validName(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < '!' || r > '~' }) < 0
}

func hello(e *engine, c *client, args []string) (wire.Value, bool) {
	resp3 := c.resp3
	if len(args) > 0 {
		version, ok := integer(args[0])
		if !ok {
			return fail("ERR Protocol version is not an integer or out of range")
		}
		if version != 2 && version != 3 {
			return fail("NOPROTO unsupported protocol version")
		}
		resp3, args = version == 3, args[1:]
	}
	for len(args) > 0 {
		switch option := upper(args[0]); {
		case option == "AUTH" && len(args) >= 3:
			if !e.login(c, args[1], args[2]) {
				return fail(msgWrongPass)
			}
			args = args[3:]
		case option == "SETNAME" && len(args) >= 2:
			if !validName(args[1]) {
				return fail(msgName)
			}
			// The name stays, even if a later option is refused or a login
			// is missing.
			c.name, args = args[1], args[2:]
		default:
			return fail("ERR Syntax error in HELLO option '%s'", args[0])
		}
	}
	if e.password != "" && !c.loggedIn {
		return fail(msgHelloAuth)
	}
	c.resp3, c.peer.Resp3 = resp3, resp3
	proto := 2
	if resp3 {
		proto = 3
	}
	return wire.Value{Kind: wire.Map, Elems: []wire.Value{
		bulk("server"), bulk("redis"), bulk("version"), bulk(version), bulk("proto"), number(proto), bulk("id"), number(c.id),
		bulk("mode"), bulk("standalone"), bulk("role"), bulk(e.role), bulk("modules"), {Kind: wire.Array},
	}}, true
}

func ping(_ *engine, c *client, args []string) (wire.Value, bool) {
	switch {
	case len(args) > 1:
		return wrongNumber("ping"), true
	case !c.resp3 && len(c.channels)+len(c.patterns) > 0:
		return wire.Value{Kind: wire.Array, Elems: []wire.Value{bulk("pong"), bulk(strings.Join(args, ""))}}, true
	case len(args) == 1:
		return bulk(args[0]), true
	}
	return wire.Value{Kind: wire.SimpleString, Str: "PONG"}, true
}

func role(e *engine, _ *client, _ []string) (wire.Value, bool) {
	if e.role != "master" {
		return wire.Value{Kind: wire.Array, Elems: []wire.Value{bulk("slave"), bulk(""), number(0), bulk("connect"), number(0)}}, true
	}
	return wire.Value{Kind: wire.Array, Elems: []wire.Value{bulk("master"), number(0), {Kind: wire.Array}}}, true
}

// selectDB selects the database in miniredis, too: its commands run there.
func selectDB(e *engine, c *client, args []string) (wire.Value, bool) {
	n, refused := database(args)
	if refused != "" {
		return failure(refused), true
	}
	c.db = n
	e.delegate(c.peer, "SELECT", args[0])
	return wire.Value{}, false
}

// database parses the arguments of SELECT. refused is the text of an error, or "".
func database(args []string) (n int, refused string) {
	if len(args) != 1 {
		return 0, wrongNumber("select").Str
	}
	n, ok := integer(args[0])
	switch {
	case !ok:
		return 0, "ERR value is not an integer or out of range"
	case n < 0 || n > 15:
		return 0, "ERR DB index is out of range"
	}
	return n, ""
}

// delegate runs a command in miniredis without the hook, which would run it here.
func (e *engine) delegate(p *server.Peer, args ...string) {
	e.scripts.SetPreHook(nil)
	e.scripts.Dispatch(p, args)
	e.scripts.SetPreHook(e.hook)
}

func quit(_ *engine, c *client, _ []string) (wire.Value, bool) {
	c.closeAfterReply = true
	return ok()
}

// reset returns a connection to its initial state.
func reset(_ *engine, c *client, _ []string) (wire.Value, bool) {
	clear(c.channels)
	clear(c.patterns)
	c.peer.Ctx = nil // miniredis's state: the database and the transaction
	c.resp3, c.peer.Resp3, c.loggedIn, c.tx = false, false, false, nil
	c.name, c.user, c.db = "", "default", 0
	return wire.Value{Kind: wire.SimpleString, Str: "RESET"}, true
}

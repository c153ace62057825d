package tethertest

import (
	"bytes"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"github.com/tetherlock/tether/wire"
)

// Messages to the engine.
type (
	connected struct{ conn net.Conn }
	command   struct {
		from *client
		args []string
	}
	// malformed is a client whose input is not the Redis protocol.
	malformed struct {
		from *client
		err  error
	}
	disconnected    struct{ from *client }
	killSubscribers struct {
		channel string
		reply   chan<- int
	}
	countSubscribers struct {
		channel string
		reply   chan<- int
	}
	freeze  struct{ on bool }
	setRole struct{ role string }
	stop    struct{}
	// pauseEnded wakes the engine when a CLIENT PAUSE may be over.
	pauseEnded struct{}
)

// engine is the goroutine that owns all state and runs all commands, one at a
// time, as Redis does. miniredis implements keys and scripts. It runs on this
// goroutine, too.
type engine struct {
	config
	inbox   chan any
	done    chan struct{}
	running *sync.WaitGroup

	keys       *miniredis.Miniredis
	scripts    *server.Server // runs miniredis's commands, its listener is closed
	lastExpiry time.Time      // when miniredis's clock was last advanced

	role        string
	clients     map[int]*client
	lastID      int
	caller      *client // of the command that runs
	scriptError string  // of the last command in a script that failed
	pause       pause
	frozen      bool
	backlog     []any // messages received while frozen
	stopped     bool
}

func newEngine(c config) (*engine, error) {
	keys := miniredis.NewMiniRedis()
	if err := keys.Start(); err != nil {
		return nil, err
	}
	e := &engine{
		config: c, inbox: make(chan any), done: make(chan struct{}), running: &sync.WaitGroup{},
		keys: keys, scripts: keys.Server(), lastExpiry: time.Now(), role: "master", clients: map[int]*client{},
	}
	// Close miniredis's listener: under synctest, a goroutine that waits for the
	// network would stop virtual time.
	e.scripts.Close()
	e.scripts.SetPreHook(e.hook)
	return e, nil
}

func (e *engine) run() {
	defer close(e.done)
	for !e.stopped {
		m := e.next()
		if e.frozen && !handledWhileFrozen(m) {
			e.backlog = append(e.backlog, m)
			continue
		}
		e.handle(m)
		for !e.frozen && len(e.backlog) > 0 {
			m, e.backlog = e.backlog[0], e.backlog[1:]
			e.handle(m)
		}
		if !e.frozen {
			e.resume()
		}
	}
	for _, c := range e.clients {
		c.close()
	}
	e.keys.Close()
}

// next waits for a message or for the end of a pause.
func (e *engine) next() any {
	select {
	case m := <-e.inbox:
		return m
	case <-e.pause.ended:
		return pauseEnded{}
	}
}

// handledWhileFrozen reports whether a message is handled by a frozen server,
// too. Connections are, because the kernel accepts them even for a process that
// is stopped.
func handledWhileFrozen(m any) bool {
	switch m.(type) {
	case connected, freeze, setRole, stop, killSubscribers, countSubscribers:
		return true
	}
	return false
}

func (e *engine) handle(m any) {
	switch m := m.(type) {
	case connected:
		e.lastID++
		c := newClient(e, e.lastID, m.conn)
		e.clients[c.id] = c
	case command:
		if e.clients[m.from.id] != nil { // not killed meanwhile
			e.execute(m.from, m.args)
		}
	case malformed:
		m.from.reply(failure("ERR Protocol error: " + m.err.Error()))
		e.drop(m.from)
	case disconnected:
		e.drop(m.from)
	case killSubscribers:
		m.reply <- e.kill(func(c *client) bool { return c.channels[m.channel] })
	case countSubscribers:
		m.reply <- e.subscribers(m.channel)
	case freeze:
		e.frozen = m.on
	case setRole:
		e.role = m.role
	case stop:
		e.stopped = true
	}
}

// drop ends a connection and its subscriptions.
func (e *engine) drop(c *client) {
	if e.clients[c.id] == c {
		delete(e.clients, c.id)
		c.close()
	}
}

// kill drops the clients that match a condition, and returns their number.
func (e *engine) kill(condition func(*client) bool) int {
	n := 0
	for _, c := range e.clients {
		if condition(c) {
			e.drop(c)
			n++
		}
	}
	return n
}

// execute runs one command of a client.
func (e *engine) execute(c *client, args []string) {
	c.active = time.Now()
	if len(c.postponed) > 0 {
		e.postpone(c, args)
		return
	}
	e.caller = c
	name := strings.ToUpper(args[0])
	c.last = fullName(args)
	switch {
	case !e.isCommand(name):
		c.last = "NULL"
		c.abortTransaction()
		c.reply(unknownCommand(args))
	case e.needsLogin(c, name):
		c.reply(failure("NOAUTH Authentication required."))
	case c.restricted(name):
		c.reply(failure("ERR Can't execute '" + c.last +
			"': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"))
	case e.mustPostpone(c, name):
		e.postpone(c, args)
	default:
		e.expire()
		e.dispatch(c, name, args)
	}
}

// isCommand reports whether a command exists. Redis checks this before the login.
func (e *engine) isCommand(name string) bool {
	_, own := commands[name]
	return own || e.scripts.IsRegisteredCommand(name)
}

// fullName returns a command's name as CLIENT LIST and some errors write it, with
// its subcommand.
func fullName(args []string) string {
	name := strings.ToLower(args[0])
	if (name == "client" || name == "pubsub" || name == "script") && len(args) > 1 {
		name += "|" + strings.ToLower(args[1])
	}
	return name
}

// unknownCommand returns the error for an unknown command. Like Redis it quotes at
// most 128 bytes of the arguments.
func unknownCommand(args []string) wire.Value {
	const most = 128
	var quoted strings.Builder
	for _, arg := range args[1:] {
		if quoted.Len() >= most {
			break
		}
		quoted.WriteString("'" + arg[:min(len(arg), most-quoted.Len())] + "' ")
	}
	return failure("ERR unknown command '" + args[0][:min(len(args[0]), most)] + "', with args beginning with: " + quoted.String())
}

// needsLogin reports whether a command is refused because the client has not
// logged in.
func (e *engine) needsLogin(c *client, name string) bool {
	return e.password != "" && !c.loggedIn && name != "AUTH" && name != "HELLO" && name != "QUIT" && name != "RESET"
}

// dispatch runs a command through miniredis. The commands of this package run in
// miniredis's hook, so that scripts can call them, too.
func (e *engine) dispatch(c *client, name string, args []string) {
	c.peer.Resp3 = c.resp3
	// miniredis aborts a transaction only for errors of its own commands. After
	// other errors it would run the rest.
	abort := name == "EXEC" && c.tx != nil && c.tx.aborted
	if abort {
		args = []string{"DISCARD"}
	}
	e.scripts.Dispatch(c.peer, args)
	c.peer.Flush()
	written := bytes.Clone(c.written.Bytes())
	e.trackTransaction(c, name, written)
	if strings.HasPrefix(name, "EVAL") {
		written = e.scriptReply(written, args)
	}
	if abort {
		written = encode(nil, failure(msgExecAbort), c.resp3)
	}
	c.send(written)
	c.written.Reset()
	if c.closeAfterReply {
		e.drop(c)
	}
}

// trackTransaction updates the client's transaction after a command, given its
// reply.
func (e *engine) trackTransaction(c *client, name string, written []byte) {
	switch {
	case name == "EXEC" || name == "DISCARD":
		c.tx = nil
	case name == "MULTI" && c.tx == nil && !bytes.HasPrefix(written, []byte("-")):
		c.tx = &transaction{}
	case c.tx != nil && string(written) == "+QUEUED\r\n":
		c.tx.queued++
		c.tx.writes = c.tx.writes || e.writes(c, name)
	}
}

// hook is called by miniredis before every command. It runs the commands of this
// package and all commands of scripts, and returns false for the others.
func (e *engine) hook(p *server.Peer, name string, args ...string) bool {
	run, own := commands[name]
	switch {
	case p != e.caller.peer:
		e.runNested(p, name, args)
	case !own, name == "TTL" && e.caller.tx != nil:
		return false // in a transaction, miniredis must queue it
	case e.caller.tx != nil && name != "QUIT" && name != "RESET":
		e.caller.abortTransaction()
		p.WriteError("ERR tethertest does not support " + name + " inside MULTI")
	default:
		if v, ok := run(e, e.caller, args); ok {
			p.WriteRaw(string(encode(nil, v, p.Resp3)))
		}
	}
	return true
}

// failure returns an error reply.
func failure(text string) wire.Value { return wire.Value{Kind: wire.Error, Str: text} }

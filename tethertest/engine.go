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
	// broke is a client that speaks no Redis protocol.
	broke struct {
		from *client
		err  error
	}
	gone            struct{ from *client }
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
	// pauseOver is only to wake the engine: the time of a CLIENT PAUSE has come.
	pauseOver struct{}
)

// engine is the one goroutine that owns all state, as a Redis has only one
// that runs commands. Keys and scripts are miniredis's, which runs on this
// goroutine too.
type engine struct {
	config
	inbox   chan any
	done    chan struct{}
	running *sync.WaitGroup

	keys    *miniredis.Miniredis
	scripts *server.Server // miniredis's commands, without its listener
	looked  time.Time      // when keys were last expired

	role    string
	clients map[int]*client
	lastID  int
	caller  *client // whose command runs
	thrown  string  // the last error that a command of a script has had
	pause   pause
	frozen  bool
	backlog []any // what came while frozen
	stopped bool
}

func newEngine(c config) (*engine, error) {
	keys := miniredis.NewMiniRedis()
	if err := keys.Start(); err != nil {
		return nil, err
	}
	e := &engine{
		config: c, inbox: make(chan any), done: make(chan struct{}), running: &sync.WaitGroup{},
		keys: keys, scripts: keys.Server(), looked: time.Now(), role: "master", clients: map[int]*client{},
	}
	// Only its commands are wanted. A goroutine that waits for the network
	// would stop virtual time.
	e.scripts.Close()
	e.scripts.SetPreHook(e.hook)
	return e, nil
}

func (e *engine) run() {
	defer close(e.done)
	for !e.stopped {
		m := e.next()
		if e.frozen && !control(m) {
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

// next waits for what comes next.
func (e *engine) next() any {
	select {
	case m := <-e.inbox:
		return m
	case <-e.pause.ended:
		return pauseOver{}
	}
}

// control says whether a message is for a frozen server too. Connections are:
// for a process that is stopped, its system still accepts them.
func control(m any) bool {
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
		if e.clients[m.from.id] != nil { // it may have been killed meanwhile
			e.execute(m.from, m.args)
		}
	case broke:
		m.from.reply(failure("ERR Protocol error: " + m.err.Error()))
		e.drop(m.from)
	case gone:
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

// drop ends a connection, and with it everything that it is subscribed to.
func (e *engine) drop(c *client) {
	if e.clients[c.id] == c {
		delete(e.clients, c.id)
		c.close()
	}
}

// kill drops the clients that a condition holds for.
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
	if len(c.held) > 0 {
		e.hold(c, args)
		return
	}
	e.caller = c
	name := strings.ToUpper(args[0])
	c.last = fullName(args)
	switch {
	case !e.knows(name):
		c.last = "NULL"
		c.spoil()
		c.reply(unknownCommand(args))
	case e.locked(c, name):
		c.reply(failure("NOAUTH Authentication required."))
	case c.confined(name):
		c.reply(failure("ERR Can't execute '" + c.last +
			"': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"))
	case e.holds(c, name):
		e.hold(c, args)
	default:
		e.expire()
		e.dispatch(c, name, args)
	}
}

// knows says whether there is such a command. Nobody needs a login to be told
// that there is none.
func (e *engine) knows(name string) bool {
	_, own := commands[name]
	return own || e.scripts.IsRegisteredCommand(name)
}

// fullName is how CLIENT LIST and some errors call a command: with its
// subcommand, if it has any.
func fullName(args []string) string {
	name := strings.ToLower(args[0])
	if (name == "client" || name == "pubsub" || name == "script") && len(args) > 1 {
		name += "|" + strings.ToLower(args[1])
	}
	return name
}

// unknownCommand quotes what was not understood, up to a limit.
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

// locked says whether a command needs a login first.
func (e *engine) locked(c *client, name string) bool {
	return e.password != "" && !c.loggedIn && name != "AUTH" && name != "HELLO" && name != "QUIT" && name != "RESET"
}

// dispatch runs a command through miniredis, whose hook is where the commands
// of this package are: so they are found from inside scripts as well.
func (e *engine) dispatch(c *client, name string, args []string) {
	c.peer.Resp3 = c.resp3
	// miniredis knows only of what it has refused itself, and would run the
	// rest of the transaction.
	abort := name == "EXEC" && c.tx != nil && c.tx.spoiled
	if abort {
		args = []string{"DISCARD"}
	}
	e.scripts.Dispatch(c.peer, args)
	c.peer.Flush()
	written := bytes.Clone(c.written.Bytes())
	e.transact(c, name, written)
	if strings.HasPrefix(name, "EVAL") {
		written = e.scriptReply(written, args)
	}
	if abort {
		written = encode(nil, failure(msgExecAbort), c.resp3)
	}
	c.send(written)
	c.written.Reset()
	if c.quits {
		e.drop(c)
	}
}

// transact notes what a command and its reply mean for a transaction.
func (e *engine) transact(c *client, name string, written []byte) {
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

// hook runs the commands of this package, and those of scripts.
func (e *engine) hook(p *server.Peer, name string, args ...string) bool {
	run, own := commands[name]
	switch {
	case p != e.caller.peer:
		e.nested(p, name, args)
	case !own, name == "TTL" && e.caller.tx != nil:
		return false // miniredis knows which transaction that is
	case e.caller.tx != nil && name != "QUIT" && name != "RESET":
		e.caller.spoil()
		p.WriteError("ERR tethertest does not support " + name + " inside MULTI")
	default:
		if v, ok := run(e, e.caller, args); ok {
			p.WriteRaw(string(encode(nil, v, p.Resp3)))
		}
	}
	return true
}

// failure is an error reply.
func failure(text string) wire.Value { return wire.Value{Kind: wire.Error, Str: text} }

package tethertest

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/tetherlock/tether/wire"
)

// maxBacklog is how many bytes may wait for a client that does not read before
// it is cut off, like Redis's limit for subscribers.
const maxBacklog = 32 << 20

// client is one connection. The engine owns all of it but the goroutines'
// channels.
type client struct {
	id       int
	name     string
	user     string
	addr     string
	laddr    string
	since    time.Time
	active   time.Time
	last     string // command, as CLIENT LIST calls it
	db       int
	resp3    bool
	loggedIn bool
	tx       *transaction // since MULTI
	quits    bool
	held     [][]string // commands that wait for the end of a pause
	channels map[string]bool
	patterns map[string]bool

	peer    *server.Peer
	written bytes.Buffer // by peer
	out     chan []byte
	closed  chan struct{}
	conn    net.Conn
}

// transaction is what has come since MULTI.
type transaction struct {
	queued  int
	writes  bool // something queued does
	spoiled bool // something was refused
}

// spoil has a transaction fail at its end, if there is one.
func (c *client) spoil() {
	if c.tx != nil {
		c.tx.spoiled = true
	}
}

func newClient(e *engine, id int, conn net.Conn) *client {
	now := time.Now()
	c := &client{
		id: id, user: "default", since: now, active: now, channels: map[string]bool{}, patterns: map[string]bool{},
		addr: address(conn.RemoteAddr(), id), laddr: address(conn.LocalAddr(), 0),
		out: make(chan []byte), closed: make(chan struct{}), conn: conn,
	}
	c.peer = server.NewPeer(bufio.NewWriter(&c.written))
	chunks := make(chan []byte)
	e.running.Go(func() { c.read(e) })
	e.running.Go(func() { c.collect(chunks) })
	e.running.Go(func() { c.write(chunks) })
	return c
}

// address is an end of a connection, invented for one in memory.
func address(a net.Addr, id int) string {
	if a.Network() == "pipe" {
		return fmt.Sprintf("pipe:%d", id)
	}
	return a.String()
}

// read brings the client's commands to the engine.
func (c *client) read(e *engine) {
	r := wire.NewReader(c.conn)
	tell := func(m any) bool {
		select {
		case e.inbox <- m:
			return true
		case <-e.done:
			return false
		case <-c.closed:
			return false
		}
	}
	for {
		v, err := r.Read()
		args, ok := arguments(v)
		switch {
		case err != nil:
			tell(gone{c})
			return
		case !ok:
			tell(broke{c, fmt.Errorf("expected an array of strings")})
			return
		case len(args) == 0: // Redis ignores it as well
		case !tell(command{c, args}):
			return
		}
	}
}

// arguments reads a command.
func arguments(v wire.Value) ([]string, bool) {
	if v.Kind != wire.Array && v.Kind != wire.Null {
		return nil, false
	}
	args := make([]string, len(v.Elems))
	for i, e := range v.Elems {
		if e.Kind != wire.BulkString {
			return nil, false
		}
		args[i] = e.Str
	}
	return args, true
}

// collect takes what the engine has for the client, which must never wait for
// it, and hands it on as the connection takes it.
func (c *client) collect(chunks chan<- []byte) {
	defer close(chunks)
	var waiting []byte
	for {
		var next chan<- []byte
		if len(waiting) > 0 {
			next = chunks
		}
		select {
		case b := <-c.out:
			if waiting = append(waiting, b...); len(waiting) > maxBacklog {
				_ = c.conn.Close() // its reader tells the engine
				// Until the engine knows, it goes on sending: whoever ended
				// here would leave it waiting for ever.
				waiting = nil
			}
		case next <- waiting:
			waiting = nil
		case <-c.closed:
			if len(waiting) > 0 {
				chunks <- waiting // the last words; the connection is closed behind them
			}
			return
		}
	}
}

// lastWords bounds how long a closed connection may take to deliver what was
// said before.
const lastWords = 100 * time.Millisecond

// write writes to the connection, and closes it at the end.
func (c *client) write(chunks <-chan []byte) {
	broken := false
	for b := range chunks {
		if _, err := c.conn.Write(b); err != nil {
			broken = true
		}
		if broken {
			_ = c.conn.Close() // its reader tells the engine
		}
	}
	_ = c.conn.Close() // again, perhaps
}

// send queues bytes.
func (c *client) send(b []byte) {
	if len(b) == 0 {
		return
	}
	c.active = time.Now()
	select {
	case c.out <- b:
	case <-c.closed:
	}
}

// reply queues a value in the client's protocol.
func (c *client) reply(v wire.Value) { c.send(encode(nil, v, c.resp3)) }

// close ends the goroutines. What was queued before is still delivered, to a
// client that takes it in time.
func (c *client) close() {
	_ = c.conn.SetDeadline(time.Now().Add(lastWords))
	close(c.closed)
}

// confined says whether a command is refused to a subscriber that speaks RESP2.
func (c *client) confined(name string) bool {
	if c.resp3 || len(c.channels)+len(c.patterns) == 0 {
		return false
	}
	switch name {
	case "SUBSCRIBE", "PSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "PING", "QUIT", "RESET":
		return false
	}
	return true
}

// describe is the client's line of CLIENT LIST. What memory it takes is not told.
func (c *client) describe() string {
	resp, multi := 2, -1
	if c.resp3 {
		resp = 3
	}
	if c.tx != nil {
		multi = c.tx.queued
	}
	now := time.Now()
	return strings.Join([]string{
		fmt.Sprintf("id=%d addr=%s laddr=%s fd=%d name=%s", c.id, c.addr, c.laddr, c.id+7, c.name),
		fmt.Sprintf("age=%d idle=%d flags=%s db=%d", int(now.Sub(c.since).Seconds()), int(now.Sub(c.active).Seconds()), c.flags(), c.db),
		fmt.Sprintf("sub=%d psub=%d ssub=0 multi=%d", len(c.channels), len(c.patterns), multi),
		"qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r",
		fmt.Sprintf("cmd=%s user=%s redir=-1 resp=%d", c.last, c.user, resp),
	}, " ")
}

// flags are those of CLIENT LIST.
func (c *client) flags() string {
	flags := ""
	if len(c.channels)+len(c.patterns) > 0 {
		flags += "P"
	}
	if c.tx != nil {
		flags += "x"
	}
	if len(c.held) > 0 {
		flags += "b"
	}
	if flags == "" {
		return "N"
	}
	return flags
}

// encode writes a value in RESP3, or what is left of it in RESP2.
func encode(dst []byte, v wire.Value, resp3 bool) []byte {
	if resp3 {
		return wire.AppendValue(dst, v)
	}
	switch v.Kind {
	case wire.Null:
		return append(dst, "$-1\r\n"...)
	case wire.Array, wire.Set, wire.Map, wire.Push:
		dst = fmt.Appendf(dst, "*%d\r\n", len(v.Elems))
		for _, e := range v.Elems {
			dst = encode(dst, e, false)
		}
		return dst
	case wire.Verbatim:
		return wire.AppendValue(dst, wire.Value{Kind: wire.BulkString, Str: v.Str})
	default:
		return wire.AppendValue(dst, v)
	}
}

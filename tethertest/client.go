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

// maxUnsent is the maximum number of unsent bytes for a client that does not read
// its replies. Beyond it the connection is closed, as Redis does with
// client-output-buffer-limit.
const maxUnsent = 32 << 20

// client is one connection. Its goroutines use only conn and the channels. All
// other fields belong to the engine.
type client struct {
	id              int
	name            string
	user            string
	addr            string
	laddr           string
	since           time.Time
	active          time.Time
	last            string // command, as CLIENT LIST calls it
	db              int
	resp3           bool
	loggedIn        bool
	tx              *transaction // since MULTI
	closeAfterReply bool
	postponed       [][]string // commands to run when the pause ends
	channels        map[string]bool
	patterns        map[string]bool

	peer    *server.Peer
	written bytes.Buffer // output of peer
	out     chan []byte
	closed  chan struct{}
	conn    net.Conn
}

// transaction is the state since MULTI.
type transaction struct {
	queued  int
	writes  bool // a queued command writes
	aborted bool // a command was refused
}

// abortTransaction makes EXEC fail, if the client is in a transaction.
func (c *client) abortTransaction() {
	if c.tx != nil {
		c.tx.aborted = true
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
	e.running.Go(func() { c.bufferOutput(chunks) })
	e.running.Go(func() { c.write(chunks) })
	return c
}

// address returns an address of a connection. A connection in memory has none, so
// it gets one with the client's id.
func address(a net.Addr, id int) string {
	if a.Network() == "pipe" {
		return fmt.Sprintf("pipe:%d", id)
	}
	return a.String()
}

// read sends the client's commands to the engine, until the connection ends.
func (c *client) read(e *engine) {
	r := wire.NewReader(c.conn)
	post := func(m any) bool {
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
			post(disconnected{c})
			return
		case !ok:
			post(malformed{c, fmt.Errorf("expected an array of strings")})
			return
		case len(args) == 0: // Redis ignores an empty command
		case !post(command{c, args}):
			return
		}
	}
}

// arguments returns the arguments of a command: an array of bulk strings, or null.
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

// bufferOutput receives the engine's output and passes it on to write. The engine
// must not wait for a slow connection, so this goroutine always receives.
func (c *client) bufferOutput(chunks chan<- []byte) {
	defer close(chunks)
	var unsent []byte
	for {
		var next chan<- []byte
		if len(unsent) > 0 {
			next = chunks
		}
		select {
		case b := <-c.out:
			if unsent = append(unsent, b...); len(unsent) > maxUnsent {
				_ = c.conn.Close() // then read notifies the engine
				// The engine sends until it is notified. If this goroutine
				// returned, the engine would block forever.
				unsent = nil
			}
		case next <- unsent:
			unsent = nil
		case <-c.closed:
			if len(unsent) > 0 {
				chunks <- unsent // write closes the connection after it
			}
			return
		}
	}
}

// flushTimeout is how long a closing connection may take to deliver what is
// unsent.
const flushTimeout = 100 * time.Millisecond

// write writes to the connection, and closes it at the end. After an error it
// goes on receiving, so that bufferOutput does not block.
func (c *client) write(chunks <-chan []byte) {
	broken := false
	for b := range chunks {
		if _, err := c.conn.Write(b); err != nil {
			broken = true
		}
		if broken {
			_ = c.conn.Close() // then read notifies the engine
		}
	}
	_ = c.conn.Close() // may be closed already
}

// send passes bytes to bufferOutput. It does not wait for the connection.
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

// reply sends a value in the client's protocol.
func (c *client) reply(v wire.Value) { c.send(encode(nil, v, c.resp3)) }

// close ends the goroutines and the connection. Unsent bytes are still delivered
// if the client reads them within flushTimeout.
func (c *client) close() {
	_ = c.conn.SetDeadline(time.Now().Add(flushTimeout))
	close(c.closed)
}

// restricted reports whether a command is refused because the client is
// subscribed and speaks RESP2.
func (c *client) restricted(name string) bool {
	if c.resp3 || len(c.channels)+len(c.patterns) == 0 {
		return false
	}
	switch name {
	case "SUBSCRIBE", "PSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "PING", "QUIT", "RESET":
		return false
	}
	return true
}

// listLine returns the client's line of CLIENT LIST. All memory sizes in it are 0.
func (c *client) listLine() string {
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

// flags returns the client's flags in CLIENT LIST.
func (c *client) flags() string {
	flags := ""
	if len(c.channels)+len(c.patterns) > 0 {
		flags += "P"
	}
	if c.tx != nil {
		flags += "x"
	}
	if len(c.postponed) > 0 {
		flags += "b"
	}
	if flags == "" {
		return "N"
	}
	return flags
}

// encode appends a value in RESP3, or its closest equivalent in RESP2.
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

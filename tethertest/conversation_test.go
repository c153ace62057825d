package tethertest_test

import (
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/wire"
)

// replyTimeout is how long a server may take to reply.
const replyTimeout = 10 * time.Second

// conversation is the state of one conversation with one server.
type conversation struct {
	t           *testing.T
	needsLogin  bool
	dial        func() (net.Conn, error)
	connections map[string]*connection
	markers     int
}

// connection is one connection.
type connection struct {
	net.Conn
	reader    *wire.Reader
	id, addr  string
	postponed bool // a pause postpones its commands
	closed    bool
}

func newConversation(t *testing.T, needsLogin bool, dial func() (net.Conn, error)) *conversation {
	return &conversation{t: t, needsLogin: needsLogin, dial: dial, connections: map[string]*connection{}}
}

// step executes one line and returns what was received.
func (c *conversation) step(line string) []string {
	if name, ok := strings.CutPrefix(line, "close "); ok {
		c.close(name)
		return c.receiveOthers(name, false)
	}
	name, text, found := strings.Cut(line, ":")
	require.True(c.t, found, "no step: %s", line)
	name, codes := strings.CutSuffix(name, "~")
	name, postponed := strings.CutSuffix(name, "-")
	var request []byte
	for text := range strings.SplitSeq(text, " | ") {
		request = wire.AppendCommand(request, c.words(text)...)
	}
	if postponed {
		c.sendPostponed(name, request)
		return c.receiveOthers(name, codes)
	}
	return append(c.send(name, request, codes), c.receiveOthers(name, codes)...)
}

// receiveOthers returns what all connections but one have received.
func (c *conversation) receiveOthers(except string, codes bool) []string {
	var received []string
	for _, name := range slices.Sorted(maps.Keys(c.connections)) {
		if p := c.connections[name]; name != except && !p.closed && !p.postponed {
			received = append(received, c.send(name, nil, codes)...)
		}
	}
	return received
}

// send writes commands, and after them a marker: a command that does not exist.
// Its error reply, which comes in every state of a connection, shows that
// everything before it has been received.
func (c *conversation) send(name string, request []byte, codes bool) []string {
	p := c.connection(name)
	p.postponed = false
	c.markers++
	marker := fmt.Sprintf("MARK-%d", c.markers)
	_ = p.SetDeadline(time.Now().Add(replyTimeout))
	_, _ = p.Write(wire.AppendCommand(request, marker)) // a closed connection is detected below
	var received []string
	for {
		v, err := p.reader.Read()
		switch {
		case err != nil:
			require.NotErrorIs(c.t, err, os.ErrDeadlineExceeded, "no answer to %q of %s", request, name)
			p.closed = true
			require.NoError(c.t, p.Close())
			return append(received, name+" closed")
		case v.IsError() && strings.Contains(v.Str, marker):
			return received
		}
		received = append(received, name+" "+show(v, codes))
	}
}

func (c *conversation) connection(name string) *connection {
	if p := c.connections[name]; p != nil {
		return p
	}
	p := c.connect()
	c.connections[name] = p
	return p
}

var idAndAddr = regexp.MustCompile(`^id=(\d+) addr=(\S+)`)

func (c *conversation) connect() *connection {
	conn, err := c.dial()
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = conn.Close() })
	p := &connection{Conn: conn, reader: wire.NewReader(conn)}
	if !c.needsLogin {
		found := idAndAddr.FindStringSubmatch(c.ask(p, "CLIENT", "INFO").Str)
		require.NotNil(c.t, found)
		p.id, p.addr = found[1], found[2]
	}
	return p
}

// ask returns the reply to one command.
func (c *conversation) ask(p *connection, args ...string) wire.Value {
	require.NoError(c.t, p.SetDeadline(time.Now().Add(replyTimeout)))
	_, err := p.Write(wire.AppendCommand(nil, args...))
	require.NoError(c.t, err)
	v, err := p.reader.Read()
	require.NoError(c.t, err)
	return v
}

// close closes a connection and waits until the server has noticed.
func (c *conversation) close(name string) {
	p := c.connections[name]
	p.closed = true
	require.NoError(c.t, p.Close())
	c.await(p, func(listed string) bool { return listed == "" }, name+" does not end")
}

var blockedFlag = regexp.MustCompile(` flags=\S*b`)

// sendPostponed writes commands and waits until the server has postponed them.
func (c *conversation) sendPostponed(name string, request []byte) {
	p := c.connection(name)
	p.postponed = true
	require.NoError(c.t, p.SetDeadline(time.Now().Add(replyTimeout)))
	_, err := p.Write(request)
	require.NoError(c.t, err)
	c.await(p, blockedFlag.MatchString, name+" is not postponed")
}

// await waits until a connection's line of CLIENT LIST meets a condition.
func (c *conversation) await(p *connection, condition func(listed string) bool, failure string) {
	observer := c.connect()
	defer c.quit(observer)
	for limit := time.Now().Add(replyTimeout); !condition(c.ask(observer, "CLIENT", "LIST", "ID", p.id).Str); <-time.After(time.Millisecond) {
		require.True(c.t, time.Now().Before(limit), failure)
	}
}

// quit ends a connection with QUIT and waits for the end of the stream. Then the
// server no longer lists it.
func (c *conversation) quit(p *connection) {
	require.Equal(c.t, "OK", c.ask(p, "QUIT").Str)
	_, err := p.reader.Read()
	require.ErrorIs(c.t, err, io.EOF)
	require.NoError(c.t, p.Close())
}

var word = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\S+`)

// words splits a command into words, which may be quoted as in Go, and replaces
// the forms with "$" and "@".
func (c *conversation) words(text string) []string {
	var words []string
	for _, w := range word.FindAllString(text, -1) {
		name, field, _ := strings.Cut(strings.TrimPrefix(w, "$"), ".")
		switch {
		case w[0] == '"':
			unquoted, err := strconv.Unquote(w)
			require.NoError(c.t, err, w)
			w = unquoted
		case w[0] == '@':
			file, err := os.ReadFile("testdata/" + w[1:])
			require.NoError(c.t, err)
			w = string(file)
		case w[0] == '$' && field == "id":
			w = c.connections[name].id
		case w[0] == '$' && field == "addr":
			w = c.connections[name].addr
		}
		words = append(words, w)
	}
	return words
}

// show returns a value as text on one line, without what differs between servers
// and runs.
func show(v wire.Value, codes bool) string {
	switch v.Kind {
	case wire.Null:
		return "null"
	case wire.Error:
		if code, _, _ := strings.Cut(v.Str, " "); codes {
			return "-" + code
		}
		return "-" + v.Str
	case wire.SimpleString:
		return "+" + v.Str
	case wire.BulkString:
		return quoted(v.Str)
	case wire.Verbatim:
		return string(v.Format[:]) + ":" + quoted(v.Str)
	case wire.Array:
		return "[" + showAll(v.Elems, codes) + "]"
	case wire.Push:
		return ">[" + showAll(v.Elems, codes) + "]"
	case wire.Set:
		return "~[" + showAll(v.Elems, codes) + "]"
	case wire.Map:
		return "{" + showAll(v.Elems, codes) + "}"
	default:
		return v.Text()
	}
}

func showAll(elems []wire.Value, codes bool) string {
	var texts []string
	varies := false
	for _, e := range elems {
		text := show(e, codes)
		if varies {
			text = "…"
		}
		varies = text == `"id"` || text == `"version"`
		texts = append(texts, text)
	}
	return strings.Join(texts, " ")
}

var (
	clientLine   = regexp.MustCompile(`^id=\d+ addr=`)
	clientFields = regexp.MustCompile(`\b(name|flags|db|sub|psub|resp|user|cmd)=(\S*)`)
)

// quoted returns a string in quotes, "<now>" instead of the current time, and
// only the comparable fields of lines of CLIENT LIST.
func quoted(s string) string {
	if isNow(s) {
		return "<now>"
	}
	if !clientLine.MatchString(s) {
		return strconv.Quote(s)
	}
	var lines []string
	for line := range strings.Lines(s) {
		fields := clientFields.FindAllString(line, -1)
		slices.Sort(fields)
		lines = append(lines, strings.Join(fields, " "))
	}
	return "<" + strings.Join(lines, "; ") + ">"
}

// isNow reports whether a string is a time in microseconds that is less than an
// hour from now.
func isNow(s string) bool {
	micros, err := strconv.ParseInt(s, 10, 64)
	return err == nil && time.Since(time.UnixMicro(micros)).Abs() < time.Hour
}

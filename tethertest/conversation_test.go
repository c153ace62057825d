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

// patience is how long a server may take to answer.
const patience = 10 * time.Second

// conversation is the connections of one test with one server.
type conversation struct {
	t      *testing.T
	locked bool
	dial   func() (net.Conn, error)
	people map[string]*person
	marks  int
}

// person is one connection.
type person struct {
	net.Conn
	reader   *wire.Reader
	id, addr string
	held     bool // a pause holds its commands
	closed   bool
}

func newConversation(t *testing.T, locked bool, dial func() (net.Conn, error)) *conversation {
	return &conversation{t: t, locked: locked, dial: dial, people: map[string]*person{}}
}

// step carries out one line and returns what was heard.
func (c *conversation) step(line string) []string {
	if name, ok := strings.CutPrefix(line, "close "); ok {
		c.close(name)
		return c.others(name, false)
	}
	name, text, found := strings.Cut(line, ":")
	require.True(c.t, found, "no step: %s", line)
	name, codes := strings.CutSuffix(name, "~")
	name, held := strings.CutSuffix(name, "-")
	var request []byte
	for text := range strings.SplitSeq(text, " | ") {
		request = wire.AppendCommand(request, c.words(text)...)
	}
	if held {
		c.hold(name, request)
		return c.others(name, codes)
	}
	return append(c.say(name, request, codes), c.others(name, codes)...)
}

// others hears what everyone but one has been told.
func (c *conversation) others(but string, codes bool) []string {
	var heard []string
	for _, name := range slices.Sorted(maps.Keys(c.people)) {
		if p := c.people[name]; name != but && !p.closed && !p.held {
			heard = append(heard, c.say(name, nil, codes)...)
		}
	}
	return heard
}

// say writes commands, and behind them one that no server knows: its error
// tells that everything has been heard, in every state that a connection is in.
func (c *conversation) say(name string, request []byte, codes bool) []string {
	p := c.person(name)
	p.held = false
	c.marks++
	mark := fmt.Sprintf("MARK-%d", c.marks)
	_ = p.SetDeadline(time.Now().Add(patience))
	_, _ = p.Write(wire.AppendCommand(request, mark)) // whether it is closed is heard below
	var heard []string
	for {
		v, err := p.reader.Read()
		switch {
		case err != nil:
			require.NotErrorIs(c.t, err, os.ErrDeadlineExceeded, "no answer to %q of %s", request, name)
			p.closed = true
			require.NoError(c.t, p.Close())
			return append(heard, name+" closed")
		case v.IsError() && strings.Contains(v.Str, mark):
			return heard
		}
		heard = append(heard, name+" "+show(v, codes))
	}
}

func (c *conversation) person(name string) *person {
	if p := c.people[name]; p != nil {
		return p
	}
	p := c.connect()
	c.people[name] = p
	return p
}

var idAndAddr = regexp.MustCompile(`^id=(\d+) addr=(\S+)`)

func (c *conversation) connect() *person {
	conn, err := c.dial()
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = conn.Close() })
	p := &person{Conn: conn, reader: wire.NewReader(conn)}
	if !c.locked {
		found := idAndAddr.FindStringSubmatch(c.ask(p, "CLIENT", "INFO").Str)
		require.NotNil(c.t, found)
		p.id, p.addr = found[1], found[2]
	}
	return p
}

// ask returns the reply to one command.
func (c *conversation) ask(p *person, args ...string) wire.Value {
	require.NoError(c.t, p.SetDeadline(time.Now().Add(patience)))
	_, err := p.Write(wire.AppendCommand(nil, args...))
	require.NoError(c.t, err)
	v, err := p.reader.Read()
	require.NoError(c.t, err)
	return v
}

// close ends a connection and waits until the server has seen that.
func (c *conversation) close(name string) {
	p := c.people[name]
	p.closed = true
	require.NoError(c.t, p.Close())
	c.await(p, func(listed string) bool { return listed == "" }, name+" does not end")
}

var blocked = regexp.MustCompile(` flags=\S*b`)

// hold writes commands that nobody answers yet, and waits until the server
// holds them.
func (c *conversation) hold(name string, request []byte) {
	p := c.person(name)
	p.held = true
	require.NoError(c.t, p.SetDeadline(time.Now().Add(patience)))
	_, err := p.Write(request)
	require.NoError(c.t, err)
	c.await(p, blocked.MatchString, name+" is not held")
}

// await waits until a connection is listed as a condition wants.
func (c *conversation) await(p *person, condition func(listed string) bool, failure string) {
	witness := c.connect()
	defer c.quit(witness)
	for limit := time.Now().Add(patience); !condition(c.ask(witness, "CLIENT", "LIST", "ID", p.id).Str); <-time.After(time.Millisecond) {
		require.True(c.t, time.Now().Before(limit), failure)
	}
}

// quit ends a connection that nobody listed afterwards may see: a server closes
// the socket of one that quits when it has forgotten it.
func (c *conversation) quit(p *person) {
	require.Equal(c.t, "OK", c.ask(p, "QUIT").Str)
	_, err := p.reader.Read()
	require.ErrorIs(c.t, err, io.EOF)
	require.NoError(c.t, p.Close())
}

var word = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\S+`)

// words splits a command, whose words may be quoted as Go quotes them. One with
// "@" in front is a file of testdata.
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
			w = c.people[name].id
		case w[0] == '$' && field == "addr":
			w = c.people[name].addr
		}
		words = append(words, w)
	}
	return words
}

// show writes a value in one line. What differs from server to server and from
// run to run is left out.
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

// quoted is a string, or the fields of CLIENT LIST that can be compared, or the
// time if it is that of now.
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

// isNow says whether a string is a time of this hour in microseconds.
func isNow(s string) bool {
	micros, err := strconv.ParseInt(s, 10, 64)
	return err == nil && time.Since(time.UnixMicro(micros)).Abs() < time.Hour
}

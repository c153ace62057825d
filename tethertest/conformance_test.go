package tethertest_test

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/internal/redistest"
	"github.com/tetherlock/tether/tethertest"
)

var rewrite = flag.Bool("rewrite", false, "write what the conversations expect anew, from a real Redis")

// password is what the servers of login*.txt demand.
const password = "secret"

// target is a server that conversations are held with.
type target struct {
	name string
	dial func(t *testing.T, locked bool) func() (net.Conn, error)
}

var (
	inMemory = target{"memory", func(t *testing.T, locked bool) func() (net.Conn, error) {
		s, err := tethertest.Start("", login(locked)...)
		require.NoError(t, err)
		t.Cleanup(s.Close)
		return func() (net.Conn, error) { return s.Dial(context.Background()) }
	}}
	overTCP = target{"tcp", func(t *testing.T, locked bool) func() (net.Conn, error) {
		return dialer(tethertest.NewServer(t, login(locked)...).Addr())
	}}
	realRedis = target{"redis", func(t *testing.T, locked bool) func() (net.Conn, error) {
		s := redistest.Start(t)
		needVersion(t, s)
		if locked {
			s.MustDo(t, "CONFIG", "SET", "requirepass", password)
		}
		return dialer(s.Addr)
	}}
)

// needVersion skips the test on another Redis than the one whose words are
// written down: 7.2 delivers a script's own messages behind its reply, and later
// ones word some errors anew. Nothing of tether rests on either.
func needVersion(t *testing.T, s *redistest.Server) {
	if info := fmt.Sprint(s.MustDo(t, "INFO", "server")); !strings.Contains(info, "redis_version:7.0.") {
		t.Skip("redis-server is not a 7.0")
	}
}

func login(locked bool) []tethertest.Option {
	if !locked {
		return nil
	}
	return []tethertest.Option{tethertest.WithPassword("", password)}
}

func dialer(addr string) func() (net.Conn, error) {
	return func() (net.Conn, error) { return net.Dial("tcp", addr) }
}

// TestConformance holds the conversations of testdata with the in-process
// server, in memory and over TCP, and with a real Redis: all three must say
// the same.
//
// A conversation is a text of blocks. Above "----" stand steps, one a line: a
// connection, which is opened at its first step, a colon, and the commands that
// it writes at once, with " | " between them. "close a" ends a connection.
// $a.id and $a.addr stand for what the server calls a connection, @fence.lua for
// that file of testdata. Below stands what the connections were told, step by
// step: first the one that spoke, then the others. Of the steps with "~:" only
// the codes of errors are compared. What is said with "-:" is held by a pause,
// and its speaker is heard at its next step.
func TestConformance(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	targets := []target{inMemory, overTCP, realRedis}
	if *rewrite {
		targets = []target{realRedis}
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		for _, to := range targets {
			t.Run(name+"/"+to.name, func(t *testing.T) {
				locked := strings.HasPrefix(name, "login")
				got := converse(t, string(text), newConversation(t, locked, to.dial(t, locked)))
				if *rewrite {
					require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
					return
				}
				require.Equal(t, string(text), got)
			})
		}
	}
}

// converse returns the text with what is said now.
func converse(t *testing.T, text string, c *conversation) string {
	var out strings.Builder
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		said, _, found := strings.Cut(block, "\n----")
		require.True(t, found, "a block without ----:\n%s", block)
		fmt.Fprintf(&out, "%s\n----\n", said)
		for line := range strings.Lines(said) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
				for _, heard := range c.step(line) {
					fmt.Fprintln(&out, heard)
				}
			}
		}
		fmt.Fprintln(&out)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

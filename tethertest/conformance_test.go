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

// password is the password of the servers for login*.txt.
const password = "secret"

// target is a kind of server that a conversation can run with.
type target struct {
	name string
	dial func(t *testing.T, needsLogin bool) func() (net.Conn, error)
}

var (
	inMemory = target{"memory", func(t *testing.T, needsLogin bool) func() (net.Conn, error) {
		s, err := tethertest.Start("", login(needsLogin)...)
		require.NoError(t, err)
		t.Cleanup(s.Close)
		return func() (net.Conn, error) { return s.Dial(context.Background()) }
	}}
	overTCP = target{"tcp", func(t *testing.T, needsLogin bool) func() (net.Conn, error) {
		return dialer(tethertest.NewServer(t, login(needsLogin)...).Addr())
	}}
	realRedis = target{"redis", func(t *testing.T, needsLogin bool) func() (net.Conn, error) {
		s := redistest.Start(t)
		skipUnless70(t, s)
		if needsLogin {
			s.MustDo(t, "CONFIG", "SET", "requirepass", password)
		}
		return dialer(s.Addr)
	}}
)

// skipUnless70 skips the test if redis-server is not a 7.0, which has written the
// conversations. 7.2 delivers the messages of a script to its caller after the
// reply, and later versions change the text of some errors. tether depends on
// neither.
func skipUnless70(t *testing.T, s *redistest.Server) {
	if info := fmt.Sprint(s.MustDo(t, "INFO", "server")); !strings.Contains(info, "redis_version:7.0.") {
		t.Skip("redis-server is not a 7.0")
	}
}

func login(needsLogin bool) []tethertest.Option {
	if !needsLogin {
		return nil
	}
	return []tethertest.Option{tethertest.WithPassword("", password)}
}

func dialer(addr string) func() (net.Conn, error) {
	return func() (net.Conn, error) { return net.Dial("tcp", addr) }
}

// TestConformance runs the conversations of testdata with the in-process server,
// in memory and over TCP, and with a real Redis. All three must send the same.
//
// A conversation consists of blocks, separated by empty lines. Above "----" are
// the steps, one per line:
//
//   - "a: PING | GET k" writes commands on the connection a, all at once. The
//     connection is opened at its first step.
//   - "a~: …" does so, too, but only the codes of error replies are compared.
//   - "a-: …" writes commands that a pause postpones. The replies are read at the
//     next step of the connection.
//   - "close a" closes the connection.
//
// In a command, $a.id and $a.addr are the id and the address of the connection a,
// and @fence.lua is the content of that file of testdata.
//
// Below "----" is what the connections receive, step by step: first the one that
// the step is about, then the others.
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
				needsLogin := strings.HasPrefix(name, "login")
				got := converse(t, string(text), newConversation(t, needsLogin, to.dial(t, needsLogin)))
				if *rewrite {
					require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
					return
				}
				require.Equal(t, string(text), got)
			})
		}
	}
}

// converse runs a conversation and returns its text with what was received.
func converse(t *testing.T, text string, c *conversation) string {
	var out strings.Builder
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		steps, _, found := strings.Cut(block, "\n----")
		require.True(t, found, "a block without ----:\n%s", block)
		fmt.Fprintf(&out, "%s\n----\n", steps)
		for line := range strings.Lines(steps) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
				for _, received := range c.step(line) {
					fmt.Fprintln(&out, received)
				}
			}
		}
		fmt.Fprintln(&out)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

//go:build unix && !aix && !solaris

package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/tethertest"
)

// label is the default label of the program.
func (p *program) label(t *testing.T) string {
	t.Helper()
	host, err := os.Hostname()
	require.NoError(t, err)
	return fmt.Sprintf("pid %d on %s", p.pid(), host)
}

// printsToken waits for a line that is a number.
func (p *program) printsToken(t *testing.T) int64 {
	t.Helper()
	token, err := strconv.ParseInt(p.prints(t, 1)[0], 10, 64)
	require.NoError(t, err)
	return token
}

const showToken = `echo "${TETHER_TOKEN-none}"`

func TestTokensRise(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		last := int64(0)
		for range 3 {
			p := s.start(t, "run", "x", "--fenced", "--", "sh", "-c", showToken)
			token := p.printsToken(t)
			require.Greater(t, token, last)
			require.Zero(t, p.code(t))
			last = token
		}
	})
}

// A store could not tell an inherited token of another lock from this lock's.
func TestNoTokenWithoutFencing(t *testing.T) {
	s := embedded(t)
	code, out, errs := s.runToEnd(t, "run", "outer", "--fenced", "--", binary, "run", "inner", "--", "sh", "-c", showToken)
	require.Zero(t, code, errs)
	require.Equal(t, "none\n", out)
}

// A frozen holder cannot end its command. Its token is lower than the next one.
func TestAFrozenHolderIsReplaced(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		old := s.start(t, "run", "x", "--fenced", "--", "sh", "-c", showToken+`; echo $$; exec sleep 1000`)
		pid, err := strconv.Atoi(old.prints(t, 2)[1])
		require.NoError(t, err)
		old.signal(t, syscall.SIGSTOP)
		eventually(t, func() bool { return stopped(old.pid()) }, "it stops")

		next := s.start(t, "run", "x", "--fenced", "--unavailable-timeout", "200ms", "--", "sh", "-c", showToken)
		require.Zero(t, next.code(t))
		require.Greater(t, next.printsToken(t), old.printsToken(t))
		require.True(t, alive(pid), "its command still runs")

		old.signal(t, syscall.SIGCONT)
		require.Equal(t, exitLost, old.code(t))
		require.False(t, alive(pid))
	})
}

// The key of the token counter is a list, so no token can be drawn.
func TestFencingIsNotPossible(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		require.NoError(t, s.admin.LPush(t.Context(), "x-fence", "a").Err())
		code, _, errs := s.runToEnd(t, "run", "x", "--fenced", "--", "true")
		require.Equal(t, exitUnavailable, code)
		require.Contains(t, errs, "WRONGTYPE")
		require.Empty(t, s.holders(t, "x"))
	})
}

// Each database has its own token counter.
func TestFencingNeedsOneDatabase(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		p := s.start(t, "run", "x", "--fenced", "--", "sh", "-c", showToken+"; exec sleep 1000")
		p.printsToken(t)
		code, _, errs := s.runToEnd(t, "run", "x", "--fenced", "--redis", s.url+"/1", "--", "true")
		require.Equal(t, exitUsage, code, errs)
		require.Contains(t, errs, "database")
	})
}

func TestReadersHoldTogether(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		var readers []*program
		for range 2 {
			p := s.start(t, "run", "x", "--shared", "--", "sh", "-c", `echo "$TETHER_HOLDER_ID"; exec sleep 1000`)
			p.prints(t, 1)
			readers = append(readers, p)
		}
		code, _, errs := s.runToEnd(t, "run", "x", "--wait", "0", "--", "true")
		require.Equal(t, exitHeld, code)
		code, out, _ := s.runToEnd(t, "probe", "x")
		require.Zero(t, code)
		for _, p := range readers {
			require.Regexp(t, p.prints(t, 1)[0]+` "`+p.label(t)+`" \(shared for \S+\) at `, errs)
			require.Regexp(t, `(?m)^shared +`+p.prints(t, 1)[0]+` .* `+p.label(t)+`$`, out)
		}

		s.awaitAtMost(t, "x", 2)
		writer := s.start(t, "run", "x", "--", "echo", "alone")
		s.awaitParticipants(t, "x", 3)
		for _, p := range readers {
			require.Empty(t, writer.out(t))
			p.signal(t, syscall.SIGTERM)
			require.Equal(t, 143, p.code(t))
		}
		require.Zero(t, writer.code(t))
		require.Equal(t, "alone\n", writer.out(t))
	})
}

// An error about a taken lock names the holder and its address.
func TestTheHolderIsNamed(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		for _, c := range []struct {
			flags       []string
			says, shows string
		}{
			{nil, "", ""},
			{[]string{"--label", "night job"}, ` "night job"`, "night job"},
			{[]string{"--label", ""}, "", "-"},
			{[]string{"--label", "a\x1b[2Jb"}, ` "a\x1b[2Jb"`, `"a\x1b[2Jb"`},
		} {
			p := s.start(t, append(append([]string{"run", "x"}, c.flags...), "--", "sh", "-c", `echo "$TETHER_HOLDER_ID"; exec sleep 1000`)...)
			id := p.prints(t, 1)[0]
			if c.flags == nil {
				c.says, c.shows = fmt.Sprintf(" %q", p.label(t)), p.label(t)
			}
			for _, wait := range []string{"0", "150ms"} {
				code, _, errs := s.runToEnd(t, "run", "x", "--wait", wait, "--", "true")
				require.Equal(t, exitHeld, code)
				before, after, found := strings.Cut(errs, id+c.says)
				require.True(t, found, errs)
				require.Equal(t, `tether: "x" is held by `, before)
				require.Regexp(t, `^ \(exclusive for \d\S*s\) at 127\.0\.0\.1:\d+: try again later`, after)
			}
			code, out, errs := s.runToEnd(t, "probe", "x")
			require.Zero(t, code, errs)
			require.Regexp(t, `s +`+regexp.QuoteMeta(c.shows)+`\n$`, out)
			p.signal(t, syscall.SIGTERM)
			require.Equal(t, 143, p.code(t))
		}
	})
}

// With a poll interval of an hour only the wake of a release can end the wait.
func TestAReleaseWakes(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		release := s.hold(t, "x")
		p := s.start(t, "run", "x", "--poll-interval", "1h", "--", "echo", "woken")
		s.awaitParticipants(t, "x", 2)
		release()
		require.Zero(t, p.code(t))
		require.Equal(t, "woken\n", p.out(t))
	})
}

func TestSelfCheckPingsTheChannel(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		p := s.start(t, "run", "x", "--self-check", "20ms", "--", "sh", "-c", "echo ready; exec sleep 1000")
		p.prints(t, 1)
		listener := s.admin.Subscribe(t.Context(), "x")
		defer listener.Close()
		select {
		case m := <-listener.Channel():
			require.Contains(t, m.Payload, `"ping"`)
		case <-time.After(10 * time.Second):
			require.Fail(t, "nothing is sent")
		}
		p.signal(t, syscall.SIGTERM)
		require.Equal(t, 143, p.code(t), "it has not lost the lock")
	})
}

// The server accepts connections and answers nothing.
func TestNoAnswer(t *testing.T) {
	frozen := tethertest.NewServer(t)
	s := serverAt(t, frozen.Addr())
	frozen.Freeze()
	defer frozen.Thaw()
	for wait, says := range map[string]string{
		"0":     "no answer in time",
		"200ms": "no answer about the lock \"x\" within --wait 200ms: wait longer",
	} {
		code, _, errs := s.runToEnd(t, "run", "x", "--wait", wait, "--unavailable-timeout", "100ms", "--", "true")
		require.Equal(t, exitUnavailable, code, errs)
		require.Contains(t, errs, says)
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)
	}
}

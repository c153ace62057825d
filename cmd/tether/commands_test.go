//go:build unix && !aix && !solaris

package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestProbe(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		code, out, errs := s.runToEnd(t, "probe", "x")
		require.Zero(t, code, errs)
		require.Equal(t, "x is free\n", out)
		code, out, errs = s.runToEnd(t, "probe", "x", "--json")
		require.Zero(t, code, errs)
		require.Equal(t, `{"name":"x","free":true,"holders":[]}`+"\n", out)

		p := s.start(t, "run", "x", "--", "sh", "-c", `echo "$TETHER_HOLDER_ID"; exec sleep 1000`)
		id := p.prints(t, 1)[0]
		code, out, errs = s.runToEnd(t, "probe", "x")
		require.Zero(t, code, errs)
		require.Regexp(t, `^MODE +ID +ADDRESS +HELD FOR +LABEL\nexclusive +`+id+` +127\.0\.0\.1:\d+ +\S*\d+\S*s +`+p.label(t)+`\n$`, out)
		code, out, errs = s.runToEnd(t, "probe", "--json", "x")
		require.Zero(t, code, errs)
		var r probeOutput
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		require.Equal(t, "x", r.Name)
		require.False(t, r.Free)
		require.Len(t, r.Holders, 1)
		require.Equal(t, id, r.Holders[0].ID)
		require.Equal(t, "exclusive", r.Holders[0].Mode)
		require.Equal(t, p.label(t), r.Holders[0].Label)
		require.Positive(t, r.Holders[0].HeldMS)
		require.NotEmpty(t, r.Holders[0].Address)
		require.Len(t, s.holders(t, "x"), 1, "it changes nothing")
	})
}

// A participant that does not answer may hold the lock, so the lock is not free.
func TestProbeOfASilentParticipant(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		silent := s.admin.Subscribe(t.Context(), "x")
		defer silent.Close()
		_, err := silent.Receive(t.Context())
		require.NoError(t, err)
		code, out, errs := s.runToEnd(t, "probe", "x", "--json")
		require.Equal(t, exitUnavailable, code)
		require.Equal(t, `{"name":"x","free":false,"holders":[]}`+"\n", out)
		require.Contains(t, errs, "did not answer")
	})
}

func TestServe(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		p := server{}.start(t, "serve", "--addr", "127.0.0.1:0")
		line := p.prints(t, 1)[0]
		require.Regexp(t, `^serving locks at redis://127\.0\.0\.1:\d+ `, line)
		s := server{url: strings.Fields(line)[3]}

		code, out, errs := s.runToEnd(t, "run", "x", "--", binary, "probe", "x", "--json")
		require.Zero(t, code, errs)
		require.Contains(t, out, `"mode":"exclusive"`)

		code, _, errs = server{}.runToEnd(t, "serve", "--addr", strings.TrimPrefix(s.url, "redis://"))
		require.Equal(t, exitUnavailable, code)
		require.Contains(t, errs, "is taken, perhaps by a Redis")
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)

		p.signal(t, sig)
		require.Zero(t, p.code(t))
		require.Empty(t, p.err(t))
	}
}

func TestDemo(t *testing.T) {
	p := server{}.start(t, "demo")
	require.Zero(t, p.code(t))
	require.NotContains(t, p.out(t), "FAIL")
	require.Equal(t, 8, strings.Count(p.out(t), "\nok  "))
	require.Empty(t, p.err(t))
	t.Log("\n" + p.out(t))
}

func TestDemoLeavesNoProcesses(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		p := server{}.start(t, "demo")
		p.prints(t, 1)
		contenders := children(p.pid())
		require.NotEmpty(t, contenders)
		p.signal(t, sig)
		require.NotZero(t, p.code(t))
		awaitDead(t, contenders...)
	}
}

func TestOverlappingHoldsAreCounted(t *testing.T) {
	at := func(from, to int) holdSpan { return holdSpan{from: moment(from), to: moment(to)} }
	require.Zero(t, countOverlaps([]holdSpan{at(5, 6), at(1, 3), at(3, 5)}))
	require.Equal(t, 1, countOverlaps([]holdSpan{at(1, 3), at(2, 5)}))
	require.Equal(t, 1, countOverlaps([]holdSpan{{from: moment(1)}, at(2, 5)}), "a hold without an end")
}

func TestTokensAreCompared(t *testing.T) {
	at := func(from int, token int64) holdSpan { return holdSpan{from: moment(from), token: token} }
	require.True(t, tokensRise([]holdSpan{at(3, 9), at(1, 7), at(2, 8)}))
	require.False(t, tokensRise([]holdSpan{at(1, 7), at(2, 7)}))
	require.False(t, tokensRise([]holdSpan{at(1, 7), at(2, 0)}), "a hold without a token")
}

func TestHelpNamesEveryExitCode(t *testing.T) {
	code, out, _ := server{}.runToEnd(t, "run", "--help")
	require.Zero(t, code)
	for _, c := range []int{exitUsage, exitUnavailable, exitMachine, exitHeld, exitLost, exitCannotRun, exitNotFound} {
		require.Regexp(t, `(?m)^ +`+itoa(c)+` `, out)
	}
}

func moment(n int) time.Time { return time.Unix(int64(n), 0) }

package interop

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether"
	"github.com/tetherlock/tether/internal/redistest"
	"github.com/tetherlock/tether/wire"
)

var rewrite = flag.Bool("rewrite", false, "write the transcript anew")

const transcript = "testdata/transcript.txt"

// scenario is one section: a client whose commands go through the proxy and are
// written down, and another client.
type scenario struct {
	t       *testing.T
	server  *redistest.Server
	proxy   *proxy
	client  *tether.Client // through the proxy
	other   *tether.Client
	rdb     *redis.Client
	elected chan struct{} // of client
}

const lockName = "orders"

// TestTranscript compares what is sent in each scenario with the golden file. With
// -rewrite it writes the file.
func TestTranscript(t *testing.T) {
	redistest.Require(t)
	var b strings.Builder
	b.WriteString(preface)
	for _, s := range scenarios {
		fmt.Fprintf(&b, "\n# %s\n", s.title)
		b.WriteString(run(t, s.run, s.word, s.times))
	}
	if *rewrite {
		require.NoError(t, os.WriteFile(transcript, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(transcript)
	require.NoError(t, err)
	compare(t, strings.Split(string(want), "\n"), strings.Split(b.String(), "\n"))
}

// compare fails at the first line that differs. A difference of the whole file
// would be too long to read.
func compare(t *testing.T, want, got []string) {
	t.Helper()
	for i := range min(len(want), len(got)) {
		require.Equal(t, want[i], got[i], "%s:%d", transcript, i+1)
	}
	require.Len(t, got, len(want))
}

// preface explains the file and has the text of the scripts.
var preface = fmt.Sprintf(`What tether sends, command by command, each connection on its own. Words that
hold spaces or quotes stand in back quotes, everything else is as it is sent.
Ids are replaced: <a>, <b>, ... are holder ids and <r1>, <r2>, ... the ids of
response channels, in the order in which they appear. <waiters> is the beginning of
the SHA-256 of the lock's name. <n> is a number that differs from run to run. A
line with + was sent once or more. <probe>, <fence> and <wake> stand for these
scripts, or for their SHA-1 after EVALSHA:

<probe>:
%s
<fence>:
%s
<wake>:
%s`, indent(wire.ProbeScript), indent(wire.FenceScript), indent(wire.WakeScript))

func indent(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") + "\n" }

// run runs a scenario on a server of its own and returns what was sent.
func run(t *testing.T, scenario func(*scenario), word string, times int) string {
	for range 20 {
		s := newScenario(t, redistest.Start(t))
		scenario(s)
		if sent := s.proxy.sent(); word == "" || s.count(word) == times {
			return format(sent)
		}
	}
	require.FailNow(t, "the scenario never has the expected commands")
	return ""
}

func newScenario(t *testing.T, server *redistest.Server) *scenario {
	s := &scenario{t: t, server: server, proxy: startProxy(t, server.Addr), rdb: server.Client(t), elected: make(chan struct{}, 64)}
	recorded := redis.NewClient(&redis.Options{Addr: s.proxy.listener.Addr().String()})
	s.client = tether.New(recorded, tether.WithObserver(func(e tether.Event) {
		if _, ok := e.(tether.ElectedEvent); ok {
			s.elected <- struct{}{}
		}
	}))
	s.other = tether.New(server.Client(t))
	t.Cleanup(func() {
		require.NoError(t, s.client.Close())
		require.NoError(t, s.other.Close())
		require.NoError(t, recorded.Close())
	})
	return s
}

var id32 = regexp.MustCompile(`\b[0-9a-f]{32}\b`)

// format formats what was sent. What differs from run to run is replaced.
func format(connections [][][]string) string {
	var b strings.Builder
	for i, commands := range connections {
		if i > 0 {
			b.WriteString("-- another connection\n")
		}
		var last string
		var lines []string
		for _, words := range commands {
			line := formatCommand(words)
			switch {
			case line != last:
				lines = append(lines, "  "+line)
			default:
				lines[len(lines)-1] = "+ " + line
			}
			last = line
		}
		b.WriteString(strings.Join(append(lines, ""), "\n"))
	}
	return changingNumbers.ReplaceAllString(replaceIDs(b.String()), `$1<n>`)
}

var changingNumbers = regexp.MustCompile(`("held":|CLIENT KILL ID )[0-9]+`)

// formatCommand formats a command on one line.
func formatCommand(words []string) string {
	var list []string
	for i, w := range words {
		if i == 1 && strings.HasPrefix(words[0], "EVAL") {
			w = scriptName(w)
		}
		if w == "" || strings.ContainsAny(w, ` "`+"\n") {
			w = "`" + w + "`"
		}
		list = append(list, w)
	}
	return strings.Join(list, " ")
}

// scriptName replaces the text or the hash of a script by its name.
func scriptName(w string) string {
	for name, text := range map[string]string{
		"<probe>": wire.ProbeScript, "<fence>": wire.FenceScript, "<wake>": wire.WakeScript,
	} {
		if w == text || w == redis.NewScript(text).Hash() {
			return name
		}
	}
	return w
}

// replaceIDs replaces ids by names, in the order in which they appear.
func replaceIDs(text string) string {
	names := map[string]string{strings.TrimPrefix(wire.WaitersChannel(lockName), lockName+"-"): "<waiters>"}
	for _, m := range responseIDs.FindAllStringSubmatch(text, -1) {
		if names[m[1]] == "" {
			names[m[1]] = fmt.Sprintf("<r%d>", len(names))
		}
	}
	next := 'a'
	return id32.ReplaceAllStringFunc(text, func(id string) string {
		if names[id] == "" {
			names[id] = fmt.Sprintf("<%c>", next)
			next++
		}
		return names[id]
	})
}

var responseIDs = regexp.MustCompile(`"response_channel":"[^"]*-([0-9a-f]{32})"`)

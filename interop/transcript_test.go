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

// scene is one situation: a client whose words are recorded, and others.
type scene struct {
	t        *testing.T
	server   *redistest.Server
	recorder *recorder
	client   *tether.Client // recorded
	other    *tether.Client
	rdb      *redis.Client
	elected  chan struct{} // the recorded client's
}

const stage = "orders" // the lock's name in all scenes

// TestTranscript holds what is sent in each situation to the golden file.
func TestTranscript(t *testing.T) {
	redistest.Require(t)
	var b strings.Builder
	b.WriteString(preface)
	for _, s := range scenes {
		fmt.Fprintf(&b, "\n# %s\n", s.title)
		b.WriteString(play(t, s.play, s.word, s.times))
	}
	if *rewrite {
		require.NoError(t, os.WriteFile(transcript, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(transcript)
	require.NoError(t, err)
	compare(t, strings.Split(string(want), "\n"), strings.Split(b.String(), "\n"))
}

// compare names the first line that differs: the file is long.
func compare(t *testing.T, want, got []string) {
	t.Helper()
	for i := range min(len(want), len(got)) {
		require.Equal(t, want[i], got[i], "%s:%d", transcript, i+1)
	}
	require.Len(t, got, len(want))
}

// preface explains the file, and has the scripts in full.
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

// play plays a scene on a server of its own and returns what was sent.
func play(t *testing.T, scene func(*scene), word string, times int) string {
	for range 20 {
		s := newScene(t, redistest.Start(t))
		scene(s)
		if sent := s.recorder.sent(); word == "" || s.count(word) == times {
			return written(sent)
		}
	}
	require.FailNow(t, "the scene never goes as it should")
	return ""
}

func newScene(t *testing.T, server *redistest.Server) *scene {
	s := &scene{t: t, server: server, recorder: record(t, server.Addr), rdb: server.Client(t), elected: make(chan struct{}, 64)}
	recorded := redis.NewClient(&redis.Options{Addr: s.recorder.listener.Addr().String()})
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

// written is what was sent, with names for what differs from run to run.
func written(connections [][][]string) string {
	var b strings.Builder
	for i, commands := range connections {
		if i > 0 {
			b.WriteString("-- another connection\n")
		}
		var last string
		var lines []string
		for _, words := range commands {
			line := quoted(words)
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
	return numbered.ReplaceAllString(named(b.String()), `$1<n>`)
}

var numbered = regexp.MustCompile(`("held":|CLIENT KILL ID )[0-9]+`)

// quoted is a command on one line.
func quoted(words []string) string {
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

// scriptName is the name of a script, by its text or its hash.
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

// named gives the ids their names.
func named(text string) string {
	names := map[string]string{strings.TrimPrefix(wire.WaitersChannel(stage), stage+"-"): "<waiters>"}
	for _, m := range responses.FindAllStringSubmatch(text, -1) {
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

var responses = regexp.MustCompile(`"response_channel":"[^"]*-([0-9a-f]{32})"`)

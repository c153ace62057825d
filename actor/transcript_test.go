package actor

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/protocol"
)

var rewrite = flag.Bool("rewrite", false, "write the transcripts' expected output anew")

// TestTranscripts plays the files of testdata. In a file, a comment is kept, a
// block of commands ends with ----, and behind it stands what the machine did,
// up to an empty line. See CONTRIBUTING.md.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			got := play(t, string(text))
			if *rewrite {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
				return
			}
			require.Equal(t, string(text), got)
		})
	}
}

// play runs a transcript and returns it with the output that it gives.
func play(t *testing.T, text string) string {
	var out strings.Builder
	p := newPlayer(t)
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case line == "----":
			out.WriteString("----\n" + p.output())
			for i+1 < len(lines) && lines[i+1] != "" {
				i++
			}
		case line == "" || strings.HasPrefix(line, "#"):
			if i < len(lines)-1 {
				out.WriteString(line + "\n")
			}
		case line == "new" || strings.HasPrefix(line, "new "):
			p = newPlayer(t)
			out.WriteString(line + "\n")
		default:
			p.command(line)
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

// player drives one machine by the words of a transcript.
type player struct {
	t     *testing.T
	m     *Machine
	start time.Time
	now   time.Time
	lines []string
	asked int
}

func newPlayer(t *testing.T) *player {
	p := &player{t: t, start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	p.now = p.start
	p.m = NewMachine(Config{
		Channel:  "C",
		Response: func() string { p.asked++; return fmt.Sprintf("R%d", p.asked) },
		Jitter:   func() float64 { return 0.5 },
		Health:   10 * time.Second, Reply: 5 * time.Second,
	})
	return p
}

// command takes one line. "wait 5ms" lets time pass, "tick" lets it pass up to
// the deadline and tells the machine, everything else is an input.
func (p *player) command(line string) {
	words := strings.Fields(line)
	switch words[0] {
	case "wait":
		d, err := time.ParseDuration(words[1])
		require.NoError(p.t, err)
		p.now = p.now.Add(d)
		return
	case "tick":
		at := p.m.Deadline()
		require.False(p.t, at.IsZero(), "nothing is due")
		if at.After(p.now) {
			p.now = at
		}
	}
	for _, e := range p.m.Step(p.now, p.input(words)) {
		p.lines = append(p.lines, describe(e)...)
	}
}

// output is what has happened since it was last asked for.
func (p *player) output() string {
	var b strings.Builder
	for _, line := range p.lines {
		b.WriteString(line + "\n")
	}
	p.lines = nil
	due := "nothing due"
	if at := p.m.Deadline(); !at.IsZero() {
		due = "due in " + at.Sub(p.now).String()
	}
	fmt.Fprintf(&b, "= %s, %s, %s\n", p.m.State(), phaseNames[p.m.phase], due)
	return b.String()
}

var phaseNames = [...]string{
	resting: "resting", dialing: "dialing", joining: "joining", electing: "electing", elected: "elected",
	confirming: "confirming", doubting: "doubting", leaving: "leaving", sleeping: "sleeping", holding: "holding",
}

// input reads the words of an input.
func (p *player) input(words []string) Input {
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	rest := func(i int) string { return strings.Join(words[min(i, len(words)):], " ") }
	number := func(i int) int {
		n, err := strconv.Atoi(arg(i))
		require.NoError(p.t, err, "%v", words)
		return n
	}
	switch words[0] {
	case "tick":
		return Tick{}
	case "acquire":
		return Acquire{Call: arg(1), Try: false}
	case "try":
		return Acquire{Call: arg(1), Try: true}
	case "cancel":
		return Cancel{Call: arg(1), Cause: errors.New("context ended")}
	case "reclaimed":
		return Reclaimed{Call: arg(1), Cause: errors.New("context ended")}
	case "release":
		return Release{Hold: arg(1)}
	case "abandon":
		return Abandon{Hold: arg(1), Cause: errors.New("context ended")}
	case "close":
		return Close{}
	case "orphan":
		return Orphan{}
	case "dialed":
		return Dialed{Dial: p.m.link.dial, ID: arg(2), Fresh: arg(1) == "fresh"}
	case "dial-failed":
		return DialFailed{Dial: p.m.link.dial, Err: errors.New(rest(1))}
	case "disconnected":
		return Disconnected{Err: errors.New(rest(1))}
	case "subscribed":
		return Subscribed{Channel: arg(1)}
	case "unsubscribed":
		return Unsubscribed{Channel: arg(1)}
	case "ping":
		return Pinged{Response: arg(1)}
	case "answer":
		return Answered{Response: arg(1), Record: p.record(words[2:])}
	case "count":
		return Counted{N: number(1)}
	case "probe":
		return Probed{N: number(1)}
	case "hello":
		return Greeted{Role: arg(1), Mode: arg(2)}
	case "done":
		return Done{}
	case "error":
		return Failed{Command: p.op(arg(1)), Message: rest(2)}
	case "rotated":
		return Rotated{}
	case "master-moved":
		return MasterMoved{Err: errors.New(rest(1))}
	}
	p.t.Fatalf("unknown command %q", words)
	return nil
}

func (p *player) op(name string) Op {
	for op := Login; op <= Answer; op++ {
		if op.String() == name && !(op == Login && p.m.link.heard) {
			return op
		}
	}
	p.t.Fatalf("unknown operation %q", name)
	return 0
}

// record reads "<id> <mode> [elected|unstated] [joining]", or "legacy".
func (p *player) record(words []string) protocol.Record {
	if words[0] == "legacy" {
		return protocol.Record{Mode: protocol.Exclusive, Legacy: true}
	}
	mode, ok := protocol.ParseMode(words[1])
	require.True(p.t, ok, "%v", words)
	r := protocol.Record{ID: words[0], Mode: mode, Election: protocol.NotElected}
	for _, w := range words[2:] {
		switch w {
		case "elected":
			r.Election = protocol.Elected
		case "4.1":
			r.Election = protocol.Unstated
		case "joining":
			r.Joining = true
		default:
			p.t.Fatalf("unknown word %q", w)
		}
	}
	return r
}

// describe writes an effect down.
func describe(e Effect) []string {
	switch e := e.(type) {
	case Dial:
		if e.Fresh {
			return []string{fmt.Sprintf("dial %d, no idle socket", e.Dial)}
		}
		return []string{fmt.Sprintf("dial %d", e.Dial)}
	case CancelDial:
		return []string{"cancel dial"}
	case Drop:
		return []string{"close the socket"}
	case Park:
		return []string{"park the socket"}
	case Stop:
		return []string{"stop"}
	case Send:
		var lines []string
		for _, c := range e.Commands {
			lines = append(lines, "> "+describeCommand(c))
		}
		return lines
	case Grant:
		return []string{fmt.Sprintf("GRANT %v id=%s trips=%d waited=%v", e.Call, e.ID, e.RoundTrips, e.Waited)}
	case Refuse:
		return []string{fmt.Sprintf("REFUSE %v %s", e.Call, describeRefusal(e.Refusal))}
	case Reclaim:
		return []string{fmt.Sprintf("RECLAIM %v", e.Call)}
	case End:
		if e.Loss == nil {
			return []string{"END released"}
		}
		return []string{fmt.Sprintf("END lost: %v", e.Loss)}
	case Released:
		if e.Err != nil {
			return []string{fmt.Sprintf("RELEASED %v: %v", e.Hold, e.Err)}
		}
		return []string{fmt.Sprintf("RELEASED %v", e.Hold)}
	case Notify:
		return []string{"event " + describeEvent(e.Event)}
	}
	return []string{fmt.Sprintf("%#v", e)}
}

func describeCommand(c Command) string {
	words := []string{c.Op.String()}
	if c.Op == Login {
		words[0] = "HELLO AUTH"
	}
	if c.Op == Count {
		words = append(words, "NUMSUB C")
	}
	if c.Channel != "" {
		words = append(words, c.Channel)
	}
	switch c.Naming {
	case LockName:
		words = append(words, "name=lock")
	case IdleName:
		words = append(words, "name=idle")
	case KeepName:
	}
	if c.Op == Answer {
		words = append(words, describeRecord(c.Record))
	}
	return strings.Join(words, " ")
}

func describeRecord(r protocol.Record) string {
	s := r.ID + "/" + r.Mode.String()
	switch r.Election {
	case protocol.Elected:
		s += "/elected"
	case protocol.Unstated:
		s += "/4.1"
	case protocol.NotElected:
	}
	if r.Joining {
		s += "/joining"
	}
	if r.Held > 0 {
		s += fmt.Sprintf("/held %dms", r.Held)
	}
	return s
}

var whys = [...]string{
	Contended: "contended", Inconclusive: "inconclusive", Cancelled: "cancelled", Shut: "shut", Broken: "broken",
}

func describeRefusal(r Refusal) string {
	var s strings.Builder
	s.WriteString(whys[r.Why])
	if r.Cause != nil {
		s.WriteString(": " + r.Cause.Error())
	}
	if r.Self {
		s.WriteString("; held by this lock")
	}
	for _, h := range r.Holders {
		s.WriteString("; holder " + describeRecord(h))
	}
	if r.Silent > 0 {
		s.WriteString(fmt.Sprintf("; %d silent", r.Silent))
	}
	if r.Trouble != nil {
		s.WriteString("; trouble: " + r.Trouble.Error())
	}
	return s.String()
}

func describeEvent(e Event) string {
	switch e := e.(type) {
	case Waiting:
		var s strings.Builder
		s.WriteString("waiting")
		for _, h := range e.Holders {
			s.WriteString(" " + describeRecord(h))
		}
		if e.Silent > 0 {
			s.WriteString(fmt.Sprintf(" (%d silent)", e.Silent))
		}
		return s.String()
	case AttemptFailed:
		return fmt.Sprintf("attempt failed: %v; retry in %v", e.Err, e.Retry)
	case Checked:
		if e.Err != nil {
			return "health: " + e.Err.Error()
		}
		return "healthy"
	case Lost:
		return "lost: " + e.Err.Error()
	}
	return strings.TrimPrefix(strings.ToLower(strings.SplitN(fmt.Sprintf("%T", e), ".", 2)[1]), "actor.")
}

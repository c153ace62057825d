package actor

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/protocol"
)

var rewrite = flag.Bool("rewrite", false, "replace the transcripts' expected output by the actual one")

// TestTranscripts replays the files of testdata and compares the machine's output
// with theirs. A block of inputs ends with ----, the output follows, and an empty
// line ends it. CONTRIBUTING.md describes the language.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			got := replay(t, string(text))
			if *rewrite {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
				return
			}
			require.Equal(t, string(text), got)
		})
	}
}

// replay runs the inputs of a transcript and returns it with the actual output.
func replay(t *testing.T, text string) string {
	var out strings.Builder
	p := newReplayer(t)
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
			p = newReplayer(t, strings.Fields(line)[1:]...)
			out.WriteString(line + "\n")
		default:
			p.command(line)
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

// replayer runs the inputs of a transcript on one machine.
type replayer struct {
	t          *testing.T
	m          *Machine
	lease      *Lease // instead of m
	start      time.Time
	now        time.Time
	lines      []string
	nextName   int
	unanswered []Command // the server's replies to these have not come
}

// newReplayer makes a machine. The options of a presence lock are shared, fenced,
// once, db=1, label=x, self-check=3s and max-wait=1s, those of a lease are lease
// and max-wait=1s.
func newReplayer(t *testing.T, options ...string) *replayer {
	has := func(option string) bool { return slices.Contains(options, option) }
	p := &replayer{t: t, start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	p.now = p.start
	if has("lease") {
		p.lease = NewLease(LeaseConfig{
			ID: func() string { p.nextName++; return fmt.Sprintf("k%d", p.nextName) }, Jitter: func() float64 { return 0.5 },
			TTL: 60 * time.Second, Renew: 20 * time.Second, Poll: 100 * time.Millisecond,
			MaxWait: option[time.Duration](t, options, "max-wait"),
		})
		return p
	}
	p.m = NewMachine(Config{
		Channel: "C", Waiters: func() string { return "WAIT" }, WakeChannel: func(id string) string { return "W" + id },
		Response: func() string { p.nextName++; return fmt.Sprintf("R%d", p.nextName) },
		Jitter:   func() float64 { return 0.5 },
		Health:   10 * time.Second, Reply: 5 * time.Second, Unavailable: time.Second, Poll: 100 * time.Millisecond,
		Shared: has("shared"), Fenced: has("fenced"), DB: option[int](t, options, "db"), Once: has("once"),
		Label: option[string](t, options, "label"), SelfCheck: option[time.Duration](t, options, "self-check"),
		MaxWait: option[time.Duration](t, options, "max-wait"),
	})
	return p
}

// option reads an option of the form key=value. A missing one has the zero value.
func option[T any](t *testing.T, options []string, key string) (v T) {
	for _, o := range options {
		text, ok := strings.CutPrefix(o, key+"=")
		if !ok {
			continue
		}
		switch p := any(&v).(type) {
		case *string:
			*p = text
		case *int:
			n, err := strconv.Atoi(text)
			require.NoError(t, err)
			*p = n
		case *time.Duration:
			d, err := time.ParseDuration(text)
			require.NoError(t, err)
			*p = d
		}
	}
	return v
}

// command runs one line of inputs. "wait 5ms" advances the clock, "tick" advances
// it to the deadline and feeds a Tick, "replies" feeds the replies that have only
// one possible content, up to the first command whose reply has several. Every
// other line is one input.
func (p *replayer) command(line string) {
	words := strings.Fields(line)
	switch words[0] {
	case "wait":
		d, err := time.ParseDuration(words[1])
		require.NoError(p.t, err)
		p.now = p.now.Add(d)
		return
	case "replies":
		p.replies()
		return
	case "tick":
		at := p.machine().Deadline()
		require.False(p.t, at.IsZero(), "nothing is due")
		if at.After(p.now) {
			p.now = at
		}
	}
	p.feed(p.input(words))
}

func (p *replayer) feed(in Input) {
	p.removeAnswered(in)
	p.machine().Shed()
	for _, e := range p.machine().Step(p.now, in) {
		p.lines = append(p.lines, describeEffect(e)...)
		switch e := e.(type) {
		case *Send:
			p.unanswered = append(p.unanswered, e.Commands...)
		case Drop, Park:
			p.unanswered = nil
		}
	}
}

// removeAnswered removes the command that an input is the reply to.
func (p *replayer) removeAnswered(in Input) {
	ops := map[string][]Op{
		"Subscribed": {Subscribe}, "Unsubscribed": {Unsubscribe}, "Counted": {Count, CountAndDraw}, "Polled": {Poll},
		"Probed": {Probe, ProbeAndDraw}, "WaitersCounted": {CountWaiters}, "Waked": {Wake}, "Listed": {List}, "Killed": {Kill},
		"Greeted": {Hello}, "Done": {Login, Auth, Select, Answer, SelfPing, WakeReaders},
	}[strings.TrimPrefix(fmt.Sprintf("%T", in), "actor.")]
	if f, ok := in.(Failed); ok {
		ops = []Op{f.Command}
	}
	if i := slices.IndexFunc(p.unanswered, func(c Command) bool { return slices.Contains(ops, c.Op) }); i >= 0 {
		p.unanswered = slices.Delete(p.unanswered, i, i+1)
	}
}

// replies feeds the replies that have only one possible content.
func (p *replayer) replies() {
	for len(p.unanswered) > 0 {
		switch c := p.unanswered[0]; c.Op {
		case Subscribe:
			p.feed(Subscribed{c.Channel})
		case Unsubscribe:
			p.feed(Unsubscribed{c.Channel})
		case Hello:
			p.feed(Greeted{"master", "standalone"})
		case Login, Auth, Select, Answer, SelfPing, WakeReaders:
			p.feed(Done{})
		case Count, CountAndDraw, Poll, Probe, ProbeAndDraw, CountWaiters, Wake, List, Kill:
			return
		}
	}
}

// output returns the effects since its last call, and the state.
func (p *replayer) output() string {
	var b strings.Builder
	for _, line := range p.lines {
		b.WriteString(line + "\n")
	}
	p.lines = nil
	due := "nothing due"
	if at := p.machine().Deadline(); !at.IsZero() {
		due = "due in " + at.Sub(p.now).String()
	}
	phase := ""
	if p.lease != nil {
		phase = leasePhaseNames[p.lease.phase]
	} else {
		phase = phaseNames[p.m.phase]
	}
	fmt.Fprintf(&b, "= %s, %s, %s\n", p.machine().State(), phase, due)
	return b.String()
}

func (p *replayer) machine() machine {
	if p.lease != nil {
		return p.lease
	}
	return p.m
}

var leasePhaseNames = [...]string{
	leaseResting: "resting", leaseAsking: "asking", leaseSleeping: "sleeping", leaseHolding: "holding", leaseEnding: "ending",
}

var phaseNames = [...]string{
	resting: "resting", dialing: "dialing", joining: "joining", electing: "electing", elected: "elected",
	confirming: "confirming", reconfirming: "reconfirming", leaving: "leaving", sleeping: "sleeping", holding: "holding",
}

// input parses an input.
func (p *replayer) input(words []string) Input {
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
	case "close-hold":
		return Release{Hold: arg(1), Loss: ErrClosed}
	case "abandon":
		return Abandon{Hold: arg(1), Cause: errors.New("context ended")}
	case "check-owned":
		return CheckOwned{Hold: arg(1), Call: arg(2)}
	case "close":
		return Close{}
	case "unreferenced":
		return Unreferenced{}
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
		return Pinged{Ping: p.ping(words[1:])}
	case "answer":
		record, queue := p.record(words[2:])
		return Answered{Response: arg(1), Record: record, Queue: queue}
	case "wake":
		return Woken{Wake: protocol.Wake{Queue: p.queue(arg(1))}}
	case "wake-readers":
		return Woken{Wake: protocol.Wake{Readers: true}}
	case "count":
		return Counted{N: number(1), Token: int64(option[int](p.t, words, "token"))}
	case "poll":
		return Polled{N: number(1), Sleepers: number(2)}
	case "probe":
		return Probed{N: number(1), Token: int64(option[int](p.t, words, "token"))}
	case "waiters":
		var counts []int
		for i := range words[1:] {
			counts = append(counts, number(i+1))
		}
		return WaitersCounted{Counts: counts}
	case "waked":
		return Waked{N: number(1)}
	case "list":
		return Listed{Connections: p.connections(words[1:])}
	case "killed":
		return Killed{N: number(1)}
	case "hello":
		return Greeted{Role: arg(1), Mode: arg(2)}
	case "done":
		return Done{}
	case "error":
		op, text := p.op(arg(1))
		return Failed{Command: op, Text: text, Message: rest(2)}
	case "ran": // <number> ok [token=7] | taken <holder> <ttl> | error <text> | fault <text>
		in := Ran{Num: number(1)}
		switch arg(2) {
		case "ok":
			in.Reply = LeaseReply{OK: true, Token: int64(option[int](p.t, words, "token"))}
		case "taken":
			ttl, err := time.ParseDuration(arg(4))
			require.NoError(p.t, err)
			in.Reply = LeaseReply{Holder: arg(3), TTL: ttl}
		case "fault":
			in.Err = ReplyFault("EVALSHA", rest(3))
		default:
			in.Err = errors.New(rest(3))
		}
		return in
	case "key-released":
		return KeyReleased{}
	case "slept":
		d, err := time.ParseDuration(arg(1))
		require.NoError(p.t, err)
		return Slept{d}
	case "rotated":
		return Rotated{}
	case "master-moved":
		return MasterMoved{Err: errors.New(rest(1))}
	}
	p.t.Fatalf("unknown command %q", words)
	return nil
}

// commandNames are the names of commands in transcripts.
var commandNames = [...]string{
	Login: "HELLO-AUTH", Hello: "HELLO", Auth: "AUTH", Select: "SELECT", Subscribe: "SUBSCRIBE", Unsubscribe: "UNSUBSCRIBE",
	Count: "COUNT", CountAndDraw: "COUNT-AND-DRAW", Poll: "POLL", Probe: "PROBE", ProbeAndDraw: "PROBE-AND-DRAW", SelfPing: "SELF-PING", Answer: "ANSWER",
	Wake: "WAKE", WakeReaders: "WAKE-READERS", CountWaiters: "COUNT-WAITERS", List: "LIST", Kill: "KILL",
}

// op parses the name of a command. The suffix -TEXT stands for a script that was
// sent with its text.
func (p *replayer) op(name string) (op Op, text bool) {
	name, text = strings.CutSuffix(name, "-TEXT")
	i := slices.Index(commandNames[:], name)
	require.Positive(p.t, i, "unknown command %q", name)
	return Op(i), text
}

// queue parses "b:x,c:s": waiters, and whether they want an exclusive or a shared
// hold.
func (p *replayer) queue(text string) (q protocol.Queue) {
	for entry := range strings.SplitSeq(text, ",") {
		if id, want, ok := strings.Cut(entry, ":"); ok {
			q = append(q, protocol.Waiter{ID: id, Want: p.want(want)})
		}
	}
	return q
}

func (p *replayer) want(letter string) protocol.Mode {
	if letter == "s" {
		return protocol.Shared
	}
	require.Equal(p.t, "x", letter)
	return protocol.Exclusive
}

// ping parses "<response> [from <id> [x|s [first <queue>]]]".
func (p *replayer) ping(words []string) protocol.Ping {
	ping := protocol.Ping{Response: words[0]}
	if len(words) >= 3 && words[1] == "from" {
		ping.ID = words[2]
	}
	if len(words) >= 4 && words[1] == "from" {
		ping.Want = p.want(words[3])
	}
	if i := slices.Index(words, "first"); i > 0 {
		ping.First, ping.Queue = true, p.queue(strings.Join(words[i+1:], ""))
	}
	return ping
}

// connections parses words of the forms "<num>:<id>", "<num>:legacy" and "<num>:".
func (p *replayer) connections(words []string) (list []Connection) {
	for _, w := range words {
		num, id, ok := strings.Cut(w, ":")
		n, err := strconv.ParseInt(num, 10, 64)
		require.True(p.t, ok && err == nil, w)
		c := Connection{Num: n, ID: id, Addr: "addr" + num}
		if id == "legacy" {
			c.ID, c.Legacy = "", true
		}
		list = append(list, c)
	}
	return list
}

// record parses "<id> <mode>" and words for the other fields, or "legacy".
func (p *replayer) record(words []string) (r protocol.Record, q protocol.Queue) {
	if words[0] == "legacy" {
		return protocol.Record{Mode: protocol.Exclusive, Legacy: true}, nil
	}
	mode, ok := protocol.ParseMode(words[1])
	require.True(p.t, ok, "%v", words)
	r = protocol.Record{ID: words[0], Mode: mode, Election: protocol.NotElected}
	r.Place = option[int](p.t, words, "place")
	r.Label = option[string](p.t, words, "label")
	for _, w := range words[2:] {
		switch {
		case w == "elected":
			r.Election = protocol.Elected
		case w == "4.1":
			r.Election = protocol.Unstated
		case w == "joining":
			r.Joining = true
		case strings.HasPrefix(w, "db="):
			r.Fenced, r.DB = true, option[int](p.t, words, "db")
		case strings.HasPrefix(w, "queue="):
			q = p.queue(w[len("queue="):])
		case strings.HasPrefix(w, "place="), strings.HasPrefix(w, "label="):
		default:
			p.t.Fatalf("unknown word %q", w)
		}
	}
	return r, q
}

// describeEffect formats an effect, one line or several.
func describeEffect(e Effect) []string {
	switch e := e.(type) {
	case Dial:
		if e.Fresh {
			return []string{fmt.Sprintf("dial %d, not an idle socket", e.Dial)}
		}
		return []string{fmt.Sprintf("dial %d", e.Dial)}
	case Run:
		return []string{fmt.Sprintf("> %d %s %s", e.Num, leaseOps[e.Op], e.ID)}
	case Hear:
		if e.On {
			return []string{"listen for releases"}
		}
		return []string{"stop listening"}
	case CancelDial:
		return []string{"cancel dial"}
	case Drop:
		return []string{"close the socket"}
	case Park:
		if e.Last {
			return []string{"park the socket, last"}
		}
		return []string{"park the socket"}
	case Stop:
		return []string{"stop"}
	case *Send:
		var lines []string
		for _, c := range e.Commands {
			lines = append(lines, "> "+describeCommand(c))
		}
		return lines
	case Grant:
		return []string{fmt.Sprintf("GRANT %v id=%s%s", e.Call, e.ID, describeToken(e.Token))}
	case Refuse:
		return []string{fmt.Sprintf("REFUSE %v %s", e.Call, describeRefusal(e.Refusal))}
	case Reclaim:
		return []string{fmt.Sprintf("RECLAIM %v", e.Call)}
	case End:
		if e.Loss == nil {
			return []string{fmt.Sprintf("END %v released", e.Hold)}
		}
		return []string{fmt.Sprintf("END %v lost: %v", e.Hold, e.Loss)}
	case Released:
		if e.Err != nil {
			return []string{fmt.Sprintf("RELEASED %v: %v", e.Hold, e.Err)}
		}
		return []string{fmt.Sprintf("RELEASED %v", e.Hold)}
	case OwnedAnswer:
		return []string{fmt.Sprintf("OWNED %v %v", e.Call, e.Owned)}
	case Notify:
		return []string{"event " + describeEvent(e.Event)}
	}
	return []string{fmt.Sprintf("%#v", e)}
}

func describeToken(token int64) string {
	if token == 0 {
		return ""
	}
	return fmt.Sprintf(" token=%d", token)
}

var leaseOps = [...]string{TakeKey: "TAKE", RenewKey: "RENEW", CheckKey: "CHECK", DropKey: "DROP"}

func describeCommand(c Command) string {
	words := []string{commandNames[c.Op]}
	if c.Text {
		words[0] += "-TEXT"
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
	if p := c.Ping; p != nil {
		words = append(words, p.Response)
		if p.ID != "" {
			words = append(words, "from "+p.ID)
		}
		if p.Want != 0 {
			words = append(words, describeWant(p.Want))
		}
		if p.First {
			words = append(words, "first")
		}
		words = append(words, describeQueue(p.Queue)...)
	}
	if c.Op == Answer {
		words = append(words, describeRecord(*c.Record))
	}
	words = append(words, describeQueue(c.Queue)...)
	if c.Num != 0 {
		words = append(words, strconv.FormatInt(c.Num, 10))
	}
	return strings.Join(words, " ")
}

func describeWant(m protocol.Mode) string {
	if m == protocol.Shared {
		return "s"
	}
	return "x"
}

// describeQueue formats a queue as one word, an empty one as none.
func describeQueue(q protocol.Queue) []string {
	if len(q) == 0 {
		return nil
	}
	var entries []string
	for _, w := range q {
		entries = append(entries, w.ID+":"+describeWant(w.Want))
	}
	return []string{"[" + strings.Join(entries, ",") + "]"}
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
	if r.TTL != 0 {
		s += fmt.Sprintf("/ttl %dms", r.TTL)
	}
	if r.Label != "" {
		s += "/" + r.Label
	}
	if r.Fenced {
		s += fmt.Sprintf("/db %d", r.DB)
	}
	if r.Place > 0 {
		s += fmt.Sprintf("/place %d", r.Place)
	}
	return s
}

var reasonNames = [...]string{
	Contended: "contended", Inconclusive: "inconclusive", Cancelled: "cancelled", LockClosed: "lock closed", AttemptError: "attempt error",
	Expired: "expired",
}

func describeRefusal(r Refusal) string {
	var s strings.Builder
	s.WriteString(reasonNames[r.Reason])
	if r.Cause != nil {
		s.WriteString(": " + r.Cause.Error())
	}
	if r.OwnHold {
		s.WriteString("; held by this lock")
	}
	for _, h := range r.Holders {
		s.WriteString("; holder " + describeRecord(h))
	}
	if r.Silent > 0 {
		s.WriteString(fmt.Sprintf("; %d silent for %v of %v, %v", r.Silent, r.SilentFor, r.Unavailable, r.ReapState))
	}
	for _, c := range r.SilentConns {
		s.WriteString("; silent connection " + describeConnection(c))
	}
	if r.ReapErr != nil {
		s.WriteString("; reap error: " + r.ReapErr.Error())
	}
	if r.LastErr != nil {
		s.WriteString("; last error: " + r.LastErr.Error())
	}
	return s.String()
}

func describeConnection(c Connection) string {
	name := c.ID
	if c.Legacy {
		name = "legacy"
	}
	return fmt.Sprintf("%d:%s at %s", c.Num, name, c.Addr)
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
		if e.Place > 0 {
			s.WriteString(fmt.Sprintf(", place %d", e.Place))
		}
		return s.String()
	case Granted:
		return fmt.Sprintf("granted round-trips=%d waited=%v%s", e.RoundTrips, e.Waited, describeToken(e.Token))
	case Reaped:
		return "reaped " + describeConnection(e.Connection)
	case ReapDenied:
		return "reap denied: " + e.Err.Error()
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

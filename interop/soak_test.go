package interop

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/internal/redistest"
)

// soakTime is how long each soak lasts: TETHER_SOAK, or a few seconds.
func soakTime(t testing.TB) time.Duration {
	t.Helper()
	given := os.Getenv("TETHER_SOAK")
	if given == "" {
		return 5 * time.Second
	}
	d, err := time.ParseDuration(given)
	require.NoError(t, err)
	return d
}

// TestSoak lets processes of both sides contend for one lock, as readers and
// writers, and kills one of them now and then. Overlaps are looked for in a
// journal outside of Redis. Portalocker counts and pings in two steps, so that
// it may be granted beside a holder now and then; tether must never be the
// second one.
func TestSoak(t *testing.T) {
	for _, p := range pythons {
		if p.version != newest && p.version != v41 {
			continue
		}
		for _, style := range []string{waits, comesAndGoes} {
			t.Run(p.String()+", tether "+style, func(t *testing.T) {
				p.interpreter(t)
				soak(t, p, style)
			})
		}
	}
}

// Portalocker 4.1 hardly gets anywhere when many contend: it gives an attempt up
// after a second if anybody has left since it counted. So it has more room.
func (c *crew) perSide() int {
	if c.python.tells {
		return 3
	}
	return 2
}

func (c *crew) pause() seconds {
	if c.python.tells {
		return 0.1
	}
	return 0.3
}

// crew are the processes of a soak.
type crew struct {
	python  python
	style   string
	server  *redistest.Server
	journal string
	end     time.Time
	lives   int
}

// part is what one process plays, through all its lives.
type part struct {
	tether bool
	peer   *peer
	who    string
	over   <-chan answer
}

func soak(t *testing.T, p python, style string) {
	c := &crew{python: p, style: style, server: redistest.Start(t), journal: filepath.Join(t.ArtifactDir(), "journal")}
	c.end = time.Now().Add(soakTime(t))
	journal, err := os.OpenFile(c.journal, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(t, err)
	defer journal.Close()

	var parts []*part
	for i := range 2 * c.perSide() {
		parts = append(parts, c.play(t, &part{tether: i%2 == 0}))
	}
	for time.Until(c.end) > 2*time.Second {
		<-time.After(time.Duration(rand.Int64N(int64(3 * time.Second))))
		victim := parts[rand.IntN(len(parts))]
		_, err := fmt.Fprintln(journal, now(), "test killing", victim.who)
		require.NoError(t, err)
		require.NoError(t, victim.peer.cmd.Process.Kill())
		<-victim.peer.gone
		c.play(t, victim)
	}
	for _, v := range parts {
		a := v.peer.await(t, v.over, time.Until(c.end)+patience)
		require.Equal(t, done, a.Outcome, "%s: %s", v.who, a.Text)
	}
	c.judge(t)
}

// play starts a process, which contends until the end.
func (c *crew) play(t *testing.T, v *part) *part {
	c.lives++
	o := order{Do: "contend", lock: lock{Channel: "soak"}, attempt: attempt{Timeout: 2}}
	o.contest = contest{Journal: c.journal, Readers: 0.3, Hold: 0.004, Pause: c.pause(), Style: c.style}
	o.Seconds = seconds(max(0, time.Until(c.end)).Seconds())
	if v.tether {
		v.who, v.peer = fmt.Sprintf("tether-%d", c.lives), startTether(t, c.server)
	} else {
		v.who, v.peer = fmt.Sprintf("python-%d", c.lives), startPython(t, c.python, c.server)
		o.Lend, o.CheckInterval, o.ThreadSleep = c.python.lent, 0.02, 0.02
	}
	o.Who = v.who
	v.over = v.peer.begin(t, o)
	return v
}

func (c *crew) judge(t *testing.T) {
	lines := readJournal(t, c.journal)
	reaped := 0
	for _, l := range lines {
		if l.what == "reaping" {
			reaped++
		}
	}
	list := stays(t, lines)
	tethers := 0
	for _, s := range list {
		if s.tether() {
			tethers++
		}
	}
	found := overlaps(list)
	var pythonSecond, unsure int
	var longest int64
	for _, o := range found {
		longest = max(longest, o.nanoseconds())
		switch {
		case o.second.tether() && (o.first.tether() || o.sure()):
			t.Errorf("tether was granted second: %v beside %v", o.second, o.first)
		case o.sure():
			pythonSecond++
		default:
			unsure++
			t.Logf("at the same moment: %v and %v", o.first, o.second)
		}
	}
	t.Logf("%d grants, %d of them tether's; %d processes; %d reaped", len(list), tethers, c.lives, reaped)
	t.Logf("portalocker second: %d, %.1f in 10,000 grants; at the same moment: %d; the longest: %v",
		pythonSecond, float64(pythonSecond)*1e4/float64(max(1, len(list))), unsure, time.Duration(longest))
	require.Positive(t, tethers)
	require.Greater(t, len(list), tethers)
}

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

// soakTime is how long each soak runs: TETHER_SOAK, or 5 seconds.
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

// In TestSoak processes of both sides contend for one lock, as readers and writers,
// and some are killed. Each writes its holds to a history, a file, in which the
// test looks for overlaps. Portalocker counts and pings in two steps, so that it
// may be granted beside a holder. tether must never be the second one.
func TestSoak(t *testing.T) {
	for _, p := range pythons {
		if p.version != newest && p.version != v41 {
			continue
		}
		for _, style := range []string{styleWaits, styleTries} {
			t.Run(p.String()+", tether "+style, func(t *testing.T) {
				p.interpreter(t)
				soak(t, p, style)
			})
		}
	}
}

// perSide is the number of processes of each side. 4.1 gets few grants when many
// contend, because an attempt fails after a second if anybody has left since its
// count. So it has fewer processes and longer pauses.
func (r *soakRun) perSide() int {
	if r.python.withElections {
		return 3
	}
	return 2
}

func (r *soakRun) pause() seconds {
	if r.python.withElections {
		return 0.1
	}
	return 0.3
}

// soakRun is one soak.
type soakRun struct {
	python  python
	style   string
	server  *redistest.Server
	history string
	end     time.Time
	started int
}

// soakProcess is one of the processes. After a kill another one takes its place.
type soakProcess struct {
	tether   bool
	process  *process
	who      string
	finished <-chan response
}

func soak(t *testing.T, p python, style string) {
	r := &soakRun{python: p, style: style, server: redistest.Start(t), history: filepath.Join(t.ArtifactDir(), "history")}
	r.end = time.Now().Add(soakTime(t))
	history, err := os.OpenFile(r.history, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(t, err)
	defer history.Close()

	var processes []*soakProcess
	for i := range 2 * r.perSide() {
		processes = append(processes, r.run(t, &soakProcess{tether: i%2 == 0}))
	}
	for time.Until(r.end) > 2*time.Second {
		<-time.After(time.Duration(rand.Int64N(int64(3 * time.Second))))
		victim := processes[rand.IntN(len(processes))]
		_, err := fmt.Fprintln(history, now(), "test killing", victim.who)
		require.NoError(t, err)
		require.NoError(t, victim.process.cmd.Process.Kill())
		<-victim.process.exited
		r.run(t, victim)
	}
	for _, p := range processes {
		a := p.process.await(t, p.finished, time.Until(r.end)+testTimeout)
		require.Equal(t, done, a.Outcome, "%s: %s", p.who, a.Text)
	}
	r.check(t)
}

// run starts a process that contends until the end of the soak.
func (r *soakRun) run(t *testing.T, p *soakProcess) *soakProcess {
	r.started++
	o := request{Do: "contend", lock: lock{Channel: "soak"}, acquireParams: acquireParams{Timeout: 2}}
	o.contendParams = contendParams{History: r.history, Readers: 0.3, Hold: 0.004, Pause: r.pause(), Style: r.style}
	o.Seconds = seconds(max(0, time.Until(r.end)).Seconds())
	if p.tether {
		p.who, p.process = fmt.Sprintf("tether-%d", r.started), startTether(t, r.server)
	} else {
		p.who, p.process = fmt.Sprintf("python-%d", r.started), startPython(t, r.python, r.server)
		o.LendConnection, o.CheckInterval, o.ThreadSleep = r.python.needsConnection, 0.02, 0.02
	}
	o.Who = p.who
	p.finished = p.process.send(t, o)
	return p
}

func (r *soakRun) check(t *testing.T) {
	lines := readHistory(t, r.history)
	reaped := 0
	for _, l := range lines {
		if l.what == "reaping" {
			reaped++
		}
	}
	list := holds(t, lines)
	tethers := 0
	for _, s := range list {
		if s.byTether() {
			tethers++
		}
	}
	found := overlaps(list)
	var pythonSecond, unsure int
	var longest int64
	for _, o := range found {
		longest = max(longest, o.duration())
		switch {
		case o.second.byTether() && (o.first.byTether() || o.certain()):
			t.Errorf("tether was granted second: %v beside %v", o.second, o.first)
		case o.certain():
			pythonSecond++
		default:
			unsure++
			t.Logf("at the same moment: %v and %v", o.first, o.second)
		}
	}
	t.Logf("%d grants, %d of them tether's; %d processes; %d reaped", len(list), tethers, r.started, reaped)
	t.Logf("portalocker second: %d, %.1f in 10,000 grants; at the same moment: %d; the longest: %v",
		pythonSecond, float64(pythonSecond)*1e4/float64(max(1, len(list))), unsure, time.Duration(longest))
	require.Positive(t, tethers)
	require.Greater(t, len(list), tethers)
}

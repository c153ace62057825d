package interop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// testTimeout is how long a test waits for anything. It is long enough for a busy
// machine.
const testTimeout = 30 * time.Second

// process is a process of either side, portalocker or tether.
type process struct {
	python *python // nil for tether
	cmd    *exec.Cmd
	input  io.WriteCloser
	errors bytes.Buffer
	exited chan struct{} // closed when its output has ended

	mu      sync.Mutex
	calls   int
	pending map[int]chan response
	crashes []string
	lost    chan response
}

// startProcess starts a process and stops it at the end of the test. The test fails
// if the process crashed.
func startProcess(t testing.TB, cmd *exec.Cmd, version *python) *process {
	t.Helper()
	p := &process{python: version, cmd: cmd, exited: make(chan struct{}), pending: map[int]chan response{}, lost: make(chan response, 64)}
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	p.input = input
	cmd.Stderr = &p.errors
	cmd.SysProcAttr = childAttr()
	require.NoError(t, cmd.Start())
	go p.read(output)
	t.Cleanup(func() { p.end(t) })
	return p
}

func (p *process) read(output io.Reader) {
	defer close(p.exited)
	for lines := bufio.NewScanner(output); lines.Scan(); {
		var a response
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			a = response{Event: "crashed", Text: lines.Text()}
		}
		p.dispatch(a)
	}
}

func (p *process) dispatch(a response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case a.Call != 0:
		p.pending[a.Call] <- a
		delete(p.pending, a.Call)
	case a.Event == "lost":
		p.lost <- a
	default:
		p.crashes = append(p.crashes, a.Event+": "+a.Text)
	}
}

// end ends the process, also one that is stopped or has ended. It waits for an
// orderly end only if no request is pending: otherwise the process may be blocked
// in an acquire.
func (p *process) end(t testing.TB) {
	_ = p.input.Close() // the process may have ended
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	if p.allAnswered() {
		select {
		case <-p.exited:
		case <-time.After(testTimeout):
			t.Errorf("%v does not end", p)
		}
	}
	_ = p.cmd.Process.Kill()
	<-p.exited
	_ = p.cmd.Wait() // the error says that it was killed
	for _, c := range p.crashReports() {
		t.Errorf("%v crashed: %s", p, c)
	}
	if t.Failed() && p.errors.Len() > 0 {
		t.Logf("%v wrote:\n%s", p, p.errors.String())
	}
}

// allAnswered reports whether every request has its response.
func (p *process) allAnswered() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pending) == 0
}

func (p *process) crashReports() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.crashes
}

func (p *process) String() string {
	if p.python == nil {
		return "tether"
	}
	return p.python.String()
}

// send sends a request. The response comes over the channel.
func (p *process) send(t testing.TB, o request) <-chan response {
	t.Helper()
	to := make(chan response, 1)
	p.mu.Lock()
	p.calls++
	o.Call = p.calls
	p.pending[o.Call] = to
	p.mu.Unlock()
	line, err := json.Marshal(o)
	require.NoError(t, err)
	_, err = p.input.Write(append(line, '\n'))
	require.NoError(t, err)
	return to
}

// await waits for a response.
func (p *process) await(t testing.TB, to <-chan response, within time.Duration) response {
	t.Helper()
	select {
	case a := <-to:
		return a
	case <-p.exited:
		select {
		case a := <-to:
			return a
		default:
		}
		require.FailNow(t, p.String()+" has ended without an answer")
	case <-time.After(within):
		require.FailNow(t, p.String()+" does not answer")
	}
	return response{}
}

// mustDo sends a request that must succeed.
func (p *process) mustDo(t testing.TB, o request) response {
	t.Helper()
	a := p.await(t, p.send(t, o), testTimeout)
	require.Equal(t, done, a.Outcome, "%v: %s", p, a.Text)
	return a
}

// open makes a lock. A process has one at a time.
func (p *process) open(t testing.TB, l lock) {
	t.Helper()
	l.LendConnection = p.python != nil && p.python.needsConnection
	p.mustDo(t, request{Do: "open", lock: l})
}

// acquireAsync begins to wait for the lock.
func (p *process) acquireAsync(t testing.TB) <-chan response {
	t.Helper()
	return p.send(t, request{Do: "acquire", acquireParams: acquireParams{Timeout: seconds(2 * testTimeout.Seconds())}})
}

// acquire waits for the lock.
func (p *process) acquire(t testing.TB) response {
	t.Helper()
	return p.granted(t, p.acquireAsync(t))
}

// granted waits for a grant.
func (p *process) granted(t testing.TB, to <-chan response) response {
	t.Helper()
	a := p.await(t, to, testTimeout)
	require.Equal(t, granted, a.Outcome, "%v: %s", p, a.Text)
	return a
}

// try tries to get the lock without waiting for a holder. The time-out is for
// portalocker: an inconclusive attempt takes part of it, and with none there would
// be no second attempt.
func (p *process) try(t testing.TB) response {
	t.Helper()
	return p.await(t, p.send(t, request{Do: "acquire", acquireParams: acquireParams{Timeout: 1, Try: true}}), testTimeout)
}

// tryMustFail is a try that must be refused because of a holder.
func (p *process) tryMustFail(t testing.TB) {
	t.Helper()
	a := p.try(t)
	require.Equal(t, refused, a.Outcome, "%v: %s", p, a.Text)
}

// tryMustSucceed is a try that must be granted.
func (p *process) tryMustSucceed(t testing.TB) response {
	t.Helper()
	a := p.try(t)
	require.Equal(t, granted, a.Outcome, "%v: %s", p, a.Text)
	return a
}

func (p *process) release(t testing.TB) {
	t.Helper()
	p.mustDo(t, request{Do: "release"})
}

func (p *process) probe(t testing.TB) []participant {
	t.Helper()
	return p.mustDo(t, request{Do: "probe"}).Participants
}

func (p *process) isLost(t testing.TB) bool {
	t.Helper()
	return p.mustDo(t, request{Do: "state"}).Lost
}

// awaitLoss waits until the process reports the loss of its lock.
func (p *process) awaitLoss(t testing.TB) {
	t.Helper()
	select {
	case <-p.lost:
	case <-time.After(testTimeout):
		require.FailNow(t, p.String()+" is not told of its loss")
	}
	require.True(t, p.isLost(t))
}

func (p *process) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(s))
}

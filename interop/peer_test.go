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

// patience is how long a test waits for anything. It is generous: the machine
// may have better things to do.
const patience = 30 * time.Second

// peer is a process of either side.
type peer struct {
	python *python // nil for tether
	cmd    *exec.Cmd
	input  io.WriteCloser
	errors bytes.Buffer
	gone   chan struct{} // closed when its output has ended

	mu      sync.Mutex
	calls   int
	pending map[int]chan answer
	crashes []string
	lost    chan answer
}

// launch starts a process and stops it with the test. It fails the test if the
// process crashed.
func launch(t testing.TB, cmd *exec.Cmd, p *python) *peer {
	t.Helper()
	v := &peer{python: p, cmd: cmd, gone: make(chan struct{}), pending: map[int]chan answer{}, lost: make(chan answer, 64)}
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	v.input = input
	cmd.Stderr = &v.errors
	cmd.SysProcAttr = childAttr()
	require.NoError(t, cmd.Start())
	go v.read(output)
	t.Cleanup(func() { v.end(t) })
	return v
}

func (v *peer) read(output io.Reader) {
	defer close(v.gone)
	for lines := bufio.NewScanner(output); lines.Scan(); {
		var a answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			a = answer{Event: "crashed", Text: lines.Text()}
		}
		v.take(a)
	}
}

func (v *peer) take(a answer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case a.Call != 0:
		v.pending[a.Call] <- a
		delete(v.pending, a.Call)
	case a.Event == "lost":
		v.lost <- a
	default:
		v.crashes = append(v.crashes, a.Event+": "+a.Text)
	}
}

// end ends the process, however it is.
func (v *peer) end(t testing.TB) {
	_ = v.input.Close() // it may be gone already
	_ = v.cmd.Process.Signal(syscall.SIGCONT)
	if v.idle() {
		select {
		case <-v.gone:
		case <-time.After(patience):
			t.Errorf("%v does not end", v)
		}
	}
	_ = v.cmd.Process.Kill()
	<-v.gone
	_ = v.cmd.Wait() // killed, as a rule
	for _, c := range v.crashed() {
		t.Errorf("%v crashed: %s", v, c)
	}
	if t.Failed() && v.errors.Len() > 0 {
		t.Logf("%v wrote:\n%s", v, v.errors.String())
	}
}

// idle says whether every order was answered.
func (v *peer) idle() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.pending) == 0
}

func (v *peer) crashed() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.crashes
}

func (v *peer) String() string {
	if v.python == nil {
		return "tether"
	}
	return v.python.String()
}

// begin sends an order. The answer comes when it comes.
func (v *peer) begin(t testing.TB, o order) <-chan answer {
	t.Helper()
	to := make(chan answer, 1)
	v.mu.Lock()
	v.calls++
	o.Call = v.calls
	v.pending[o.Call] = to
	v.mu.Unlock()
	line, err := json.Marshal(o)
	require.NoError(t, err)
	_, err = v.input.Write(append(line, '\n'))
	require.NoError(t, err)
	return to
}

// await waits for an answer.
func (v *peer) await(t testing.TB, to <-chan answer, within time.Duration) answer {
	t.Helper()
	select {
	case a := <-to:
		return a
	case <-v.gone:
		select {
		case a := <-to:
			return a
		default:
		}
		require.FailNow(t, v.String()+" has ended without an answer")
	case <-time.After(within):
		require.FailNow(t, v.String()+" does not answer")
	}
	return answer{}
}

// tell sends an order that must succeed.
func (v *peer) tell(t testing.TB, o order) answer {
	t.Helper()
	a := v.await(t, v.begin(t, o), patience)
	require.Equal(t, done, a.Outcome, "%v: %s", v, a.Text)
	return a
}

// open makes the process's lock: it has one at a time.
func (v *peer) open(t testing.TB, l lock) {
	t.Helper()
	l.Lend = v.python != nil && v.python.lent
	v.tell(t, order{Do: "open", lock: l})
}

// acquiring begins to wait for the lock.
func (v *peer) acquiring(t testing.TB) <-chan answer {
	t.Helper()
	return v.begin(t, order{Do: "acquire", attempt: attempt{Timeout: seconds(2 * patience.Seconds())}})
}

// acquire waits for the lock.
func (v *peer) acquire(t testing.TB) answer {
	t.Helper()
	return v.granted(t, v.acquiring(t))
}

// granted waits for a grant.
func (v *peer) granted(t testing.TB, to <-chan answer) answer {
	t.Helper()
	a := v.await(t, to, patience)
	require.Equal(t, granted, a.Outcome, "%v: %s", v, a.Text)
	return a
}

// try takes the lock without waiting for a holder. Portalocker counts an
// attempt that is inconclusive against the time as well, so it gets some.
func (v *peer) try(t testing.TB) answer {
	t.Helper()
	return v.await(t, v.begin(t, order{Do: "acquire", attempt: attempt{Timeout: 1, Try: true}}), patience)
}

// mustFail is a try that meets a holder.
func (v *peer) mustFail(t testing.TB) {
	t.Helper()
	a := v.try(t)
	require.Equal(t, refused, a.Outcome, "%v: %s", v, a.Text)
}

// mustSucceed is a try that meets nobody in its way.
func (v *peer) mustSucceed(t testing.TB) answer {
	t.Helper()
	a := v.try(t)
	require.Equal(t, granted, a.Outcome, "%v: %s", v, a.Text)
	return a
}

func (v *peer) release(t testing.TB) {
	t.Helper()
	v.tell(t, order{Do: "release"})
}

func (v *peer) probe(t testing.TB) []member {
	t.Helper()
	return v.tell(t, order{Do: "probe"}).Members
}

func (v *peer) isLost(t testing.TB) bool {
	t.Helper()
	return v.tell(t, order{Do: "state"}).Lost
}

// toldOfTheLoss waits until the process says that it has lost its lock.
func (v *peer) toldOfTheLoss(t testing.TB) {
	t.Helper()
	select {
	case <-v.lost:
	case <-time.After(patience):
		require.FailNow(t, v.String()+" is not told of its loss")
	}
	require.True(t, v.isLost(t))
}

func (v *peer) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	require.NoError(t, v.cmd.Process.Signal(s))
}

//go:build unix && !aix && !solaris

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"
)

// workerProcess is the demo's side of one worker process.
type workerProcess struct {
	name       string
	cmd        *exec.Cmd
	commands   io.WriteCloser
	readerDone chan struct{} // closed when its output has been read to the end
	wants      bool          // it was told to acquire the lock, and does not hold it yet
	waiting    bool          // it wants the lock, and has found a holder
	dead       bool
}

func (w *workerProcess) String() string { return w.name }

func (w *workerProcess) pid() int { return w.cmd.Process.Pid }

// workerMessage is a message with its sender.
type workerMessage struct {
	from *workerProcess
	message
}

// startWorker starts a worker process. It is killed when ctx ends. If the demo
// itself is killed, the worker's input ends, and so does the worker.
func startWorker(ctx context.Context, name, url string, messages chan<- workerMessage) (*workerProcess, error) {
	cmd := exec.CommandContext(ctx, ownExecutable(), demoWorkerName, url, demoLock)
	cmd.Stderr = os.Stderr
	commands, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w := &workerProcess{name: name, cmd: cmd, commands: commands, readerDone: make(chan struct{})}
	go func() {
		defer close(w.readerDone)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			m := workerMessage{from: w}
			if err := json.Unmarshal(lines.Bytes(), &m.message); err != nil {
				m.message = message{Kind: msgFailed, Text: lines.Text()}
			}
			select {
			case messages <- m:
			case <-ctx.Done():
			}
		}
	}()
	return w, nil
}

// send sends a command. A failed write is ignored: a dead worker sends no
// messages, and the demo times out.
func (w *workerProcess) send(command string) {
	w.wants = w.wants || command == cmdAcquire
	_, _ = fmt.Fprintln(w.commands, command)
}

func (w *workerProcess) kill() error {
	w.dead = true
	return w.cmd.Process.Kill()
}

// waitWorkers waits for the end of all processes. Their context must have ended.
func (d *demo) waitWorkers() {
	for _, w := range d.workers {
		<-w.readerDone
		_ = w.cmd.Wait() // always an error: it was killed
	}
}

// awaitMessages receives until there was a message of each kind. It returns the
// last message of each kind.
func (d *demo) awaitMessages(ctx context.Context, kinds ...string) (map[string]workerMessage, error) {
	got := map[string]workerMessage{}
	for slices.ContainsFunc(kinds, func(k string) bool { return got[k].from == nil }) {
		m, err := d.receive(ctx)
		if err != nil {
			return nil, err
		}
		got[m.Kind] = m
	}
	return got, nil
}

// awaitWaiting receives until every worker that wants the lock has found its
// holder and waits.
func (d *demo) awaitWaiting(ctx context.Context) error {
	for slices.ContainsFunc(d.workers, func(w *workerProcess) bool { return w.wants && !w.waiting }) {
		if _, err := d.receive(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) receive(ctx context.Context) (workerMessage, error) {
	select {
	case m := <-d.messages:
		return m, d.trackHolder(m)
	case <-ctx.Done():
		return workerMessage{}, context.Cause(ctx)
	}
}

// trackHolder updates the current holder and the list of holds.
func (d *demo) trackHolder(m workerMessage) error {
	switch m.Kind {
	case msgWaiting:
		m.from.waiting = true
	case msgGranted:
		d.holder, d.holderID = m.from, m.ID
		m.from.wants, m.from.waiting = false, false
		d.holds = append(d.holds, holdSpan{worker: m.from, from: m.At, token: m.Token})
	case msgReleased, msgLost:
		d.endHold(m.from, m.At)
	case msgFailed:
		return fmt.Errorf("%s: %s", m.from, m.Text)
	}
	return nil
}

// endHold sets the end of a worker's last hold, unless it is set already.
func (d *demo) endHold(w *workerProcess, at time.Time) {
	for i := len(d.holds) - 1; i >= 0; i-- {
		if d.holds[i].worker == w {
			if d.holds[i].to.IsZero() {
				d.holds[i].to = at
			}
			break
		}
	}
	if d.holder == w {
		d.holder = nil
	}
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// member is a worker process, seen from the one that gives orders.
type member struct {
	*child
	peer *peer

	mu    sync.Mutex
	calls int
	open  map[int]chan answer
	gone  bool
}

// hire starts a worker and waits until it is ready.
func hire(p *peer, at place, count bool, cpus []int) (*member, error) {
	cmd, err := workerCommand(p, setup{Peer: p.id(), Place: at, Count: count})
	if err != nil {
		return nil, err
	}
	c, err := start(cmd, cpus)
	if err != nil {
		return nil, err
	}
	m := &member{child: c, peer: p, open: map[int]chan answer{}}
	if err := c.line(&answer{}); err != nil {
		go c.drain()
		m.kill()
		return nil, fmt.Errorf("%s does not start: %w", p.id(), err)
	}
	go m.read()
	return m, nil
}

func workerCommand(p *peer, s setup) (*exec.Cmd, error) {
	if !p.python {
		return self(roleWorker, s)
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(pythonProgram(), "-c", portalockerScript)
	cmd.Env = append(os.Environ(), setupVariable+"="+string(text))
	return cmd, nil
}

func (m *member) read() {
	defer m.drain()
	for {
		var a answer
		err := m.line(&a)
		m.mu.Lock()
		if err != nil {
			m.gone = true
			for _, to := range m.open {
				to <- answer{Error: errEnded.Error() + ": " + err.Error()}
			}
			m.mu.Unlock()
			return
		}
		to := m.open[a.Call]
		delete(m.open, a.Call)
		m.mu.Unlock()
		if to != nil {
			to <- a
		}
	}
}

// begin gives an order. The answer comes when it comes.
func (m *member) begin(o order) <-chan answer {
	to := make(chan answer, 1)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	o.Call = m.calls
	text, err := json.Marshal(o)
	if err == nil && m.gone {
		err = errEnded
	}
	if err == nil {
		m.open[o.Call] = to
		_, err = m.input.Write(append(text, '\n'))
	}
	if err != nil {
		delete(m.open, o.Call)
		to <- answer{Error: err.Error()}
	}
	return to
}

// orderLimit is how long an answer may take. All that is asked for should take
// a few seconds, and a TTL at most.
var orderLimit = time.Minute

var errNoAnswer = errors.New("no answer")

// await waits for an answer.
func (m *member) await(to <-chan answer) (answer, error) {
	select {
	case a := <-to:
		if a.Error != "" {
			return a, fmt.Errorf("%s: %s", m.peer.id(), a.Error)
		}
		return a, nil
	case <-time.After(orderLimit):
		return answer{}, fmt.Errorf("%s: %w within %v", m.peer.id(), errNoAnswer, orderLimit)
	}
}

func (m *member) tell(o order) (answer, error) { return m.await(m.begin(o)) }

func (m *member) signal(s syscall.Signal) error { return m.cmd.Process.Signal(s) }

// crew are workers that do the same.
type crew []*member

// tell gives all the same order and has their answers.
func (c crew) tell(o order) ([]answer, error) {
	var open []<-chan answer
	for _, m := range c {
		open = append(open, m.begin(o))
	}
	var answers []answer
	var failed error
	for i, m := range c {
		a, err := m.await(open[i])
		answers = append(answers, a)
		failed = errors.Join(failed, err)
	}
	return answers, failed
}

func (c crew) end() {
	var all sync.WaitGroup
	for _, m := range c {
		all.Go(m.end)
	}
	all.Wait()
}

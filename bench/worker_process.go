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

// workerProcess is the benchmark's side of one worker process.
type workerProcess struct {
	*child
	peer *peer

	mu      sync.Mutex
	calls   int
	pending map[int]chan response
	gone    bool
}

// startWorker starts a worker and waits until it is ready.
func startWorker(p *peer, at endpoints, count bool, cpus []int) (*workerProcess, error) {
	cmd, err := workerCommand(p, setup{Peer: p.id(), Endpoints: at, Count: count})
	if err != nil {
		return nil, err
	}
	c, err := start(cmd, cpus)
	if err != nil {
		return nil, err
	}
	wp := &workerProcess{child: c, peer: p, pending: map[int]chan response{}}
	if err := c.readJSON(&response{}); err != nil {
		go c.drain()
		wp.kill()
		return nil, fmt.Errorf("%s does not start: %w", p.id(), err)
	}
	go wp.read()
	return wp, nil
}

func workerCommand(p *peer, s setup) (*exec.Cmd, error) {
	if !p.python {
		return roleCommand(roleWorker, s)
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(pythonProgram(), "-c", portalockerScript)
	cmd.Env = append(os.Environ(), setupVariable+"="+string(text))
	return cmd, nil
}

func (wp *workerProcess) read() {
	defer wp.drain()
	for {
		var resp response
		err := wp.readJSON(&resp)
		wp.mu.Lock()
		if err != nil {
			wp.gone = true
			for _, to := range wp.pending {
				to <- response{Error: errProcessEnded.Error() + ": " + err.Error()}
			}
			wp.mu.Unlock()
			return
		}
		to := wp.pending[resp.Call]
		delete(wp.pending, resp.Call)
		wp.mu.Unlock()
		if to != nil {
			to <- resp
		}
	}
}

// send sends a request. The response arrives on the channel.
func (wp *workerProcess) send(req request) <-chan response {
	to := make(chan response, 1)
	wp.mu.Lock()
	defer wp.mu.Unlock()
	wp.calls++
	req.Call = wp.calls
	text, err := json.Marshal(req)
	if err == nil && wp.gone {
		err = errProcessEnded
	}
	if err == nil {
		wp.pending[req.Call] = to
		_, err = wp.input.Write(append(text, '\n'))
	}
	if err != nil {
		delete(wp.pending, req.Call)
		to <- response{Error: err.Error()}
	}
	return to
}

// responseTimeout is how long a response may take. A task takes a few seconds, and
// a TTL more if it waits for that.
var responseTimeout = time.Minute

var errNoResponse = errors.New("no answer")

// wait waits for a response.
func (wp *workerProcess) wait(to <-chan response) (response, error) {
	select {
	case resp := <-to:
		if resp.Error != "" {
			return resp, fmt.Errorf("%s: %s", wp.peer.id(), resp.Error)
		}
		return resp, nil
	case <-time.After(responseTimeout):
		return response{}, fmt.Errorf("%s: %w within %v", wp.peer.id(), errNoResponse, responseTimeout)
	}
}

func (wp *workerProcess) call(req request) (response, error) { return wp.wait(wp.send(req)) }

func (wp *workerProcess) signal(s syscall.Signal) error { return wp.cmd.Process.Signal(s) }

// workers are worker processes that do the same.
type workers []*workerProcess

// call sends the same request to all, and waits for their responses.
func (ws workers) call(req request) ([]response, error) {
	var pending []<-chan response
	for _, wp := range ws {
		pending = append(pending, wp.send(req))
	}
	var responses []response
	var failed error
	for i, wp := range ws {
		resp, err := wp.wait(pending[i])
		responses = append(responses, resp)
		failed = errors.Join(failed, err)
	}
	return responses, failed
}

func (ws workers) stop() {
	var all sync.WaitGroup
	for _, wp := range ws {
		all.Go(wp.stop)
	}
	all.Wait()
}

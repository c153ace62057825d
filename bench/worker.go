package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
)

// Environment variables of a child process: its role and its setup.
const (
	roleVariable  = "TETHER_BENCH_ROLE"
	setupVariable = "TETHER_BENCH_SETUP"
	roleWorker    = "worker"
	roleEtcd      = "etcd"
)

// runRole runs the role of this process, if it is a child.
func runRole() (ran bool, err error) {
	switch os.Getenv(roleVariable) {
	case roleWorker:
		return true, serveRequests(os.Stdin, os.Stdout)
	case roleEtcd:
		return true, serveEtcd(os.Stdin, os.Stdout)
	}
	return false, nil
}

// worker runs tasks with the locks of one peer.
type worker struct {
	peer      *peer
	endpoints endpoints
	lock      locker

	mu      sync.Mutex
	out     *json.Encoder
	held    map[string]func() error // by name
	kept    []func() error
	cancel  context.CancelFunc // ends the acquires of taskWait
	waiting sync.WaitGroup
}

// serveRequests runs requests until its input ends, each in a goroutine.
func serveRequests(in io.Reader, out io.Writer) error {
	w, err := newWorker(out)
	if err != nil {
		return err
	}
	if err := w.respond(response{}); err != nil { // ready
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var req request
		if err := json.Unmarshal(lines.Bytes(), &req); err != nil {
			return err
		}
		go w.handle(req)
	}
	return lines.Err()
}

func newWorker(out io.Writer) (*worker, error) {
	var s setup
	if err := json.Unmarshal([]byte(os.Getenv(setupVariable)), &s); err != nil {
		return nil, err
	}
	p := peerByID(s.Peer)
	if p == nil || p.open == nil {
		return nil, fmt.Errorf("no peer %q", s.Peer)
	}
	if s.Count {
		s.Endpoints.commandsSent = new(atomic.Int64)
	}
	l, err := p.open(s.Endpoints)
	if err != nil {
		return nil, err
	}
	return &worker{peer: p, endpoints: s.Endpoints, lock: l, out: json.NewEncoder(out), held: map[string]func() error{}}, nil
}

func (w *worker) respond(resp response) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Encode(resp)
}

func (w *worker) handle(req request) {
	resp, err := w.runTask(req)
	resp.Call = req.Call
	if err != nil {
		resp.Error = err.Error()
	}
	_ = w.respond(resp) // the reader may have exited
}

func (w *worker) runTask(req request) (response, error) {
	tasks := map[string]func(request) (response, error){
		taskAlone: w.alone, taskMany: w.many, taskCold: w.cold,
		taskAcquire: w.acquire, taskRelease: w.release, taskAwait: w.await,
		taskCrowd: w.crowd,
		taskHold:  w.hold, taskRead: w.read, taskWait: w.wait, taskReleaseAll: w.releaseAll,
		taskProbe: w.probe, taskLose: w.lose, taskUsage: w.usage,
	}
	f := tasks[req.Task]
	if f == nil {
		return response{}, fmt.Errorf("no task %q", req.Task)
	}
	return f(req)
}

// newLocker returns a locker for one of several users.
func (w *worker) newLocker(iso isolation) (locker, error) {
	s, ok := w.lock.(isolator)
	if !ok || iso == sharedLock {
		return sameClient{w.lock}, nil
	}
	return s.Isolate(iso)
}

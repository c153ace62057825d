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

// roleVariable says in the environment what a process started from this
// binary is for.
const (
	roleVariable  = "TETHER_BENCH_ROLE"
	setupVariable = "TETHER_BENCH_SETUP"
	roleWorker    = "worker"
	roleEtcd      = "etcd"
)

// playRole runs what this process was started for, if it is a child.
func playRole() (played bool, err error) {
	switch os.Getenv(roleVariable) {
	case roleWorker:
		return true, work(os.Stdin, os.Stdout)
	case roleEtcd:
		return true, serveEtcd(os.Stdin, os.Stdout)
	}
	return false, nil
}

// worker uses one peer's locks as it is told.
type worker struct {
	peer  *peer
	place place
	lock  locker

	mu      sync.Mutex
	out     *json.Encoder
	held    map[string]func() error // by name
	kept    []func() error
	cancel  context.CancelFunc // of those who wait
	waiting sync.WaitGroup
}

// work takes orders until its input ends. Each runs on a goroutine of its own.
func work(in io.Reader, out io.Writer) error {
	w, err := newWorker(out)
	if err != nil {
		return err
	}
	if err := w.say(answer{}); err != nil { // ready
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return err
		}
		go w.obey(o)
	}
	return lines.Err()
}

func newWorker(out io.Writer) (*worker, error) {
	var s setup
	if err := json.Unmarshal([]byte(os.Getenv(setupVariable)), &s); err != nil {
		return nil, err
	}
	p := peerOf(s.Peer)
	if p == nil || p.open == nil {
		return nil, fmt.Errorf("no peer %q", s.Peer)
	}
	if s.Count {
		s.Place.sent = new(atomic.Int64)
	}
	l, err := p.open(s.Place)
	if err != nil {
		return nil, err
	}
	return &worker{peer: p, place: s.Place, lock: l, out: json.NewEncoder(out), held: map[string]func() error{}}, nil
}

func (w *worker) say(a answer) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Encode(a)
}

func (w *worker) obey(o order) {
	a, err := w.perform(o)
	a.Call = o.Call
	if err != nil {
		a.Error = err.Error()
	}
	_ = w.say(a) // who does not read any more has gone
}

func (w *worker) perform(o order) (answer, error) {
	orders := map[string]func(order) (answer, error){
		doAlone: w.alone, doMany: w.many, doCold: w.cold,
		doAcquire: w.acquire, doRelease: w.release, doAwait: w.await,
		doCrowd: w.crowd,
		doHold:  w.hold, doRead: w.read, doWait: w.wait, doFree: w.free,
		doProbe: w.probe, doLose: w.lose, doUsage: w.usage,
	}
	f := orders[o.Do]
	if f == nil {
		return answer{}, fmt.Errorf("no order %q", o.Do)
	}
	return f(o)
}

// separate is a locker for one of several users.
func (w *worker) separate(each standing) (locker, error) {
	s, ok := w.lock.(separator)
	if !ok || each == ownNothing {
		return sameClient{w.lock}, nil
	}
	return s.Separate(each)
}

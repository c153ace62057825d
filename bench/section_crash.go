package main

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"
)

// crashWaiters is the larger number of waiters; the other is one.
const crashWaiters = 16

// crash measures peers whose lock is a connection in rounds. Peers with a TTL are
// measured once, at the same time: they only wait.
func crash(b *bench, sec *reportSection) error {
	ttlResults := make(chan []crashResult, 1)
	go func() { ttlResults <- b.measureTTLCrashes() }()
	t := table{head: []string{"peer", "waiters", "p50", "p99", "longest", "kills"}}
	bars := chart{title: "From the kill of the holder to a waiter's grant", unit: "ms", log: true, series: []string{"1 waiter", "16 waiters"}}
	for _, users := range []int{1, crashWaiters} {
		selected := b.selectPeers(withoutTTL, notFloor)
		if users > 1 {
			selected = b.selectPeers(withoutTTL, notFloor, notPython)
		}
		took, err := b.measureTakeovers(selected, users, 2*b.rounds, syscall.SIGKILL)
		if err != nil {
			<-ttlResults
			return err
		}
		for _, p := range selected {
			r := took[p.id()]
			t.add(p.id(), fmt.Sprint(users), formatDuration(r.percentile(50)), formatDuration(r.percentile(99)), formatDuration(r.percentile(100)), fmt.Sprint(len(r)))
			bars.add(p.id(), microseconds(r.percentile(50))/1e3)
		}
		for _, l := range crashLimits {
			what := fmt.Sprintf("%s, %d waiting: ", l.id, users)
			sec.within(what+"p50", took[l.id].percentile(50), l.p50)
			sec.within(what+"p99", took[l.id].percentile(99), l.p99)
		}
	}
	b.show("waiting for those with a TTL")
	for _, r := range <-ttlResults {
		if r.err != nil {
			b.failed[r.peer.id()] = r.err
			continue
		}
		t.add(r.peer.id(), "1", formatDuration(r.took), unknown, formatDuration(r.took), "1")
		bars.add(r.peer.id(), microseconds(r.took)/1e3)
	}
	sec.tables, sec.charts = append(sec.tables, t), append(sec.charts, bars)
	sec.note("The lock of a peer with a TTL is free when the TTL is over, which depends on the setting; each was killed once. " +
		"etcd's default of 60 s is left out, and so is portalocker with 16 waiters, which can keep each other from the lock for minutes.")
	return nil
}

var crashLimits = []struct {
	id       string
	p50, p99 time.Duration
}{
	{tetherLibrary, 70 * time.Millisecond, 140 * time.Millisecond},
	{tetherLibrary + ":20ms", 15 * time.Millisecond, 35 * time.Millisecond},
}

// crashResult is the result of one peer with a TTL.
type crashResult struct {
	peer *peer
	took time.Duration
	err  error
}

// maxMeasuredTTL excludes peers whose TTL takes too long.
const maxMeasuredTTL = 10 * time.Second

// measureTTLCrashes measures all peers with a TTL at the same time.
func (b *bench) measureTTLCrashes() []crashResult {
	var selected []*peer
	for _, p := range b.selectPeers(withTTL) {
		if p.ttl < maxMeasuredTTL && !b.quick {
			selected = append(selected, p)
		}
	}
	out := make([]crashResult, len(selected))
	var all sync.WaitGroup
	for i, p := range selected {
		at, err := b.endpoints(p)
		if err != nil {
			out[i] = crashResult{p, 0, err}
			continue
		}
		all.Go(func() {
			waiter, err := startWorker(p, at, false, nil)
			if err != nil {
				out[i] = crashResult{p, 0, err}
				return
			}
			defer waiter.stop()
			d, err := takeover(p, at, waiter, "patient-"+p.id(), 1, syscall.SIGKILL)
			out[i] = crashResult{p, d, err}
		})
	}
	all.Wait()
	return out
}

// measureTakeovers ends a holder by a signal in each round.
func (b *bench) measureTakeovers(selected []*peer, users, n int, signal syscall.Signal) (map[string]rounds, error) {
	took := map[string]rounds{}
	waiters := map[string]*workerProcess{}
	defer func() {
		for _, wp := range waiters {
			wp.stop()
		}
	}()
	for _, p := range selected {
		wp, err := b.startWorker(p, pinning{}, 0)
		if err != nil {
			return nil, err
		}
		waiters[p.id()] = wp
	}
	err := b.interleave(selected, n, fmt.Sprintf("%d waiting", users), func(round int, p *peer) error {
		if p.python && round >= slowRounds {
			return nil
		}
		at, err := b.endpoints(p)
		if err != nil {
			return err
		}
		d, err := takeover(p, at, waiters[p.id()], b.name("ending"), users, signal)
		if err != nil {
			return err
		}
		took[p.id()] = append(took[p.id()], []time.Duration{d})
		return nil
	})
	return took, err
}

// takeover lets one process hold the lock and another wait, and sends the holder a
// signal. It returns the time from the signal to the waiter's grant.
func takeover(p *peer, at endpoints, waiter *workerProcess, name string, users int, signal syscall.Signal) (time.Duration, error) {
	holder, err := startWorker(p, at, false, nil)
	if err != nil {
		return 0, err
	}
	defer holder.kill()
	if _, err := holder.call(request{Task: taskAcquire, Name: name}); err != nil {
		return 0, err
	}
	grant := waiter.send(request{Task: taskAwait, Name: name, Users: users, Isolation: ownClient})
	pause(120*time.Millisecond + rand.N(150*time.Millisecond+p.retryInterval))
	begin := now()
	if err := holder.signal(signal); err != nil {
		return 0, err
	}
	resp, err := waiter.wait(grant)
	return time.Duration(resp.At - begin), err
}

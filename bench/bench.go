package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// bench is one run of the benchmark.
type bench struct {
	options
	*progress
	redis     *redisServer
	etcd      [2]*etcdServer // with and without fsync; started when needed
	names     int
	skipped   map[string]string // peers that were left out, with the reason
	interrupt chan struct{}     // closed when the run must end
	// failed are the peers that have failed in this section, with their errors.
	failed map[string]error
}

func newBench(o options, p *progress) (*bench, error) {
	s, err := startRedis()
	if err != nil {
		return nil, fmt.Errorf("redis-server: %w", err)
	}
	return &bench{options: o, progress: p, redis: s, skipped: map[string]string{}, failed: map[string]error{}, interrupt: make(chan struct{})}, nil
}

var errInterrupted = errors.New("interrupted")

func (b *bench) interrupted() bool {
	select {
	case <-b.interrupt:
		return true
	default:
		return false
	}
}

func (b *bench) close() {
	b.stopEtcd()
	b.redis.stop()
}

func (b *bench) stopEtcd() {
	for i, s := range b.etcd {
		if s != nil {
			s.stop()
			b.etcd[i] = nil
		}
	}
}

// run runs the sections that were chosen.
func (b *bench) run() ([]*reportSection, error) {
	var results []*reportSection
	for _, s := range sections() {
		if len(b.sections) > 0 && !slices.Contains(b.sections, s.name) {
			continue
		}
		if b.interrupted() {
			return results, errInterrupted
		}
		b.beginSection(s.name)
		sec := &reportSection{name: s.name, title: s.title, about: s.about}
		clear(b.failed)
		err := s.run(b, sec)
		for _, id := range slices.Sorted(maps.Keys(b.failed)) {
			sec.note("%s failed and was left out from then on: %v", id, b.failed[id])
		}
		b.stopEtcd() // it would use processor time in the next section
		if err != nil {
			return results, fmt.Errorf("%s: %w", s.name, err)
		}
		results = append(results, sec)
	}
	return results, nil
}

// endpoints returns the addresses of the servers. An etcd that the peer needs is
// started.
func (b *bench) endpoints(p *peer) (endpoints, error) {
	at := endpoints{Redis: b.redis.addr}
	if !p.etcd {
		return at, nil
	}
	i := 0
	if p.setting == best {
		i = 1
	}
	if b.etcd[i] == nil {
		b.show("starting etcd")
		s, err := startEtcd(i == 1)
		if err != nil {
			return at, err
		}
		b.etcd[i] = s
	}
	if i == 1 {
		at.EtcdNoSync = b.etcd[i].addr
	} else {
		at.Etcd = b.etcd[i].addr
	}
	return at, nil
}

// selectPeers returns the peers that meet all conditions.
func (b *bench) selectPeers(conditions ...func(*peer) bool) []*peer {
	var out []*peer
	for _, p := range allPeers() {
		if !b.wants(p) || slices.ContainsFunc(conditions, func(f func(*peer) bool) bool { return !f(p) }) {
			continue
		}
		if p.python && pythonProgram() == "" {
			b.skipped[p.id()] = "TETHER_PYTHONS names no folder with " + portalockerVersion + "/bin/python"
			continue
		}
		out = append(out, p)
	}
	return out
}

// Conditions for selectPeers.
func notTether20ms(p *peer) bool { return p.library != tetherLibrary || p.setting == "" }
func notPython(p *peer) bool     { return !p.python }
func withoutTTL(p *peer) bool    { return p.ttl == 0 }
func notFloor(p *peer) bool      { return p.library != floorLibrary }
func withTTL(p *peer) bool       { return p.ttl > 0 }

// startsQuickly excludes from a quick run what takes long to start.
func (b *bench) startsQuickly(p *peer) bool { return !b.quick || !p.etcd || p.setting == best }

// inPinning excludes most peers from the pinned half of a quick run.
func (b *bench) inPinning(pin pinning) func(*peer) bool {
	return func(p *peer) bool {
		return !b.quick || pin.label != pinned || p.library == floorLibrary || p.library == tetherLibrary || p.id() == "rueidislock:best"
	}
}

// name returns a name that no other part of the run uses.
func (b *bench) name(what string) string {
	b.names++
	return what + strconv.Itoa(b.names)
}

// pinning says on which processors the servers and the clients run; nil is all.
type pinning struct {
	label            string
	servers, clients []int
}

// pinnings are: the scheduler decides; servers and clients are on different
// processors.
func pinnings() []pinning {
	out := []pinning{{label: unpinned}}
	if cpus := processors(); len(cpus) > 1 {
		out = append(out, pinning{pinned, cpus[:1], cpus[1:2]})
	}
	return out
}

const unpinned, pinned = "unpinned", "pinned"

// pinServers moves the running servers to their processors.
func (b *bench) pinServers(p pinning) error {
	cpus := p.servers
	if cpus == nil {
		if cpus = processors(); cpus == nil {
			return nil
		}
	}
	failed := pinProcess(b.redis.child.cmd.Process.Pid, cpus)
	for _, s := range b.etcd {
		if s != nil {
			failed = errors.Join(failed, pinProcess(s.child.cmd.Process.Pid, cpus))
		}
	}
	return failed
}

// forEachPinning calls f unpinned and pinned.
func (b *bench) forEachPinning(f func(pinning) error) error {
	for _, p := range pinnings() {
		if err := b.pinServers(p); err != nil {
			return err
		}
		if err := f(p); err != nil {
			return err
		}
	}
	return b.pinServers(pinning{})
}

// startWorker starts a worker process of a peer.
func (b *bench) startWorker(p *peer, pin pinning, side int) (*workerProcess, error) {
	at, err := b.endpoints(p)
	if err != nil {
		return nil, err
	}
	if p.etcd && pin.servers != nil {
		if err := b.pinServers(pin); err != nil { // etcd may have been started just now, unpinned
			return nil, err
		}
	}
	at.Side = side
	return startWorker(p, at, false, pin.clients)
}

// startCounting starts n worker processes that count their commands.
func (b *bench) startCounting(p *peer, n int) (workers, error) {
	at, err := b.endpoints(p)
	if err != nil {
		return nil, err
	}
	var all workers
	for range n {
		wp, err := startWorker(p, at, true, nil)
		if err != nil {
			all.stop()
			return nil, err
		}
		all = append(all, wp)
	}
	return all, nil
}

// interleave calls f for every peer in each round. The order of the peers changes
// from round to round.
func (b *bench) interleave(peers []*peer, n int, label string, f func(round int, p *peer) error) error {
	for round := range n {
		for i := range peers {
			p := peers[(i+round)%len(peers)]
			if b.interrupted() {
				return errInterrupted
			}
			if b.failed[p.id()] != nil {
				continue
			}
			b.show("%s, round %d of %d, %s", label, round+1, n, p.id())
			if err := b.excludeFailed(p, f(round, p)); err != nil {
				return err
			}
		}
	}
	return nil
}

// excludeFailed handles an error of a peer: the peer is left out of the rest of the
// section, and the report says so. An error of tether or the floor ends the run.
func (b *bench) excludeFailed(p *peer, err error) error {
	if err == nil || p.library == tetherLibrary || p.library == floorLibrary {
		return err
	}
	b.failed[p.id()] = err
	return nil
}

// pause waits where there is no condition to wait for.
func pause(d time.Duration) { <-time.After(d) }

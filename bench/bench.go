package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// bench is one run.
type bench struct {
	options
	*progress
	redis *redisServer
	etcd  [2]*etcdServer // that syncs, and that does not; started when needed
	names int
	left  map[string]string // peers that were left out, and why
	stop  chan struct{}     // closed when the run is to end
	// failed are the peers that have failed in this section.
	failed map[string]error
}

func newBench(o options, p *progress) (*bench, error) {
	s, err := startRedis()
	if err != nil {
		return nil, fmt.Errorf("redis-server: %w", err)
	}
	return &bench{options: o, progress: p, redis: s, left: map[string]string{}, failed: map[string]error{}, stop: make(chan struct{})}, nil
}

var errInterrupted = errors.New("interrupted")

func (b *bench) interrupted() bool {
	select {
	case <-b.stop:
		return true
	default:
		return false
	}
}

func (b *bench) end() {
	b.endEtcd()
	b.redis.stop()
}

func (b *bench) endEtcd() {
	for i, s := range b.etcd {
		if s != nil {
			s.stop()
			b.etcd[i] = nil
		}
	}
}

// run runs the sections that are wanted.
func (b *bench) run() ([]*chapter, error) {
	var book []*chapter
	for _, s := range sections() {
		if len(b.sections) > 0 && !slices.Contains(b.sections, s.name) {
			continue
		}
		if b.interrupted() {
			return book, errInterrupted
		}
		b.begins(s.name)
		c := &chapter{name: s.name, title: s.title, work: s.work}
		clear(b.failed)
		err := s.run(b, c)
		for _, id := range slices.Sorted(maps.Keys(b.failed)) {
			c.note("%s failed and was left out from then on: %v", id, b.failed[id])
		}
		b.endEtcd() // it would be in the next section's way
		if err != nil {
			return book, fmt.Errorf("%s: %w", s.name, err)
		}
		book = append(book, c)
	}
	return book, nil
}

// place is where the servers are. Those that a peer needs are started.
func (b *bench) place(p *peer) (place, error) {
	at := place{Redis: b.redis.addr}
	if !p.etcd {
		return at, nil
	}
	i := 0
	if p.setting == best {
		i = 1
	}
	if b.etcd[i] == nil {
		b.say("starting etcd")
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

// field are the peers that take part in a section.
func (b *bench) field(able ...func(*peer) bool) []*peer {
	var out []*peer
	for _, p := range peers() {
		if !b.wants(p) || slices.ContainsFunc(able, func(f func(*peer) bool) bool { return !f(p) }) {
			continue
		}
		if p.python && pythonProgram() == "" {
			b.left[p.id()] = "TETHER_PYTHONS names no folder with " + portalockerVersion + "/bin/python"
			continue
		}
		out = append(out, p)
	}
	return out
}

// What a section may ask of its peers.
func waits(p *peer) bool     { return p.library != floor }
func notQuick(p *peer) bool  { return p.library != own || p.setting == "" }
func notPython(p *peer) bool { return !p.python }
func connected(p *peer) bool { return p.ttl == 0 }
func hasATTL(p *peer) bool   { return p.ttl > 0 }

// short leaves what takes long to start out of a quick run.
func (b *bench) short(p *peer) bool { return !b.quick || !p.etcd || p.setting == best }

func notFloor(p *peer) bool { return p.library != floor }

// in leaves most peers out of the pinned half of a quick run.
func (b *bench) in(pin pinning) func(*peer) bool {
	return func(p *peer) bool {
		return !b.quick || pin.label != pinned || p.library == floor || p.library == own || p.id() == "rueidislock:best"
	}
}

// name is one that no other part of the run has used.
func (b *bench) name(what string) string {
	b.names++
	return what + strconv.Itoa(b.names)
}

// pinning is which processors the servers and the clients have.
type pinning struct {
	label            string
	servers, clients []int
}

// pinnings are as the scheduler likes, and servers and clients apart.
func pinnings() []pinning {
	out := []pinning{{label: unpinned}}
	if cpus := processors(); len(cpus) > 1 {
		out = append(out, pinning{pinned, cpus[:1], cpus[1:2]})
	}
	return out
}

const unpinned, pinned = "unpinned", "pinned"

// arrange moves the servers.
func (b *bench) arrange(p pinning) error {
	cpus := p.servers
	if cpus == nil {
		if cpus = processors(); cpus == nil {
			return nil
		}
	}
	failed := move(b.redis.child.cmd.Process.Pid, cpus)
	for _, s := range b.etcd {
		if s != nil {
			failed = errors.Join(failed, move(s.child.cmd.Process.Pid, cpus))
		}
	}
	return failed
}

// inEach runs something unpinned and pinned.
func (b *bench) inEach(f func(pinning) error) error {
	for _, p := range pinnings() {
		if err := b.arrange(p); err != nil {
			return err
		}
		if err := f(p); err != nil {
			return err
		}
	}
	return b.arrange(pinning{})
}

// hire starts a worker of a peer.
func (b *bench) hire(p *peer, pin pinning, side int) (*member, error) {
	at, err := b.place(p)
	if err != nil {
		return nil, err
	}
	if p.etcd && pin.servers != nil {
		if err := b.arrange(pin); err != nil { // it may have been started now
			return nil, err
		}
	}
	at.Side = side
	return hire(p, at, false, pin.clients)
}

// hireCounting starts some that count their commands.
func (b *bench) hireCounting(p *peer, n int) (crew, error) {
	at, err := b.place(p)
	if err != nil {
		return nil, err
	}
	var all crew
	for range n {
		m, err := hire(p, at, true, nil)
		if err != nil {
			all.end()
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// turns calls f for all peers in each round, each round in another order.
func (b *bench) turns(peers []*peer, n int, what string, f func(round int, p *peer) error) error {
	for round := range n {
		for i := range peers {
			p := peers[(i+round)%len(peers)]
			if b.interrupted() {
				return errInterrupted
			}
			if b.failed[p.id()] != nil {
				continue
			}
			b.say("%s, round %d of %d, %s", what, round+1, n, p.id())
			if err := b.tolerate(p, f(round, p)); err != nil {
				return err
			}
		}
	}
	return nil
}

// tolerate lets a peer fail: it is out for the rest of the section, which says
// so. Tether and the floor may not.
func (b *bench) tolerate(p *peer, err error) error {
	if err == nil || p.library == own || p.library == floor {
		return err
	}
	b.failed[p.id()] = err
	return nil
}

// settle waits for what cannot be waited for.
func settle(d time.Duration) { <-time.After(d) }

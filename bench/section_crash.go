package main

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"
)

// manyWaiters is a number of waiters beside one.
const manyWaiters = 16

// crash measures those whose lock is a connection round by round, and those
// who wait for a TTL meanwhile, a few times.
func crash(b *bench, c *chapter) error {
	patient := make(chan []ended, 1)
	go func() { patient <- b.patientCrashes() }()
	t := table{head: []string{"peer", "waiters", "p50", "p99", "longest", "kills"}}
	bars := chart{title: "From the kill of the holder to a waiter's grant", unit: "ms", log: true, series: []string{"1 waiter", "16 waiters"}}
	for _, users := range []int{1, manyWaiters} {
		field := b.field(connected, notFloor)
		if users > 1 {
			field = b.field(connected, notFloor, notPython)
		}
		took, err := b.endings(field, users, 2*b.rounds, syscall.SIGKILL)
		if err != nil {
			<-patient
			return err
		}
		for _, p := range field {
			r := took[p.id()]
			t.add(p.id(), fmt.Sprint(users), formatDuration(r.at(50)), formatDuration(r.at(99)), formatDuration(r.at(100)), fmt.Sprint(len(r)))
			bars.add(p.id(), micro(r.at(50))/1e3)
		}
		for _, l := range crashLimits {
			what := fmt.Sprintf("%s, %d waiting: ", l.id, users)
			c.within(what+"p50", took[l.id].at(50), l.p50)
			c.within(what+"p99", took[l.id].at(99), l.p99)
		}
	}
	b.say("waiting for those with a TTL")
	for _, e := range <-patient {
		if e.err != nil {
			b.failed[e.peer.id()] = e.err
			continue
		}
		t.add(e.peer.id(), "1", formatDuration(e.took), unknown, formatDuration(e.took), "1")
		bars.add(e.peer.id(), micro(e.took)/1e3)
	}
	c.tables, c.charts = append(c.tables, t), append(c.charts, bars)
	c.note("Peers whose lock is a key with a TTL are free when that is over, which depends on the setting; each was killed once. " +
		"etcd's default of 60 s is left out, and so is portalocker with 16 waiters, who can keep each other from the lock for minutes.")
	return nil
}

var crashLimits = []struct {
	id       string
	p50, p99 time.Duration
}{
	{own, 70 * time.Millisecond, 140 * time.Millisecond},
	{own + ":20ms", 15 * time.Millisecond, 35 * time.Millisecond},
}

// ended is the end of one peer's holder.
type ended struct {
	peer *peer
	took time.Duration
	err  error
}

// patientLimit leaves out whose TTL would take too long.
const patientLimit = 10 * time.Second

// patientCrashes are at the same time: they do little but wait.
func (b *bench) patientCrashes() []ended {
	var field []*peer
	for _, p := range b.field(hasATTL) {
		if p.ttl < patientLimit && !b.quick {
			field = append(field, p)
		}
	}
	out := make([]ended, len(field))
	var all sync.WaitGroup
	for i, p := range field {
		at, err := b.place(p)
		if err != nil {
			out[i] = ended{p, 0, err}
			continue
		}
		all.Go(func() {
			waiter, err := hire(p, at, false, nil)
			if err != nil {
				out[i] = ended{p, 0, err}
				return
			}
			defer waiter.end()
			d, err := ending(p, at, waiter, "patient-"+p.id(), 1, syscall.SIGKILL)
			out[i] = ended{p, d, err}
		})
	}
	all.Wait()
	return out
}

// endings ends a holder in each round.
func (b *bench) endings(field []*peer, users, n int, how syscall.Signal) (map[string]rounds, error) {
	took := map[string]rounds{}
	waiters := map[string]*member{}
	defer func() {
		for _, m := range waiters {
			m.end()
		}
	}()
	for _, p := range field {
		m, err := b.hire(p, pinning{}, 0)
		if err != nil {
			return nil, err
		}
		waiters[p.id()] = m
	}
	err := b.turns(field, n, fmt.Sprintf("%d waiting", users), func(round int, p *peer) error {
		if p.python && round >= slowRounds {
			return nil
		}
		at, err := b.place(p)
		if err != nil {
			return err
		}
		d, err := ending(p, at, waiters[p.id()], b.name("ending"), users, how)
		if err != nil {
			return err
		}
		took[p.id()] = append(took[p.id()], []time.Duration{d})
		return nil
	})
	return took, err
}

// ending lets a process hold and others wait, and ends the one that holds. The
// time runs from the signal's sending.
func ending(p *peer, at place, waiter *member, name string, users int, how syscall.Signal) (time.Duration, error) {
	holder, err := hire(p, at, false, nil)
	if err != nil {
		return 0, err
	}
	defer holder.kill()
	if _, err := holder.tell(order{Do: doAcquire, Name: name}); err != nil {
		return 0, err
	}
	grant := waiter.begin(order{Do: doAwait, Name: name, Users: users, Each: ownClient})
	settle(120*time.Millisecond + rand.N(150*time.Millisecond+p.looks))
	begin := now()
	if err := holder.signal(how); err != nil {
		return 0, err
	}
	a, err := waiter.await(grant)
	return time.Duration(a.At - begin), err
}

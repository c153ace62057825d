package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/tetherlock/tether"
)

// takers take many locks at the same time.
const takers = 32

// hold takes as many names as there are users.
func (w *worker) hold(o order) (answer, error) {
	return w.keep(o, func(i int) (func() error, error) {
		return w.lock.Acquire(forever, fmt.Sprintf("%s-%d", o.Name, i))
	})
}

// read takes one name as many readers, each with a client of its own.
func (w *worker) read(o order) (answer, error) {
	rdb := w.lock.(*tetherLocker).rdb
	return w.keep(o, func(int) (func() error, error) {
		client := tether.New(rdb)
		_, err := client.Lock(o.Name, tether.Shared()).Acquire(forever)
		return client.Close, err
	})
}

// keep takes locks, and has what releases them.
func (w *worker) keep(o order, take func(i int) (func() error, error)) (answer, error) {
	kept := make([]func() error, o.Users)
	failed := make([]error, takers)
	begin := time.Now()
	var all sync.WaitGroup
	for taker := range takers {
		all.Go(func() {
			for i := taker; i < o.Users && failed[taker] == nil; i += takers {
				kept[i], failed[taker] = take(i)
			}
		})
	}
	all.Wait()
	took := int64(time.Since(begin))
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, release := range kept {
		if release != nil {
			w.kept = append(w.kept, release)
		}
	}
	return answer{Took: []int64{took}}, errors.Join(failed...)
}

// wait lets users wait for a lock that somebody else has.
func (w *worker) wait(o order) (answer, error) {
	ctx, cancel := context.WithCancel(forever)
	w.mu.Lock()
	w.cancel = cancel
	w.mu.Unlock()
	for range o.Users {
		l, err := w.separate(o.Each)
		if err != nil {
			return answer{}, err
		}
		w.waiting.Go(func() {
			release, err := l.Acquire(ctx, o.Name)
			if err == nil {
				_ = release() // it came too late to matter
			}
			_ = l.Close()
		})
	}
	return answer{}, nil
}

func (w *worker) free(order) (answer, error) {
	w.mu.Lock()
	kept, cancel := w.kept, w.cancel
	w.kept, w.cancel = nil, nil
	w.mu.Unlock()
	if cancel != nil {
		cancel()
		w.waiting.Wait()
	}
	failed := make([]error, takers)
	var all sync.WaitGroup
	for taker := range takers {
		all.Go(func() {
			for i := taker; i < len(kept); i += takers {
				failed[taker] = errors.Join(failed[taker], kept[i]())
			}
		})
	}
	all.Wait()
	return answer{}, errors.Join(failed...)
}

func (w *worker) usage(order) (answer, error) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := usage{
		Memory: int64(m.HeapAlloc + m.StackInuse), Goroutines: int64(runtime.NumGoroutine()),
		Processor: processorTime(),
	}
	if w.place.sent != nil {
		u.Sent = w.place.sent.Load()
	}
	return answer{Usage: u}, nil
}

func (w *worker) probe(o order) (answer, error) {
	client := w.lock.(*tetherLocker).client
	var took []int64
	for range o.Ops {
		begin := time.Now()
		holders, err := client.Probe(forever, o.Name)
		if err != nil {
			return answer{}, err
		}
		if len(holders) != o.Users {
			return answer{}, fmt.Errorf("%d holders answered, of %d", len(holders), o.Users)
		}
		took = append(took, int64(time.Since(begin)))
	}
	return answer{Took: took}, nil
}

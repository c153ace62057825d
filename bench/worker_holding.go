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

// acquirers is how many goroutines acquire locks at the same time.
const acquirers = 32

// hold acquires one name for each user.
func (w *worker) hold(req request) (response, error) {
	return w.acquireAll(req, func(i int) (func() error, error) {
		return w.lock.Acquire(background, fmt.Sprintf("%s-%d", req.Name, i))
	})
}

// read acquires one name as many readers, each with a client of its own.
func (w *worker) read(req request) (response, error) {
	rdb := w.lock.(*tetherLocker).rdb
	return w.acquireAll(req, func(int) (func() error, error) {
		client := tether.New(rdb)
		_, err := client.Lock(req.Name, tether.Shared()).Acquire(background)
		return client.Close, err
	})
}

// acquireAll acquires locks, and keeps the functions that release them.
func (w *worker) acquireAll(req request, take func(i int) (func() error, error)) (response, error) {
	kept := make([]func() error, req.Users)
	failed := make([]error, acquirers)
	begin := time.Now()
	var all sync.WaitGroup
	for taker := range acquirers {
		all.Go(func() {
			for i := taker; i < req.Users && failed[taker] == nil; i += acquirers {
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
	return response{Took: []int64{took}}, errors.Join(failed...)
}

// wait lets users wait for a lock that another process holds.
func (w *worker) wait(req request) (response, error) {
	ctx, cancel := context.WithCancel(background)
	w.mu.Lock()
	w.cancel = cancel
	w.mu.Unlock()
	for range req.Users {
		l, err := w.newLocker(req.Isolation)
		if err != nil {
			return response{}, err
		}
		w.waiting.Go(func() {
			release, err := l.Acquire(ctx, req.Name)
			if err == nil {
				_ = release() // the measurement is over
			}
			_ = l.Close()
		})
	}
	return response{}, nil
}

func (w *worker) releaseAll(request) (response, error) {
	w.mu.Lock()
	kept, cancel := w.kept, w.cancel
	w.kept, w.cancel = nil, nil
	w.mu.Unlock()
	if cancel != nil {
		cancel()
		w.waiting.Wait()
	}
	failed := make([]error, acquirers)
	var all sync.WaitGroup
	for taker := range acquirers {
		all.Go(func() {
			for i := taker; i < len(kept); i += acquirers {
				failed[taker] = errors.Join(failed[taker], kept[i]())
			}
		})
	}
	all.Wait()
	return response{}, errors.Join(failed...)
}

func (w *worker) usage(request) (response, error) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := usage{
		Memory: int64(m.HeapAlloc + m.StackInuse), Goroutines: int64(runtime.NumGoroutine()),
		Processor: processorTime(),
	}
	if w.endpoints.commandsSent != nil {
		u.Sent = w.endpoints.commandsSent.Load()
	}
	return response{Usage: u}, nil
}

func (w *worker) probe(req request) (response, error) {
	client := w.lock.(*tetherLocker).client
	var took []int64
	for range req.Ops {
		begin := time.Now()
		holders, err := client.Probe(background, req.Name)
		if err != nil {
			return response{}, err
		}
		if len(holders) != req.Users {
			return response{}, fmt.Errorf("%d holders answered, of %d", len(holders), req.Users)
		}
		took = append(took, int64(time.Since(begin)))
	}
	return response{Took: took}, nil
}

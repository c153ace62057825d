package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"
)

var background = context.Background()

// lockName is one of Names names in turn, or a new name each time.
func (req request) lockName(i int) string {
	if req.Names == 0 {
		return req.Name + "-" + strconv.FormatInt(now(), 36) + "-" + strconv.Itoa(i)
	}
	return req.Name + "-" + strconv.Itoa(i%req.Names)
}

func (w *worker) alone(req request) (response, error) {
	acquire := w.lock.Acquire
	if once, ok := w.lock.(onceLocker); ok && req.Once {
		acquire = once.AcquireOnce
	}
	names := make([]string, req.Ops)
	for i := range names {
		names[i] = req.lockName(i)
	}
	took := make([]int64, 0, req.Ops)
	for _, name := range names {
		begin := time.Now()
		release, err := acquire(background, name)
		if err != nil {
			return response{}, err
		}
		if err := release(); err != nil {
			return response{}, err
		}
		took = append(took, int64(time.Since(begin)))
	}
	return response{Took: took}, nil
}

func (w *worker) cold(req request) (response, error) {
	var took []int64
	for i := range req.Ops {
		name := req.lockName(i)
		begin := time.Now()
		l, err := w.peer.open(w.endpoints)
		if err != nil {
			return response{}, err
		}
		release, err := l.Acquire(background, name)
		if err != nil {
			return response{}, err
		}
		took = append(took, int64(time.Since(begin)))
		if err := release(); err != nil {
			return response{}, err
		}
		if err := l.Close(); err != nil {
			return response{}, err
		}
	}
	return response{Took: took}, nil
}

// waitUntil waits for a time of the machine's clock.
func waitUntil(at int64) { <-time.After(time.Duration(at - now())) }

func (w *worker) many(req request) (response, error) {
	return w.runUsers(req, func(user int) (count int, err error) {
		name := fmt.Sprintf("%s-%d", req.Name, user)
		if err := w.pair(name); err != nil { // warm
			return 0, err
		}
		waitUntil(req.Begin)
		for now() < req.End {
			if err := w.pair(name); err != nil {
				return 0, err
			}
			count++
		}
		return count, nil
	})
}

func (w *worker) pair(name string) error {
	release, err := w.lock.Acquire(background, name)
	if err != nil {
		return err
	}
	return release()
}

// runUsers runs work for all users at the same time, and collects their counts.
func (w *worker) runUsers(req request, work func(user int) (int, error)) (response, error) {
	resp := response{Counts: make([]int, req.Users)}
	failed := make([]error, req.Users)
	var all sync.WaitGroup
	for user := range req.Users {
		all.Go(func() { resp.Counts[user], failed[user] = work(user) })
	}
	all.Wait()
	for _, err := range failed {
		if err != nil {
			return resp, err
		}
	}
	return resp, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

func (w *worker) acquire(req request) (response, error) {
	release, err := w.lock.Acquire(background, req.Name)
	at := now()
	if err != nil {
		return response{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held[req.Name] = release
	return response{At: at}, nil
}

var errNotHeld = errors.New("the lock is not held")

func (w *worker) release(req request) (response, error) {
	w.mu.Lock()
	release := w.held[req.Name]
	delete(w.held, req.Name)
	w.mu.Unlock()
	if release == nil {
		return response{}, errNotHeld
	}
	began := now()
	err := release()
	return response{Began: began, At: now()}, err
}

// crowd lets users contend. All run before Begin; sections are counted from Begin
// to End. At End the waiters give up.
func (w *worker) crowd(req request) (response, error) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	defer time.AfterFunc(time.Duration(req.End-now()), cancel).Stop()
	sent := make(chan int64, 1)
	go func() { sent <- w.commandsBetween(req) }()
	resp, err := w.runUsers(req, func(int) (count int, err error) {
		l, err := w.newLocker(req.Isolation)
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, l.Close()) }()
		for now() < req.End {
			release, err := l.Acquire(ctx, req.Name)
			if err != nil {
				if ctx.Err() != nil {
					break
				}
				return 0, err
			}
			if err := release(); err != nil && ctx.Err() == nil {
				return 0, err
			}
			if at := now(); req.Begin <= at && at < req.End {
				count++
			}
		}
		return count, nil
	})
	resp.Usage.Sent = <-sent
	return resp, err
}

// commandsBetween is the number of commands sent from Begin to End, 0 if they are
// not counted.
func (w *worker) commandsBetween(req request) int64 {
	if w.endpoints.commandsSent == nil {
		return 0
	}
	waitUntil(req.Begin)
	before := w.endpoints.commandsSent.Load()
	waitUntil(req.End)
	return w.endpoints.commandsSent.Load() - before
}

// await lets users wait, and returns when the first was granted the lock.
func (w *worker) await(req request) (response, error) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	first := make(chan int64, req.Users)
	_, err := w.runUsers(req, func(int) (int, error) {
		l, err := w.newLocker(req.Isolation)
		if err != nil {
			return 0, err
		}
		defer func() { _ = l.Close() }() // the result is known
		release, err := l.Acquire(ctx, req.Name)
		if err != nil {
			if ctx.Err() != nil {
				return 0, nil
			}
			return 0, err
		}
		first <- now()
		cancel()
		return 1, release()
	})
	select {
	case at := <-first:
		return response{At: at}, nil
	default:
		return response{}, fmt.Errorf("nobody was granted the lock: %w", err)
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

func (w *worker) acquire(o order) (answer, error) {
	release, err := w.lock.Acquire(forever, o.Name)
	at := now()
	if err != nil {
		return answer{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held[o.Name] = release
	return answer{At: at}, nil
}

var errNotHeld = errors.New("the lock is not held")

func (w *worker) release(o order) (answer, error) {
	w.mu.Lock()
	release := w.held[o.Name]
	delete(w.held, o.Name)
	w.mu.Unlock()
	if release == nil {
		return answer{}, errNotHeld
	}
	began := now()
	err := release()
	return answer{Began: began, At: now()}, err
}

// crowd lets users contend. All are there before Begin, from when on sections
// are counted; at End those who wait give up.
func (w *worker) crowd(o order) (answer, error) {
	ctx, cancel := context.WithCancel(forever)
	defer cancel()
	defer time.AfterFunc(time.Duration(o.End-now()), cancel).Stop()
	sent := make(chan int64, 1)
	go func() { sent <- w.sentWithin(o) }()
	a, err := w.together(o, func(int) (count int, err error) {
		l, err := w.separate(o.Each)
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, l.Close()) }()
		for now() < o.End {
			release, err := l.Acquire(ctx, o.Name)
			if err != nil {
				if ctx.Err() != nil {
					break
				}
				return 0, err
			}
			if err := release(); err != nil && ctx.Err() == nil {
				return 0, err
			}
			if at := now(); o.Begin <= at && at < o.End {
				count++
			}
		}
		return count, nil
	})
	a.Usage.Sent = <-sent
	return a, err
}

// sentWithin are the commands between Begin and End, 0 where nobody counts.
func (w *worker) sentWithin(o order) int64 {
	if w.place.sent == nil {
		return 0
	}
	until(o.Begin)
	before := w.place.sent.Load()
	until(o.End)
	return w.place.sent.Load() - before
}

// await lets users wait, and tells when the first of them was granted.
func (w *worker) await(o order) (answer, error) {
	ctx, cancel := context.WithCancel(forever)
	defer cancel()
	first := make(chan int64, o.Users)
	_, err := w.together(o, func(int) (int, error) {
		l, err := w.separate(o.Each)
		if err != nil {
			return 0, err
		}
		defer func() { _ = l.Close() }() // nobody depends on it
		release, err := l.Acquire(ctx, o.Name)
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
		return answer{At: at}, nil
	default:
		return answer{}, fmt.Errorf("nobody was granted the lock: %w", err)
	}
}

package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"
)

var forever = context.Background()

// names goes round some names, or has a new one each time.
func (o order) name(i int) string {
	if o.Names == 0 {
		return o.Name + "-" + strconv.FormatInt(now(), 36) + "-" + strconv.Itoa(i)
	}
	return o.Name + "-" + strconv.Itoa(i%o.Names)
}

func (w *worker) alone(o order) (answer, error) {
	acquire := w.lock.Acquire
	if once, ok := w.lock.(onceLocker); ok && o.Once {
		acquire = once.AcquireOnce
	}
	names := make([]string, o.Ops)
	for i := range names {
		names[i] = o.name(i)
	}
	took := make([]int64, 0, o.Ops)
	for _, name := range names {
		begin := time.Now()
		release, err := acquire(forever, name)
		if err != nil {
			return answer{}, err
		}
		if err := release(); err != nil {
			return answer{}, err
		}
		took = append(took, int64(time.Since(begin)))
	}
	return answer{Took: took}, nil
}

func (w *worker) cold(o order) (answer, error) {
	var took []int64
	for i := range o.Ops {
		name := o.name(i)
		begin := time.Now()
		l, err := w.peer.open(w.place)
		if err != nil {
			return answer{}, err
		}
		release, err := l.Acquire(forever, name)
		if err != nil {
			return answer{}, err
		}
		took = append(took, int64(time.Since(begin)))
		if err := release(); err != nil {
			return answer{}, err
		}
		if err := l.Close(); err != nil {
			return answer{}, err
		}
	}
	return answer{Took: took}, nil
}

// until waits for a time of the machine's clock.
func until(at int64) { <-time.After(time.Duration(at - now())) }

func (w *worker) many(o order) (answer, error) {
	return w.together(o, func(user int) (count int, err error) {
		name := fmt.Sprintf("%s-%d", o.Name, user)
		if err := w.once(name); err != nil { // warm
			return 0, err
		}
		until(o.Begin)
		for now() < o.End {
			if err := w.once(name); err != nil {
				return 0, err
			}
			count++
		}
		return count, nil
	})
}

func (w *worker) once(name string) error {
	release, err := w.lock.Acquire(forever, name)
	if err != nil {
		return err
	}
	return release()
}

// together lets all users do something, and has their counts.
func (w *worker) together(o order, work func(user int) (int, error)) (answer, error) {
	a := answer{Counts: make([]int, o.Users)}
	failed := make([]error, o.Users)
	var all sync.WaitGroup
	for user := range o.Users {
		all.Go(func() { a.Counts[user], failed[user] = work(user) })
	}
	all.Wait()
	for _, err := range failed {
		if err != nil {
			return a, err
		}
	}
	return a, nil
}

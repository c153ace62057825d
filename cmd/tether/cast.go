//go:build unix && !aix && !solaris

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"
)

// actor is a contender as the demo sees it: a process.
type actor struct {
	name    string
	cmd     *exec.Cmd
	orders  io.WriteCloser
	heard   chan struct{} // closed when it has nothing more to tell
	wants   bool          // the lock
	waiting bool          // wants it, and has met its holder
	dead    bool
}

func (a *actor) String() string { return a.name }

func (a *actor) pid() int { return a.cmd.Process.Pid }

// told is a note with its sender.
type told struct {
	who *actor
	note
}

// hire starts a contender. It is killed when ctx ends, and ends by itself if
// the demo is killed.
func hire(ctx context.Context, name, url string, heard chan<- told) (*actor, error) {
	cmd := exec.CommandContext(ctx, self(), contenderName, url, demoLock)
	cmd.Stderr = os.Stderr
	orders, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	notes, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	a := &actor{name: name, cmd: cmd, orders: orders, heard: make(chan struct{})}
	go func() {
		defer close(a.heard)
		for lines := bufio.NewScanner(notes); lines.Scan(); {
			t := told{who: a}
			if err := json.Unmarshal(lines.Bytes(), &t.note); err != nil {
				t.note = note{Kind: noteFailed, Text: lines.Text()}
			}
			select {
			case heard <- t:
			case <-ctx.Done():
			}
		}
	}()
	return a, nil
}

// order tells a contender what to do. If it is dead, that shows as silence.
func (a *actor) order(what string) {
	a.wants = a.wants || what == orderTake
	_, _ = fmt.Fprintln(a.orders, what)
}

func (a *actor) kill() error {
	a.dead = true
	return a.cmd.Process.Kill()
}

// dismiss waits for the end of all processes; their context has ended.
func (d *demo) dismiss() {
	for _, a := range d.cast {
		<-a.heard
		_ = a.cmd.Wait() // killed, which is an error
	}
}

// until hears notes until there was one of each kind. It returns the last ones.
func (d *demo) until(ctx context.Context, kinds ...string) (map[string]told, error) {
	got := map[string]told{}
	for slices.ContainsFunc(kinds, func(k string) bool { return got[k].who == nil }) {
		t, err := d.hear(ctx)
		if err != nil {
			return nil, err
		}
		got[t.Kind] = t
	}
	return got, nil
}

// settle hears notes until all who want the lock wait for its holder.
func (d *demo) settle(ctx context.Context) error {
	for slices.ContainsFunc(d.cast, func(a *actor) bool { return a.wants && !a.waiting }) {
		if _, err := d.hear(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) hear(ctx context.Context) (told, error) {
	select {
	case t := <-d.heard:
		return t, d.book(t)
	case <-ctx.Done():
		return told{}, context.Cause(ctx)
	}
}

// span is a hold. Its end is the earliest moment at which the lock may have
// been free.
type span struct {
	who      *actor
	from, to time.Time
	token    int64
}

// book notes who holds the lock from when to when.
func (d *demo) book(t told) error {
	switch t.Kind {
	case noteWaiting:
		t.who.waiting = true
	case noteGranted:
		d.holder, d.id = t.who, t.ID
		t.who.wants, t.who.waiting = false, false
		d.holds = append(d.holds, span{who: t.who, from: t.At, token: t.Token})
	case noteReleased, noteLost:
		d.over(t.who, t.At)
	case noteFailed:
		return fmt.Errorf("%s says: %s", t.who, t.Text)
	}
	return nil
}

// over ends a contender's last hold, if that has not ended already.
func (d *demo) over(who *actor, at time.Time) {
	for i := len(d.holds) - 1; i >= 0; i-- {
		if d.holds[i].who == who {
			if d.holds[i].to.IsZero() {
				d.holds[i].to = at
			}
			break
		}
	}
	if d.holder == who {
		d.holder = nil
	}
}

// inOrder sorts holds by their begin: the notes of two processes may arrive in
// any order.
func inOrder(holds []span) []span {
	return slices.SortedFunc(slices.Values(holds), func(a, b span) int { return a.from.Compare(b.from) })
}

// overlapping counts the holds that began before the one before them had
// ended.
func overlapping(holds []span) int {
	holds, n := inOrder(holds), 0
	for i := 1; i < len(holds); i++ {
		if before := holds[i-1].to; before.IsZero() || holds[i].from.Before(before) {
			n++
		}
	}
	return n
}

// rising says whether every hold has a higher token than the one before it.
func rising(holds []span) bool {
	last := int64(0)
	for _, h := range inOrder(holds) {
		if h.token <= last {
			return false
		}
		last = h.token
	}
	return true
}

// gap is the median of the times from the end of a hold to the begin of the
// next one.
func gap(holds []span) time.Duration {
	holds = inOrder(holds)
	var gaps []time.Duration
	for i := 1; i < len(holds); i++ {
		gaps = append(gaps, holds[i].from.Sub(holds[i-1].to))
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2]
}

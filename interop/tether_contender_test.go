package interop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tetherlock/tether"
)

// The styles in which a tether process contends in a soak.
const (
	styleWaits = "waits"          // acquires, and waits until it is granted
	styleTries = "comes and goes" // tries, and tries again some milliseconds later
)

// contender acquires one lock again and again, and appends entries to the history.
type contender struct {
	request request
	history *os.File
	locks   map[string]*tether.Lock
	grants  chan grant
	granted int
}

// grant is a granted hold, with bounds for the time of the decision.
type grant struct {
	id               string
	earliest, latest int64
}

func contend(rdb *redis.Client, o request) error {
	history, err := os.OpenFile(o.History, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer history.Close()
	c := &contender{request: o, history: history, grants: make(chan grant, 1024)}
	client := tether.New(rdb, tether.WithObserver(c.observer()))
	defer client.Close()
	opts := append(lockOptions(o.lock), tether.OnLost(func(*tether.Hold) { _ = c.add(now(), "lost") }))
	c.locks = map[string]*tether.Lock{
		"x": client.Lock(o.Channel, opts...),
		"s": client.Lock(o.Channel, append(opts, tether.Shared())...),
	}
	for end := time.Now().Add(o.Seconds.duration()); err == nil && (time.Now().Before(end) || c.granted == 0); {
		mode := "x"
		if rand.Float64() < o.Readers {
			mode = "s"
		}
		err = c.turn(mode)
	}
	return err
}

// add appends an entry, in one write, so that lines of several processes do not
// mix.
func (c *contender) add(at int64, words ...any) error {
	_, err := c.history.WriteString(fmt.Sprintln(append([]any{at, c.request.Who}, words...)...))
	return err
}

// observer adds an entry for each reap, and finds the bounds of each grant. One
// variable is enough: only one of the two locks is in use at a time.
func (c *contender) observer() func(tether.Event) {
	var earliest int64
	return func(e tether.Event) {
		switch e := e.(type) {
		case tether.AttemptEvent:
			earliest = historyTime(e.At)
		case tether.ElectedEvent:
			earliest = historyTime(e.At)
		case tether.GrantedEvent:
			c.grants <- grant{e.HolderID, earliest, historyTime(e.At)}
		case tether.ReapedEvent:
			_ = c.add(historyTime(e.At), "reaping", e.Holder.ID)
		}
	}
}

// historyTime converts a time to the clock of the history.
func historyTime(at time.Time) int64 { return now() - int64(time.Since(at)) }

func (c *contender) turn(mode string) error {
	h, err := c.take(c.locks[mode])
	switch {
	case errors.Is(err, tether.ErrHeld), errors.Is(err, context.DeadlineExceeded):
		return nil
	case err != nil && c.request.Style == styleTries:
		return nil // a try also ends without a grant when the election is undecided
	case err != nil:
		return err
	}
	c.granted++
	g := <-c.grants
	if g.id != h.ID() {
		return fmt.Errorf("the events tell of a grant of %s, not of %s", g.id, h.ID())
	}
	if err := c.add(g.latest, "granted", mode, h.ID(), g.earliest); err != nil {
		return err
	}
	pause(c.request.Hold.duration())
	if err := c.add(now(), "leaving"); err != nil {
		return err
	}
	_ = h.Release(context.Background()) // it may be lost by now
	pause(c.request.Pause.duration())
	return nil
}

// pause waits up to d.
func pause(d time.Duration) { <-time.After(rand.N(d + 1)) }

func (c *contender) take(l *tether.Lock) (*tether.Hold, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.request.Timeout.duration())
	defer cancel()
	if c.request.Style == styleWaits {
		return l.Acquire(ctx)
	}
	pause(4 * time.Millisecond)
	return l.TryAcquire(ctx)
}

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

// The ways in which tether's side contends.
const (
	waits        = "waits"          // as a program does that must have the lock
	comesAndGoes = "comes and goes" // tries, and is back within milliseconds
)

// contender takes one lock again and again, and writes a journal of it.
type contender struct {
	order   order
	journal *os.File
	locks   map[string]*tether.Lock
	grants  chan grant
	granted int
}

// grant is when a hold was decided on: not before, and not after.
type grant struct {
	id               string
	earliest, latest int64
}

func contend(rdb *redis.Client, o order) error {
	journal, err := os.OpenFile(o.Journal, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer journal.Close()
	c := &contender{order: o, journal: journal, grants: make(chan grant, 1024)}
	client := tether.New(rdb, tether.WithObserver(c.observer()))
	defer client.Close()
	opts := append(lockOptions(o.lock), tether.OnLost(func(*tether.Hold) { _ = c.note(now(), "lost") }))
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

// note writes a line of the journal, in one write: lines of all processes stand
// there whole.
func (c *contender) note(at int64, words ...any) error {
	_, err := c.journal.WriteString(fmt.Sprintln(append([]any{at, c.order.Who}, words...)...))
	return err
}

// observer notes what is reaped, and bounds when each grant was decided. Only one
// of the two locks is busy at a time.
func (c *contender) observer() func(tether.Event) {
	var earliest int64
	return func(e tether.Event) {
		switch e := e.(type) {
		case tether.AttemptEvent:
			earliest = stamp(e.At)
		case tether.ElectedEvent:
			earliest = stamp(e.At)
		case tether.GrantedEvent:
			c.grants <- grant{e.HolderID, earliest, stamp(e.At)}
		case tether.ReapedEvent:
			_ = c.note(stamp(e.At), "reaping", e.Holder.ID)
		}
	}
}

// stamp is a time on the journal's clock.
func stamp(at time.Time) int64 { return now() - int64(time.Since(at)) }

func (c *contender) turn(mode string) error {
	h, err := c.take(c.locks[mode])
	switch {
	case errors.Is(err, tether.ErrHeld), errors.Is(err, context.DeadlineExceeded):
		return nil
	case err != nil && c.order.Style == comesAndGoes:
		return nil // undecided contenders end a try as well
	case err != nil:
		return err
	}
	c.granted++
	g := <-c.grants
	if g.id != h.ID() {
		return fmt.Errorf("the events tell of a grant of %s, not of %s", g.id, h.ID())
	}
	if err := c.note(g.latest, "granted", mode, h.ID(), g.earliest); err != nil {
		return err
	}
	pause(c.order.Hold.duration())
	if err := c.note(now(), "leaving"); err != nil {
		return err
	}
	_ = h.Release(context.Background()) // it may be lost by now
	pause(c.order.Pause.duration())
	return nil
}

// pause waits up to d.
func pause(d time.Duration) { <-time.After(rand.N(d + 1)) }

func (c *contender) take(l *tether.Lock) (*tether.Hold, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.order.Timeout.duration())
	defer cancel()
	if c.order.Style == waits {
		return l.Acquire(ctx)
	}
	pause(4 * time.Millisecond)
	return l.TryAcquire(ctx)
}

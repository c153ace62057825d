//go:build unix && !aix && !solaris

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/tetherlock/tether"
)

const contenderName = "__contender"

// What the demo tells a contender, a line each. Its end ends the contender.
const (
	orderTake   = "take"
	orderDrop   = "drop"
	orderRounds = "rounds" // take and drop, some times
)

// What a contender tells the demo.
const (
	noteWaiting  = "waiting" // for a holder that it has met
	noteGranted  = "granted"
	noteReleased = "released" // told before it is, to be on the safe side
	noteLost     = "lost"
	noteDone     = "done" // with the rounds
	noteFailed   = "failed"
)

// note is a line from a contender. The time is the wall clock's, the only one
// that Go shows and all processes share.
type note struct {
	Kind  string    `json:"kind"`
	At    time.Time `json:"at"`
	ID    string    `json:"id,omitempty"`
	Token int64     `json:"token,omitempty"`
	Text  string    `json:"text,omitempty"`
}

const (
	rounds    = 5
	roundTime = 10 * time.Millisecond
)

// contenderCommand is one of the demo's processes.
func contenderCommand() *cobra.Command {
	return &cobra.Command{
		Use: contenderName, Hidden: true, DisableFlagParsing: true, Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := redis.ParseURL(args[0])
			if err != nil {
				return usage("%s is for tether demo", contenderName)
			}
			rdb := redis.NewClient(o)
			defer func() { _ = rdb.Close() }() // unused itself
			locks := tether.New(rdb)
			defer func() { _ = locks.Close() }() // always nil
			ctx, cancel := context.WithCancel(c.Context())
			defer cancel()
			lock := locks.Lock(args[1], tether.Fenced())
			p := contestant{lock, lock.Events(), orders(os.Stdin, cancel), json.NewEncoder(os.Stdout)}
			if err := p.obey(ctx); err != nil && ctx.Err() == nil {
				return p.tell(note{Kind: noteFailed, Text: plain(err)})
			}
			return nil
		},
	}
}

// orders reads lines. At their end nobody is left to contend for.
func orders(in io.Reader, ended func()) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		defer ended()
		for s := bufio.NewScanner(in); s.Scan(); {
			lines <- strings.TrimSpace(s.Text())
		}
	}()
	return lines
}

// contestant is a contender's own side.
type contestant struct {
	lock   *tether.Lock
	events <-chan tether.Event
	orders <-chan string
	out    *json.Encoder
}

func (p *contestant) obey(ctx context.Context) error {
	for order := range p.orders {
		var err error
		switch order {
		case orderTake:
			err = p.take(ctx)
		case orderRounds:
			err = p.contend(ctx)
		default:
			err = fmt.Errorf("unknown order %q", order)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take holds the lock until it is told to drop it, or loses it.
func (p *contestant) take(ctx context.Context) error {
	h, err := p.granted(ctx)
	if err != nil {
		return err
	}
	select {
	case <-h.Lost():
		return p.tell(note{Kind: noteLost, Text: plain(h.Err())})
	case <-p.orders: // drop, or the end
		return p.release(ctx, h)
	}
}

// contend takes the lock again and again.
func (p *contestant) contend(ctx context.Context) error {
	for range rounds {
		h, err := p.granted(ctx)
		if err != nil {
			return err
		}
		<-time.After(roundTime)
		if err := p.release(ctx, h); err != nil {
			return err
		}
	}
	return p.tell(note{Kind: noteDone})
}

func (p *contestant) granted(ctx context.Context) (*tether.Hold, error) {
	result := p.lock.AcquireAsync(ctx)
	told := false
	for {
		select {
		case r := <-result:
			if r.Err != nil {
				return nil, r.Err
			}
			return r.Hold, p.tell(note{Kind: noteGranted, ID: r.Hold.ID(), Token: r.Hold.Token()})
		case e := <-p.events:
			if _, waits := e.(tether.WaitingEvent); waits && !told {
				told = true
				if err := p.tell(note{Kind: noteWaiting}); err != nil {
					return nil, err
				}
			}
		}
	}
}

func (p *contestant) release(ctx context.Context, h *tether.Hold) error {
	if err := p.tell(note{Kind: noteReleased}); err != nil {
		return err
	}
	return h.Release(ctx)
}

func (p *contestant) tell(n note) error {
	n.At = time.Now()
	return p.out.Encode(n)
}

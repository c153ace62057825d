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

const demoWorkerName = "__demo-worker"

// Commands of the demo to a worker process, one a line. At the end of the input
// the worker ends.
const (
	cmdAcquire = "acquire"
	cmdRelease = "release"
	cmdRounds  = "rounds" // acquire and release, several times
)

// Messages of a worker process to the demo.
const (
	msgWaiting  = "waiting" // somebody else holds the lock
	msgGranted  = "granted"
	msgReleased = "released" // sent before the release, so that the hold is never recorded as too short
	msgLost     = "lost"
	msgDone     = "done" // all rounds are done
	msgFailed   = "failed"
)

// message is one line of a worker process. At is wall-clock time: it is the only
// clock that Go exposes and that all processes share.
type message struct {
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

// demoWorkerCommand is the worker's side: one of the demo's processes.
func demoWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use: demoWorkerName, Hidden: true, DisableFlagParsing: true, Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := redis.ParseURL(args[0])
			if err != nil {
				return usageError("%s is for tether demo", demoWorkerName)
			}
			rdb := redis.NewClient(o)
			defer func() { _ = rdb.Close() }() // it has no open connections
			locks := tether.New(rdb)
			defer func() { _ = locks.Close() }() // always nil
			ctx, cancel := context.WithCancel(c.Context())
			defer cancel()
			lock := locks.Lock(args[1], tether.Fenced())
			w := demoWorker{lock, lock.Events(), readCommands(os.Stdin, cancel), json.NewEncoder(os.Stdout)}
			if err := w.run(ctx); err != nil && ctx.Err() == nil {
				return w.send(message{Kind: msgFailed, Text: errorText(err)})
			}
			return nil
		},
	}
}

// readCommands reads lines. The end of the input means that the demo has ended.
func readCommands(in io.Reader, ended func()) <-chan string {
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

// demoWorker acquires and releases the demo's lock as it is told.
type demoWorker struct {
	lock     *tether.Lock
	events   <-chan tether.Event
	commands <-chan string
	out      *json.Encoder
}

func (w *demoWorker) run(ctx context.Context) error {
	for command := range w.commands {
		var err error
		switch command {
		case cmdAcquire:
			err = w.hold(ctx)
		case cmdRounds:
			err = w.runRounds(ctx)
		default:
			err = fmt.Errorf("unknown command %q", command)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hold acquires the lock, and holds it until it is told to release it or until
// the lock is lost.
func (w *demoWorker) hold(ctx context.Context) error {
	h, err := w.acquire(ctx)
	if err != nil {
		return err
	}
	select {
	case <-h.Lost():
		return w.send(message{Kind: msgLost, Text: errorText(h.Err())})
	case <-w.commands: // release, or the end of the input
		return w.release(ctx, h)
	}
}

// runRounds acquires and releases the lock several times.
func (w *demoWorker) runRounds(ctx context.Context) error {
	for range rounds {
		h, err := w.acquire(ctx)
		if err != nil {
			return err
		}
		<-time.After(roundTime)
		if err := w.release(ctx, h); err != nil {
			return err
		}
	}
	return w.send(message{Kind: msgDone})
}

func (w *demoWorker) acquire(ctx context.Context) (*tether.Hold, error) {
	result := w.lock.AcquireAsync(ctx)
	sent := false
	for {
		select {
		case r := <-result:
			if r.Err != nil {
				return nil, r.Err
			}
			return r.Hold, w.send(message{Kind: msgGranted, ID: r.Hold.ID(), Token: r.Hold.Token()})
		case e := <-w.events:
			if _, waits := e.(tether.WaitingEvent); waits && !sent {
				sent = true
				if err := w.send(message{Kind: msgWaiting}); err != nil {
					return nil, err
				}
			}
		}
	}
}

func (w *demoWorker) release(ctx context.Context, h *tether.Hold) error {
	if err := w.send(message{Kind: msgReleased}); err != nil {
		return err
	}
	return h.Release(ctx)
}

func (w *demoWorker) send(m message) error {
	m.At = time.Now()
	return w.out.Encode(m)
}

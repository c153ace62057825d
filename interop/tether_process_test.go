package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/tetherlock/tether"
)

// tetherProcessEnv makes the test binary a process of tether's side.
const tetherProcessEnv = "TETHER_INTEROP_CHILD"

// tetherProcess is the process of tether's side. It has the same requests as
// testdata/peer.py.
type tetherProcess struct {
	writing sync.Mutex
	output  *json.Encoder

	rdb    *redis.Client
	client *tether.Client
	lock   *tether.Lock
	name   string
	hold   *tether.Hold
}

// serveRequests handles requests until the input is closed.
func serveRequests(input io.Reader, output io.Writer) {
	c := &tetherProcess{output: json.NewEncoder(output)}
	for lines := bufio.NewScanner(input); lines.Scan(); {
		var o request
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			panic(err)
		}
		a := c.handle(o)
		a.Call = o.Call
		c.write(a)
	}
}

func (c *tetherProcess) write(a response) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.output.Encode(a); err != nil {
		panic(err)
	}
}

func (c *tetherProcess) handle(o request) response {
	switch o.Do {
	case "connect":
		return c.connect(o.serverParams)
	case "open":
		return c.open(o.lock)
	case "acquire":
		return c.acquire(o.acquireParams)
	case "release":
		return outcome(c.hold.Release(context.Background()))
	case "probe":
		return c.probe()
	case "state":
		_, lost := errors.AsType[*tether.LostError](c.hold.Err())
		return response{Outcome: done, Lost: lost}
	case "contend":
		return outcome(contend(c.rdb, o))
	default:
		return outcome(fmt.Errorf("unknown request %q", o.Do))
	}
}

func outcome(err error) response {
	switch {
	case err == nil:
		return response{Outcome: done}
	case errors.Is(err, tether.ErrHeld), errors.Is(err, context.DeadlineExceeded):
		return response{Outcome: refused, Text: err.Error()}
	default:
		return response{Outcome: failed, Text: err.Error()}
	}
}

func (c *tetherProcess) connect(s serverParams) response {
	c.rdb = redis.NewClient(&redis.Options{Addr: net.JoinHostPort(s.Host, strconv.Itoa(s.Port))})
	c.client = tether.New(c.rdb)
	return response{Outcome: done}
}

func (c *tetherProcess) open(l lock) response {
	c.name = l.Channel
	opts := append(lockOptions(l), tether.OnLost(func(h *tether.Hold) { c.write(response{Event: "lost", ID: h.ID()}) }))
	c.lock = c.client.Lock(l.Channel, opts...)
	return response{Outcome: done}
}

func lockOptions(l lock) []tether.LockOption {
	var opts []tether.LockOption
	if l.Shared {
		opts = append(opts, tether.Shared())
	}
	if l.Fenced {
		opts = append(opts, tether.Fenced())
	}
	if l.SelfCheck > 0 {
		opts = append(opts, tether.WithSelfCheck(l.SelfCheck.duration()))
	}
	if l.Unavailable > 0 {
		opts = append(opts, tether.WithUnavailableTimeout(l.Unavailable.duration()))
	}
	return opts
}

func (c *tetherProcess) acquire(a acquireParams) response {
	acquire, limit := c.lock.Acquire, a.Timeout.duration()
	if a.Try {
		acquire, limit = c.lock.TryAcquire, testTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	h, err := acquire(ctx)
	if err != nil {
		return outcome(err)
	}
	c.hold = h
	return response{Outcome: granted, ID: h.ID(), Token: h.Token()}
}

func (c *tetherProcess) probe() response {
	holders, err := c.client.Probe(context.Background(), c.name)
	if err != nil {
		return outcome(err)
	}
	a := response{Outcome: done}
	for _, h := range holders {
		a.Participants = append(a.Participants, participant{h.ID, h.Mode, h.Legacy, h.Elected})
	}
	return a
}

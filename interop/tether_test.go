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

// childEnv makes the test binary a process of tether's side.
const childEnv = "TETHER_INTEROP_CHILD"

// child is the process of tether's side. It obeys the same orders as
// testdata/peer.py.
type child struct {
	writing sync.Mutex
	output  *json.Encoder

	rdb    *redis.Client
	client *tether.Client
	lock   *tether.Lock
	name   string
	hold   *tether.Hold
}

// serve obeys orders until there are no more.
func serve(input io.Reader, output io.Writer) {
	c := &child{output: json.NewEncoder(output)}
	for lines := bufio.NewScanner(input); lines.Scan(); {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			panic(err)
		}
		a := c.obey(o)
		a.Call = o.Call
		c.say(a)
	}
}

func (c *child) say(a answer) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.output.Encode(a); err != nil {
		panic(err)
	}
}

func (c *child) obey(o order) answer {
	switch o.Do {
	case "connect":
		return c.connect(o.server)
	case "open":
		return c.open(o.lock)
	case "acquire":
		return c.acquire(o.attempt)
	case "release":
		return outcome(c.hold.Release(context.Background()))
	case "probe":
		return c.probe()
	case "state":
		_, lost := errors.AsType[*tether.LostError](c.hold.Err())
		return answer{Outcome: done, Lost: lost}
	case "contend":
		return outcome(contend(c.rdb, o))
	default:
		return outcome(fmt.Errorf("unknown order %q", o.Do))
	}
}

func outcome(err error) answer {
	switch {
	case err == nil:
		return answer{Outcome: done}
	case errors.Is(err, tether.ErrHeld), errors.Is(err, context.DeadlineExceeded):
		return answer{Outcome: refused, Text: err.Error()}
	default:
		return answer{Outcome: failed, Text: err.Error()}
	}
}

func (c *child) connect(s server) answer {
	c.rdb = redis.NewClient(&redis.Options{Addr: net.JoinHostPort(s.Host, strconv.Itoa(s.Port))})
	c.client = tether.New(c.rdb)
	return answer{Outcome: done}
}

func (c *child) open(l lock) answer {
	c.name = l.Channel
	opts := append(lockOptions(l), tether.OnLost(func(h *tether.Hold) { c.say(answer{Event: "lost", ID: h.ID()}) }))
	c.lock = c.client.Lock(l.Channel, opts...)
	return answer{Outcome: done}
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

func (c *child) acquire(a attempt) answer {
	take, limit := c.lock.Acquire, a.Timeout.duration()
	if a.Try {
		take, limit = c.lock.TryAcquire, patience
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	h, err := take(ctx)
	if err != nil {
		return outcome(err)
	}
	c.hold = h
	return answer{Outcome: granted, ID: h.ID(), Token: h.Token()}
}

func (c *child) probe() answer {
	holders, err := c.client.Probe(context.Background(), c.name)
	if err != nil {
		return outcome(err)
	}
	a := answer{Outcome: done}
	for _, h := range holders {
		a.Members = append(a.Members, member{h.ID, h.Mode, h.Legacy, h.Elected})
	}
	return a
}

package stress

import (
	"context"
	"math/rand/v2"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tetherlock/tether/internal/redistest"
)

// What a pause of the server stops.
const (
	pauseAll   = "ALL"
	pauseWrite = "WRITE"
)

// chance is something that may be done, as often as its weight says.
type chance struct {
	weight int
	do     func() error
}

// draw picks one of several chances.
func draw(chances []chance) func() error {
	sum := 0
	for _, c := range chances {
		sum += c.weight
	}
	n := rand.IntN(sum)
	for _, c := range chances {
		if n -= c.weight; n < 0 {
			return c.do
		}
	}
	return nil
}

// between returns a random duration.
func between(least, most time.Duration) time.Duration { return least + rand.N(most-least) }

// haunt stops, continues, kills and restarts one worker until the end.
func (c *crewman) haunt(unavailable time.Duration, over <-chan struct{}) error {
	chances := []chance{
		{5, func() error { return c.freeze(between(time.Millisecond, unavailable*3/5), over) }},
		{4, func() error { return c.freeze(between(unavailable, 3*unavailable), over) }},
		{2, func() error {
			if err := c.kill(); err != nil {
				return err
			}
			return c.launch()
		}},
		{1, func() error { // killed while it is stopped
			c.add(stop)
			if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				return err
			}
			wait(between(time.Millisecond, 2*unavailable), over)
			if err := c.kill(); err != nil {
				return err
			}
			return c.launch()
		}},
	}
	for wait(between(200*time.Millisecond, 6*time.Second), over) {
		if err := draw(chances)(); err != nil {
			return err
		}
	}
	return nil
}

// tormentor is what happens to the server and its connections.
type tormentor struct {
	server  *redistest.Server
	admin   *redis.Client
	journal *journal
	orders  orders
	over    <-chan struct{}
	until   time.Duration // when the last pause of writes is over
}

// run does one thing after another until the end.
func (r *tormentor) run() error {
	u, h := r.orders.Unavailable, r.orders.Health
	chances := []chance{
		{60, r.cut},
		{6, func() error { return r.flush(unlearnt, "SCRIPT", "FLUSH") }},
		{6, func() error { return r.flush(flushed, "FLUSHALL") }},
		{6, func() error { return r.pause(pauseAll, between(time.Millisecond, u)) }},
		{3, func() error { return r.pause(pauseAll, between(u, h*3/4)) }},
		{1, func() error { return r.pause(pauseAll, between(h, h*3/2)) }},
		{6, func() error { return r.pause(pauseWrite, between(time.Millisecond, u)) }},
		{3, func() error { return r.pause(pauseWrite, between(u, 3*u)) }},
		{4, r.restart},
	}
	for wait(between(20*time.Millisecond, 300*time.Millisecond), r.over) {
		if err := draw(chances)(); err != nil {
			return err
		}
	}
	return nil
}

// do runs a command, which is held back while the server pauses.
func (r *tormentor) do(args ...any) (any, error) {
	return r.admin.Do(context.Background(), args...).Result()
}

// cut ends the connection of a participant, whoever it is.
func (r *tormentor) cut() error {
	text, err := r.do("CLIENT", "LIST")
	if err != nil {
		return err
	}
	var lines []string
	for line := range strings.Lines(text.(string)) {
		if strings.Contains(line, "-lock-") {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	fields := map[string]string{}
	for field := range strings.FieldsSeq(lines[rand.IntN(len(lines))]) {
		key, value, _ := strings.Cut(field, "=")
		fields[key] = value
	}
	name := fields["name"]
	id := name[strings.LastIndex(name, "-")+1:]
	r.journal.add(entry{Kind: cutting, ID: id})
	n, err := r.do("CLIENT", "KILL", "ID", fields["id"])
	if err != nil {
		return err
	}
	r.journal.add(entry{Kind: cut, ID: id, N: n.(int64)})
	return nil
}

func (r *tormentor) flush(k kind, args ...any) error {
	_, err := r.do(args...)
	r.journal.add(entry{Kind: k})
	return err
}

// pause lets the server hold commands back. In a pause of writes the rest goes
// on, so other things happen meanwhile. A pause of all that comes in the middle
// of one takes as long as the longer of them.
func (r *tormentor) pause(what string, d time.Duration) error {
	if what == pauseAll {
		d = max(d, r.until-clock())
	} else {
		r.until = max(r.until, clock()+d)
	}
	e := entry{Kind: pausing, Text: what, N: int64(d)}
	r.journal.add(e)
	_, err := r.do("CLIENT", "PAUSE", d.Milliseconds(), what)
	e.Kind = paused
	r.journal.add(e)
	if what == pauseAll {
		wait(d, r.over)
	}
	return err
}

// restart kills the server and starts it again, without data.
func (r *tormentor) restart() error {
	r.journal.add(entry{Kind: down})
	if err := r.server.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	r.journal.add(entry{Kind: dead})
	r.until = 0
	wait(rand.N(200*time.Millisecond), r.over)
	if err := r.server.Restart(); err != nil {
		return err
	}
	r.journal.add(entry{Kind: up})
	return nil
}

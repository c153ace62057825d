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

// The commands that CLIENT PAUSE holds up.
const (
	pauseAll   = "ALL"
	pauseWrite = "WRITE"
)

// fault is something that goes wrong. A fault with twice the weight is picked
// twice as often.
type fault struct {
	weight int
	do     func() error
}

// pick picks one of several faults at random.
func pick(faults []fault) func() error {
	sum := 0
	for _, c := range faults {
		sum += c.weight
	}
	n := rand.IntN(sum)
	for _, c := range faults {
		if n -= c.weight; n < 0 {
			return c.do
		}
	}
	return nil
}

// between returns a random duration.
func between(least, most time.Duration) time.Duration { return least + rand.N(most-least) }

// injectFaults stops, continues, kills and restarts one worker until done is
// closed.
func (c *workerProcess) injectFaults(unavailable time.Duration, done <-chan struct{}) error {
	faults := []fault{
		{5, func() error { return c.freeze(between(time.Millisecond, unavailable*3/5), done) }},
		{4, func() error { return c.freeze(between(unavailable, 3*unavailable), done) }},
		{2, func() error {
			if err := c.kill(); err != nil {
				return err
			}
			return c.launch()
		}},
		{1, func() error { // killed while it is stopped
			c.add(stopping)
			if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				return err
			}
			wait(between(time.Millisecond, 2*unavailable), done)
			if err := c.kill(); err != nil {
				return err
			}
			return c.launch()
		}},
	}
	for wait(between(200*time.Millisecond, 6*time.Second), done) {
		if err := pick(faults)(); err != nil {
			return err
		}
	}
	return nil
}

// serverFaults injects faults into the server and its connections.
type serverFaults struct {
	server            *redistest.Server
	admin             *redis.Client
	history           *historyFile
	config            config
	done              <-chan struct{}
	writesPausedUntil time.Duration // when the last pause of writes ends
}

// run injects one fault after another until done is closed.
func (r *serverFaults) run() error {
	u, h := r.config.Unavailable, r.config.Health
	faults := []fault{
		{60, r.disconnect},
		{6, func() error { return r.flush(scriptsFlushed, "SCRIPT", "FLUSH") }},
		{6, func() error { return r.flush(dataFlushed, "FLUSHALL") }},
		{6, func() error { return r.pause(pauseAll, between(time.Millisecond, u)) }},
		{3, func() error { return r.pause(pauseAll, between(u, h*3/4)) }},
		{1, func() error { return r.pause(pauseAll, between(h, h*3/2)) }},
		{6, func() error { return r.pause(pauseWrite, between(time.Millisecond, u)) }},
		{3, func() error { return r.pause(pauseWrite, between(u, 3*u)) }},
		{4, r.restart},
	}
	for wait(between(20*time.Millisecond, 300*time.Millisecond), r.done) {
		if err := pick(faults)(); err != nil {
			return err
		}
	}
	return nil
}

// do runs a command. In a pause it waits for the end of the pause.
func (r *serverFaults) do(args ...any) (any, error) {
	return r.admin.Do(context.Background(), args...).Result()
}

// disconnect ends the connection of a random participant.
func (r *serverFaults) disconnect() error {
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
	r.history.add(entry{Kind: disconnecting, ID: id})
	n, err := r.do("CLIENT", "KILL", "ID", fields["id"])
	if err != nil {
		return err
	}
	r.history.add(entry{Kind: disconnected, ID: id, N: n.(int64)})
	return nil
}

func (r *serverFaults) flush(k kind, args ...any) error {
	_, err := r.do(args...)
	r.history.add(entry{Kind: k})
	return err
}

// pause makes the server hold commands up. During a pause of writes it returns at
// once, and other faults follow. Redis keeps the later of two ends: a pause of all
// commands during a pause of writes lasts at least as long as that one.
func (r *serverFaults) pause(what string, d time.Duration) error {
	if what == pauseAll {
		d = max(d, r.writesPausedUntil-clock())
	} else {
		r.writesPausedUntil = max(r.writesPausedUntil, clock()+d)
	}
	e := entry{Kind: pausing, Text: what, N: int64(d)}
	r.history.add(e)
	_, err := r.do("CLIENT", "PAUSE", d.Milliseconds(), what)
	e.Kind = paused
	r.history.add(e)
	if what == pauseAll {
		wait(d, r.done)
	}
	return err
}

// restart kills the server and starts it again, without data.
func (r *serverFaults) restart() error {
	r.history.add(entry{Kind: serverKilling})
	if err := r.server.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	r.history.add(entry{Kind: serverKilled})
	r.writesPausedUntil = 0
	wait(rand.N(200*time.Millisecond), r.done)
	if err := r.server.Restart(); err != nil {
		return err
	}
	r.history.add(entry{Kind: serverStarted})
	return nil
}

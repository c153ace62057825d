package main

import (
	"fmt"
	"time"
)

// waiters are how many wait, first few and then many.
func (b *bench) waiters() (few, many int) {
	if b.quick {
		return 20, 100
	}
	return 100, 1000
}

func waiting(b *bench, c *chapter) error {
	field := b.field(notQuick, waits, notPython, func(p *peer) bool {
		return p.library == own || p.setting == best && (!b.quick || !p.etcd) || p.id() == "redislock" && !b.quick
	})
	t := table{head: []string{"peer", "waiters", "until they sleep", "commands/s from the clients", "commands/s in Redis", "client's CPU", "Redis's CPU"}}
	seen := map[int]window{}
	few, many := b.waiters()
	for _, n := range []int{few, many} {
		for _, p := range field {
			b.say("%d waiters, %s", n, p.id())
			w, asleep, err := b.wait(p, n)
			if b.tolerate(p, err) != nil {
				return err
			}
			if p.id() == own {
				seen[n] = w
			}
			sent, inside := formatNumber(w.sent), formatNumber(w.commands)
			if p.etcd {
				sent, inside = unknown, unknown
			}
			t.add(p.id(), fmt.Sprint(n), formatDuration(asleep), sent, inside, formatNumber(w.processor)+" %", formatNumber(w.server)+" %")
		}
	}
	c.tables = append(c.tables, t)
	c.ratioAtMost(fmt.Sprintf("commands/s in Redis with %d waiters, beside %d", many, few),
		ratio(seen[many].commands, seen[few].commands), 1.5)
	c.note("The sleepers of a lock look four times in a poll interval, however many they are: 40 times a second. Nearly all of the " +
		"process's time is what it costs to wake up for that, and to write and read a few bytes.")
	c.note("Those who sleep until they are woken are watched from when the server is calm, after 20 s at the latest.")
	c.atMost("CPU of the waiting process", seen[many].processor, 2, " %")
	c.atMost("CPU of Redis", seen[many].server, 2, " %")
	return nil
}

const (
	// calm is how many commands per second are left when all sleep.
	calm      = 500
	calmLimit = 20 * time.Second
)

// asleep waits until those who are woken have gone to sleep, and tells how long
// that took. Those who look at an interval get a moment to begin.
func (b *bench) asleep(p *peer) (time.Duration, error) {
	const step = 200 * time.Millisecond
	if p.looks > 0 || p.etcd {
		settle(b.duration)
		return 0, nil
	}
	begin := time.Now()
	before, err := b.redis.info("stats", "total_commands_processed")
	for err == nil && time.Since(begin) < calmLimit {
		settle(step)
		var after int64
		after, err = b.redis.info("stats", "total_commands_processed")
		if float64(after-before) < calm*step.Seconds() {
			break
		}
		before = after
	}
	return time.Since(begin), err
}

// wait has one process hold and another wait with many users.
func (b *bench) wait(p *peer, n int) (w window, asleep time.Duration, err error) {
	all, err := b.hireCounting(p, 2)
	if err != nil {
		return w, asleep, err
	}
	defer all.end()
	holder, waiter, name := all[0], all[1], b.name("wait")
	if _, err := holder.tell(order{Do: doAcquire, Name: name}); err != nil {
		return w, asleep, err
	}
	if _, err := waiter.tell(order{Do: doWait, Name: name, Users: n, Each: ownClient}); err != nil {
		return w, asleep, err
	}
	if asleep, err = b.asleep(p); err != nil {
		return w, asleep, err
	}
	length := 10 * b.duration
	if p.library != own {
		length = 3 * b.duration
	}
	if w, err = b.window(waiter, length); err != nil {
		return w, asleep, err
	}
	_, err = waiter.tell(order{Do: doFree})
	return w, asleep, err
}

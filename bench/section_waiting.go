package main

import (
	"fmt"
	"time"
)

// waiterCounts are the numbers of waiters.
func (b *bench) waiterCounts() (few, many int) {
	if b.quick {
		return 20, 100
	}
	return 100, 1000
}

func waiting(b *bench, sec *reportSection) error {
	selected := b.selectPeers(notTether20ms, notFloor, notPython, func(p *peer) bool {
		return p.library == tetherLibrary || p.setting == best && (!b.quick || !p.etcd) || p.id() == "redislock" && !b.quick
	})
	t := table{head: []string{"peer", "waiters", "until they sleep", "commands/s from the clients", "commands/s in Redis", "client's CPU", "Redis's CPU"}}
	seen := map[int]usageRates{}
	few, many := b.waiterCounts()
	for _, n := range []int{few, many} {
		for _, p := range selected {
			b.show("%d waiters, %s", n, p.id())
			w, asleep, err := b.measureWaiting(p, n)
			if b.excludeFailed(p, err) != nil {
				return err
			}
			if p.id() == tetherLibrary {
				seen[n] = w
			}
			sent, inside := formatNumber(w.sent), formatNumber(w.commands)
			if p.etcd {
				sent, inside = unknown, unknown
			}
			t.add(p.id(), fmt.Sprint(n), formatDuration(asleep), sent, inside, formatNumber(w.processor)+" %", formatNumber(w.server)+" %")
		}
	}
	sec.tables = append(sec.tables, t)
	sec.ratioAtMost(fmt.Sprintf("commands/s in Redis with %d waiters, beside %d", many, few),
		ratio(seen[many].commands, seen[few].commands), 1.5)
	sec.note("All sleepers of a lock together poll four times in a poll interval: 40 times a second, however many they are. Nearly all of the " +
		"process's time is the cost of waking up for that, and of writing and reading a few bytes.")
	sec.note("Waiters that sleep until they are woken are measured once the server is idle, after 20 s at the latest.")
	sec.atMost("CPU of the waiting process", seen[many].processor, 2, " %")
	sec.atMost("CPU of Redis", seen[many].server, 2, " %")
	return nil
}

const (
	// Below idleCommandRate commands per second all waiters are asleep.
	idleCommandRate = 500
	idleTimeout     = 20 * time.Second
)

// awaitSleep waits until all waiters are asleep, and returns how long that took.
// Waiters that retry at an interval never sleep, and Redis does not see those of
// etcd: they get a moment to start.
func (b *bench) awaitSleep(p *peer) (time.Duration, error) {
	const step = 200 * time.Millisecond
	if p.retryInterval > 0 || p.etcd {
		pause(b.duration)
		return 0, nil
	}
	begin := time.Now()
	before, err := b.redis.info("stats", "total_commands_processed")
	for err == nil && time.Since(begin) < idleTimeout {
		pause(step)
		var after int64
		after, err = b.redis.info("stats", "total_commands_processed")
		if float64(after-before) < idleCommandRate*step.Seconds() {
			break
		}
		before = after
	}
	return time.Since(begin), err
}

// measureWaiting lets one process hold the lock, and n users in another wait.
func (b *bench) measureWaiting(p *peer, n int) (w usageRates, asleep time.Duration, err error) {
	all, err := b.startCounting(p, 2)
	if err != nil {
		return w, asleep, err
	}
	defer all.stop()
	holder, waiter, name := all[0], all[1], b.name("wait")
	if _, err := holder.call(request{Task: taskAcquire, Name: name}); err != nil {
		return w, asleep, err
	}
	if _, err := waiter.call(request{Task: taskWait, Name: name, Users: n, Isolation: ownClient}); err != nil {
		return w, asleep, err
	}
	if asleep, err = b.awaitSleep(p); err != nil {
		return w, asleep, err
	}
	length := 10 * b.duration
	if p.library != tetherLibrary {
		length = 3 * b.duration
	}
	if w, err = b.measureUsage(waiter, length); err != nil {
		return w, asleep, err
	}
	_, err = waiter.call(request{Task: taskReleaseAll})
	return w, asleep, err
}

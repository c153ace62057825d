//go:build unix && !aix && !solaris

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/tetherlock/tether/tethertest"
)

const (
	demoLock    = "demo"
	demoTimeout = 20 * time.Second
	// maxGrantDelay is how long the next grant may take: two poll intervals,
	// and what a busy machine needs to schedule four processes.
	maxGrantDelay = 500 * time.Millisecond
	// maxWakeDelay is how long the grant may take after a wake. It is less than
	// a poll interval, so a grant by polling fails the check.
	maxWakeDelay = 50 * time.Millisecond
	// maxLossDelay is how long a holder may take to learn of its loss.
	maxLossDelay = 50 * time.Millisecond
	// connectionKills is how many connections are killed. The median counts: a
	// busy machine may delay a single one.
	connectionKills = 3
)

func demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show what happens when a holder is killed; needs no Redis",
		Long: `Starts the in-process server and four processes that contend for one lock. The
holder releases it, is killed with SIGKILL, and loses its connection; each time
another one goes on. Prints what happened when, and takes about a second.

Exit codes: 0 if all went as it should; 1 if not.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeoutCause(c.Context(), demoTimeout, fmt.Errorf("not done after %v", demoTimeout))
			defer cancel()
			ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			return runDemo(ctx, c.OutOrStdout())
		},
	}
}

func runDemo(ctx context.Context, out io.Writer) error {
	server, err := tethertest.Start("127.0.0.1:0")
	if err != nil {
		return cannotServeError("127.0.0.1:0", err)
	}
	defer server.Close()
	admin := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { _ = admin.Close() }() // the demo has ended
	d := &demo{out: out, admin: admin, messages: make(chan workerMessage), start: time.Now()}
	ctx, cancel := context.WithCancel(ctx)
	defer d.waitWorkers()
	defer cancel()
	if err := d.run(ctx, "redis://"+server.Addr()); err != nil {
		return &exitError{exitFailed, fmt.Sprintf("the demo did not get to its end: %v: try again, perhaps on a less busy machine", err)}
	}
	return d.printChecks()
}

// demo is the state of one run.
type demo struct {
	out      io.Writer
	admin    *redis.Client
	workers  []*workerProcess
	messages chan workerMessage
	start    time.Time

	holder   *workerProcess
	holderID string
	holds    []holdSpan
	checks   []check
}

// check is a condition, and whether it was met.
type check struct {
	ok   bool
	text string
}

func (d *demo) run(ctx context.Context, url string) error {
	for _, name := range []string{"alice", "bob", "carol", "dave"} {
		w, err := startWorker(ctx, name, url, d.messages)
		if err != nil {
			return err
		}
		d.workers = append(d.workers, w)
	}
	var names []string
	for _, w := range d.workers {
		names = append(names, fmt.Sprintf("%s (%d)", w, w.pid()))
	}
	d.printEvent(time.Now(), "processes that want one lock: %s; server at %s", strings.Join(names, ", "), url)
	for _, step := range []func(context.Context) error{d.firstGrant, d.release, d.killHolder, d.killConnections, d.contend} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// firstGrant lets every worker acquire the lock. One gets it, the others wait.
func (d *demo) firstGrant(ctx context.Context) error {
	for _, w := range d.workers {
		w.send(cmdAcquire)
	}
	got, err := d.awaitMessages(ctx, msgGranted)
	if err != nil {
		return err
	}
	d.printEvent(got[msgGranted].At, "%s holds the lock, the others wait", d.holder)
	return d.awaitWaiting(ctx)
}

// release lets the holder release, and measures the time to the next grant.
func (d *demo) release(ctx context.Context) error {
	before := d.holder
	before.send(cmdRelease)
	got, err := d.awaitMessages(ctx, msgReleased, msgGranted)
	if err != nil {
		return err
	}
	released, granted := got[msgReleased].At, got[msgGranted].At
	d.printEvent(released, "%s releases it", before)
	d.printEvent(granted, "%s holds it, %s after the release", d.holder, ms(granted.Sub(released)))
	d.check(granted.Sub(released) <= maxGrantDelay, "released: the next one held it after %s", ms(granted.Sub(released)))
	before.send(cmdAcquire)
	return d.awaitWaiting(ctx)
}

// killHolder kills the holder's process, and measures the time to the next grant.
func (d *demo) killHolder(ctx context.Context) error {
	old := d.holder
	killed := time.Now()
	d.endHold(old, killed)
	if err := old.kill(); err != nil {
		return err
	}
	got, err := d.awaitMessages(ctx, msgGranted)
	if err != nil {
		return err
	}
	granted := got[msgGranted].At
	d.printEvent(killed, "%s is killed: kill -9 %d", old, old.pid())
	d.printEvent(granted, "%s holds it, %s after the kill", d.holder, ms(granted.Sub(killed)))
	d.check(granted.Sub(killed) <= maxGrantDelay, "holder killed with SIGKILL: the next one held it after %s", ms(granted.Sub(killed)))
	return d.awaitWaiting(ctx)
}

// killConnections kills the connection of the holder several times, and checks
// the medians.
func (d *demo) killConnections(ctx context.Context) error {
	var noticed, taken []time.Duration
	for range connectionKills {
		n, t, err := d.killConnection(ctx)
		if err != nil {
			return err
		}
		noticed, taken = append(noticed, n), append(taken, t)
	}
	slices.Sort(noticed)
	slices.Sort(taken)
	d.check(noticed[connectionKills/2] <= maxLossDelay, "connection cut: its holder knew after %s (median of %d)", ms(noticed[connectionKills/2]), connectionKills)
	d.check(taken[connectionKills/2] <= maxGrantDelay, "connection cut: the next one held it after %s (median of %d)", ms(taken[connectionKills/2]), connectionKills)
	return nil
}

// killConnection kills the holder's connection. It returns how long the holder
// took to notice, and how long the next grant took. The old holder then waits
// for the lock again.
func (d *demo) killConnection(ctx context.Context) (noticed, taken time.Duration, err error) {
	old := d.holder
	client, err := d.holderConnection(ctx)
	if err != nil {
		return 0, 0, err
	}
	cut := time.Now()
	d.endHold(old, cut)
	if err := d.admin.ClientKillByFilter(ctx, "ID", client).Err(); err != nil {
		return 0, 0, err
	}
	got, err := d.awaitMessages(ctx, msgLost, msgGranted)
	if err != nil {
		return 0, 0, err
	}
	lost, granted := got[msgLost].At, got[msgGranted].At
	d.printEvent(cut, "%s's connection is cut: CLIENT KILL ID %s", old, client)
	lines := []func(){
		func() {
			d.printEvent(lost, "%s knows that the lock is lost, %s after the cut", old, ms(lost.Sub(cut)))
		},
		func() { d.printEvent(granted, "%s holds it, %s after the cut", d.holder, ms(granted.Sub(cut))) },
	}
	if granted.Before(lost) {
		slices.Reverse(lines)
	}
	for _, line := range lines {
		line()
	}
	old.send(cmdAcquire)
	return lost.Sub(cut), granted.Sub(cut), d.awaitWaiting(ctx)
}

// holderConnection finds the client id of the holder's connection by its name.
func (d *demo) holderConnection(ctx context.Context) (string, error) {
	list, err := d.admin.ClientList(ctx).Result()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(list) {
		if !strings.Contains(line, " name="+demoLock+"-lock-"+d.holderID+" ") {
			continue
		}
		for field := range strings.FieldsSeq(line) {
			if id, ok := strings.CutPrefix(field, "id="); ok {
				return id, nil
			}
		}
	}
	return "", errors.New("the server does not list the holder's connection")
}

// contend lets all workers that are alive acquire and release the lock in a loop.
func (d *demo) contend(ctx context.Context) error {
	for d.holder != nil {
		d.holder.send(cmdRelease)
		kinds := []string{msgReleased}
		if slices.ContainsFunc(d.workers, func(w *workerProcess) bool { return w.wants }) {
			kinds = append(kinds, msgGranted)
		}
		if _, err := d.awaitMessages(ctx, kinds...); err != nil {
			return err
		}
	}
	first := len(d.holds)
	alive := 0
	for _, w := range d.workers {
		if !w.dead {
			w.send(cmdRounds)
			alive++
		}
	}
	d.printEvent(time.Now(), "%d processes take and release it %d times each", alive, rounds)
	var last workerMessage
	for range alive {
		got, err := d.awaitMessages(ctx, msgDone)
		if err != nil {
			return err
		}
		last = got[msgDone]
	}
	d.printEvent(last.At, "all of them are done")
	d.check(len(d.holds)-first == alive*rounds, "%d processes at once: %d grants of %d", alive, len(d.holds)-first, alive*rounds)
	woken := medianHandOver(d.holds[first:])
	d.check(woken <= maxWakeDelay, "woken by a release: the next one held it after %s (median of %d)", ms(woken), alive*rounds-1)
	return nil
}

// printEvent prints a line of the timeline.
func (d *demo) printEvent(at time.Time, format string, args ...any) {
	fmt.Fprintf(d.out, "%9.1f ms  %s\n", float64(at.Sub(d.start).Microseconds())/1e3, fmt.Sprintf(format, args...))
}

func (d *demo) check(ok bool, format string, args ...any) {
	d.checks = append(d.checks, check{ok, fmt.Sprintf(format, args...)})
}

// printChecks prints the checks, and returns an error if one failed.
func (d *demo) printChecks() error {
	overlaps := countOverlaps(d.holds)
	d.check(overlaps == 0, "one holder at a time: %d holds, %d overlaps", len(d.holds), overlaps)
	d.check(tokensRise(d.holds), "fencing: every hold has a higher token than the one before it")
	fmt.Fprintln(d.out)
	failed := 0
	for _, c := range d.checks {
		word := "ok  "
		if !c.ok {
			word = "FAIL"
			failed++
		}
		fmt.Fprintf(d.out, "%s  %s\n", word, c.text)
	}
	if failed > 0 {
		return &exitError{exitFailed, fmt.Sprintf("%d of %d checks failed: try again on a less busy machine; if that is no help, report it", failed, len(d.checks))}
	}
	return nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1e3) }

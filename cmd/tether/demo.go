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
	demoLock  = "demo"
	demoLimit = 20 * time.Second
	// grantLimit is how long the next holder may take: two poll intervals, and
	// what a busy machine needs to let four processes run.
	grantLimit = 500 * time.Millisecond
	// wakeLimit is how long it may take when it is woken: less than a poll.
	wakeLimit = 50 * time.Millisecond
	// lossLimit is how long a holder may take to learn of its loss.
	lossLimit = 50 * time.Millisecond
	// cuts is how often a connection is cut. The median counts: a single one
	// may fall into a moment when the machine does something else.
	cuts = 3
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
			ctx, cancel := context.WithTimeoutCause(c.Context(), demoLimit, fmt.Errorf("not done after %v", demoLimit))
			defer cancel()
			ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			return demonstrate(ctx, c.OutOrStdout())
		},
	}
}

func demonstrate(ctx context.Context, out io.Writer) error {
	server, err := tethertest.Start("127.0.0.1:0")
	if err != nil {
		return cannotServe("127.0.0.1:0", err)
	}
	defer server.Close()
	admin := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { _ = admin.Close() }() // all is over then
	d := &demo{out: out, admin: admin, heard: make(chan told), began: time.Now()}
	ctx, cancel := context.WithCancel(ctx)
	defer d.dismiss()
	defer cancel()
	if err := d.play(ctx, "redis://"+server.Addr()); err != nil {
		return &outcome{exitFailed, fmt.Sprintf("the demo did not get to its end: %v: try again, perhaps on a less busy machine", err)}
	}
	return d.verdict()
}

// demo is what happens, and what is found out about it.
type demo struct {
	out   io.Writer
	admin *redis.Client
	cast  []*actor
	heard chan told
	began time.Time

	holder *actor
	id     string // of its hold
	holds  []span
	checks []check
}

// check is something that must be true in the end.
type check struct {
	ok   bool
	text string
}

func (d *demo) play(ctx context.Context, url string) error {
	for _, name := range []string{"alice", "bob", "carol", "dave"} {
		a, err := hire(ctx, name, url, d.heard)
		if err != nil {
			return err
		}
		d.cast = append(d.cast, a)
	}
	var names []string
	for _, a := range d.cast {
		names = append(names, fmt.Sprintf("%s (%d)", a, a.pid()))
	}
	d.tell(time.Now(), "processes that want one lock: %s; server at %s", strings.Join(names, ", "), url)
	for _, scene := range []func(context.Context) error{d.opening, d.release, d.crash, d.cutAll, d.scramble} {
		if err := scene(ctx); err != nil {
			return err
		}
	}
	return nil
}

// opening lets everybody want the lock.
func (d *demo) opening(ctx context.Context) error {
	for _, a := range d.cast {
		a.order(orderTake)
	}
	got, err := d.until(ctx, noteGranted)
	if err != nil {
		return err
	}
	d.tell(got[noteGranted].At, "%s holds the lock, the others wait", d.holder)
	return d.settle(ctx)
}

// release hands the lock over.
func (d *demo) release(ctx context.Context) error {
	before := d.holder
	before.order(orderDrop)
	got, err := d.until(ctx, noteReleased, noteGranted)
	if err != nil {
		return err
	}
	released, granted := got[noteReleased].At, got[noteGranted].At
	d.tell(released, "%s releases it", before)
	d.tell(granted, "%s holds it, %s after the release", d.holder, ms(granted.Sub(released)))
	d.check(granted.Sub(released) <= grantLimit, "released: the next one held it after %s", ms(granted.Sub(released)))
	before.order(orderTake)
	return d.settle(ctx)
}

// crash kills the holder's process.
func (d *demo) crash(ctx context.Context) error {
	victim := d.holder
	killed := time.Now()
	d.over(victim, killed)
	if err := victim.kill(); err != nil {
		return err
	}
	got, err := d.until(ctx, noteGranted)
	if err != nil {
		return err
	}
	granted := got[noteGranted].At
	d.tell(killed, "%s is killed: kill -9 %d", victim, victim.pid())
	d.tell(granted, "%s holds it, %s after the kill", d.holder, ms(granted.Sub(killed)))
	d.check(granted.Sub(killed) <= grantLimit, "holder killed with SIGKILL: the next one held it after %s", ms(granted.Sub(killed)))
	return d.settle(ctx)
}

// cutAll cuts the connections of some holders.
func (d *demo) cutAll(ctx context.Context) error {
	var noticed, taken []time.Duration
	for range cuts {
		n, t, err := d.cut(ctx)
		if err != nil {
			return err
		}
		noticed, taken = append(noticed, n), append(taken, t)
	}
	slices.Sort(noticed)
	slices.Sort(taken)
	d.check(noticed[cuts/2] <= lossLimit, "connection cut: its holder knew after %s (median of %d)", ms(noticed[cuts/2]), cuts)
	d.check(taken[cuts/2] <= grantLimit, "connection cut: the next one held it after %s (median of %d)", ms(taken[cuts/2]), cuts)
	return nil
}

// cut cuts one, and lets its owner come back.
func (d *demo) cut(ctx context.Context) (noticed, taken time.Duration, err error) {
	victim := d.holder
	client, err := d.connection(ctx)
	if err != nil {
		return 0, 0, err
	}
	cut := time.Now()
	d.over(victim, cut)
	if err := d.admin.ClientKillByFilter(ctx, "ID", client).Err(); err != nil {
		return 0, 0, err
	}
	got, err := d.until(ctx, noteLost, noteGranted)
	if err != nil {
		return 0, 0, err
	}
	lost, granted := got[noteLost].At, got[noteGranted].At
	d.tell(cut, "%s's connection is cut: CLIENT KILL ID %s", victim, client)
	lines := []func(){
		func() { d.tell(lost, "%s knows that the lock is lost, %s after the cut", victim, ms(lost.Sub(cut))) },
		func() { d.tell(granted, "%s holds it, %s after the cut", d.holder, ms(granted.Sub(cut))) },
	}
	if granted.Before(lost) {
		slices.Reverse(lines)
	}
	for _, line := range lines {
		line()
	}
	victim.order(orderTake)
	return lost.Sub(cut), granted.Sub(cut), d.settle(ctx)
}

// connection finds the holder's connection by its name.
func (d *demo) connection(ctx context.Context) (string, error) {
	list, err := d.admin.ClientList(ctx).Result()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(list) {
		if !strings.Contains(line, " name="+demoLock+"-lock-"+d.id+" ") {
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

// scramble lets all who are left take and release the lock at the same time.
func (d *demo) scramble(ctx context.Context) error {
	for d.holder != nil {
		d.holder.order(orderDrop)
		kinds := []string{noteReleased}
		if slices.ContainsFunc(d.cast, func(a *actor) bool { return a.wants }) {
			kinds = append(kinds, noteGranted)
		}
		if _, err := d.until(ctx, kinds...); err != nil {
			return err
		}
	}
	began := len(d.holds)
	alive := 0
	for _, a := range d.cast {
		if !a.dead {
			a.order(orderRounds)
			alive++
		}
	}
	d.tell(time.Now(), "%d processes take and release it %d times each", alive, rounds)
	var last told
	for range alive {
		got, err := d.until(ctx, noteDone)
		if err != nil {
			return err
		}
		last = got[noteDone]
	}
	d.tell(last.At, "all of them are done")
	d.check(len(d.holds)-began == alive*rounds, "%d processes at once: %d grants of %d", alive, len(d.holds)-began, alive*rounds)
	woken := gap(d.holds[began:])
	d.check(woken <= wakeLimit, "woken by a release: the next one held it after %s (median of %d)", ms(woken), alive*rounds-1)
	return nil
}

// tell prints a line of the timeline.
func (d *demo) tell(at time.Time, format string, args ...any) {
	fmt.Fprintf(d.out, "%9.1f ms  %s\n", float64(at.Sub(d.began).Microseconds())/1e3, fmt.Sprintf(format, args...))
}

func (d *demo) check(ok bool, format string, args ...any) {
	d.checks = append(d.checks, check{ok, fmt.Sprintf(format, args...)})
}

// verdict prints what has been found out.
func (d *demo) verdict() error {
	overlaps := overlapping(d.holds)
	d.check(overlaps == 0, "one holder at a time: %d holds, %d overlaps", len(d.holds), overlaps)
	d.check(rising(d.holds), "fencing: every hold has a higher token than the one before it")
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
		return &outcome{exitFailed, fmt.Sprintf("%d of %d checks failed: try again on a less busy machine; if that is no help, report it", failed, len(d.checks))}
	}
	return nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1e3) }

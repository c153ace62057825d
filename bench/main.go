// Command bench measures tether beside other locks, on a Redis of its own.
//
//	go run .                          # everything: tables, plots, a report
//	go run . -quick                   # a short run, to see that it works
//	go run . -sections alone,crowd -peers rueidislock
//
// It needs redis-server on the PATH. Python's portalocker takes part if
// TETHER_PYTHONS names a folder with a virtual environment 4.4.2 that has it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	played, err := playRole()
	if !played {
		err = measure(os.Args[1:])
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// measure runs what the arguments say, prints it and writes the report.
func measure(args []string) error {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	begin, load := time.Now(), loadAverage()
	b, err := newBench(o, newProgress(os.Stderr))
	if err != nil {
		return err
	}
	defer b.end()
	book, err := b.interruptible()
	b.done()
	for _, c := range book {
		fmt.Print(c.markdown(false))
	}
	if err != nil {
		return err
	}
	for id, why := range b.left {
		fmt.Printf("\nLeft out: %s, because %s.\n", id, why)
	}
	r := &report{machine: describe(o, begin, load), peers: peers(), left: b.left, book: book}
	return r.write(o.out)
}

// interruptible ends the run at a signal: what has been started is ended, which
// takes as long as the work that is under way. A second signal ends the program,
// and the workers with it.
func (b *bench) interruptible() ([]*chapter, error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		if _, ok := <-signals; ok {
			signal.Stop(signals)
			close(b.stop)
		}
	}()
	defer func() {
		signal.Stop(signals)
		close(signals)
	}()
	return b.run()
}

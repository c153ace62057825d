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
	ran, err := runRole()
	if !ran {
		err = runBenchmark(os.Args[1:])
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// runBenchmark runs the benchmark, prints the results and writes the report.
func runBenchmark(args []string) error {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	begin, load := time.Now(), loadAverage()
	b, err := newBench(o, newProgress(os.Stderr))
	if err != nil {
		return err
	}
	defer b.close()
	sections, err := b.runInterruptible()
	b.clear()
	for _, sec := range sections {
		fmt.Print(sec.markdown(false))
	}
	if err != nil {
		return err
	}
	for id, why := range b.skipped {
		fmt.Printf("\nLeft out: %s, because %s.\n", id, why)
	}
	r := &report{machine: describeRun(o, begin, load), peers: allPeers(), skipped: b.skipped, sections: sections}
	return r.write(o.out)
}

// runInterruptible ends the run at a signal. It finishes the measurement under way
// first. A second signal ends the program at once, and the workers with it.
func (b *bench) runInterruptible() ([]*reportSection, error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		if _, ok := <-signals; ok {
			signal.Stop(signals)
			close(b.interrupt)
		}
	}()
	defer func() {
		signal.Stop(signals)
		close(signals)
	}()
	return b.run()
}

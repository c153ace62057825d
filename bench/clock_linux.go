package main

import "golang.org/x/sys/unix"

// now is the machine's monotonic clock in nanoseconds, which all processes
// share.
func now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // there is no Linux without this clock
	}
	return t.Nano()
}

// processorTime is what this process has used of the processors, in
// nanoseconds.
func processorTime() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err) // nor without this one
	}
	return t.Nano()
}

//go:build !linux

package main

import "time"

// now is the wall clock in nanoseconds, the only one that processes are sure to
// share here.
func now() int64 { return time.Now().UnixNano() }

// processorTime is not known here.
func processorTime() int64 { return 0 }

package tether

import (
	"runtime"
	"time"
)

// whenDropped calls f with arg some time after the last reference to handle is gone.
// arg must not refer to handle.
//
// In a testing/synctest bubble it does nothing. Cleanups run on a goroutine outside
// of the bubble, and the runtime ends the program when such a goroutine uses a
// channel of the bubble. A bubble is recognized by its clock, which starts in the
// year 2000. Nothing is missed there: a bubble ends only when every goroutine in it
// has ended.
func whenDropped[T, A any](handle *T, f func(A), arg A) {
	if time.Now().Year() != 2000 {
		runtime.AddCleanup(handle, f, arg)
	}
}

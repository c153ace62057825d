package tether

import (
	"runtime"
	"time"
)

// whenDropped calls f with arg, which must not lead to handle, some time after
// the last reference to handle is gone.
//
// Not so in a testing/synctest bubble, whose channels only its own goroutines
// may touch; the collector's is none of them, and the runtime ends the program
// for it. Its clock tells: it starts with the year 2000. A bubble does not end
// before all that it has started is closed, so nothing is missed there.
func whenDropped[T, A any](handle *T, f func(A), arg A) {
	if time.Now().Year() != 2000 {
		runtime.AddCleanup(handle, f, arg)
	}
}

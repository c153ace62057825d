package actor

import (
	"slices"
	"time"
)

// pendingCall is an acquire that has not been answered.
type pendingCall struct {
	Acquire
	since    time.Time // its arrival
	deadline time.Time // zero for none
}

// callQueue are the pending calls of a lock, in order of arrival.
type callQueue []pendingCall

// find returns the index of a call, or -1.
func (c callQueue) find(call Call) int {
	return slices.IndexFunc(c, func(w pendingCall) bool { return w.Call == call })
}

// remove removes a call and returns it. The caller of remove answers it.
func (c *callQueue) remove(i int) Call {
	call := (*c)[i].Call
	*c = slices.Delete(*c, i, i+1)
	return call
}

// waitDeadline is when an acquire that arrives now is refused: after wait, 0 for
// never, and a try after try at the latest.
func waitDeadline(now time.Time, in Acquire, wait, try time.Duration) time.Time {
	if in.Try && (wait == 0 || try < wait) {
		wait = try
	}
	if wait == 0 {
		return time.Time{}
	}
	return now.Add(wait)
}

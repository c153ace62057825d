package actor

import (
	"slices"
	"time"
)

// waiting is a call that has not been answered.
type pendingCall struct {
	Acquire
	since    time.Time
	deadline time.Time // zero for none
}

// callers are the calls of a lock in order of arrival.
type callQueue []pendingCall

// find returns where a call stands, or -1.
func (c callQueue) find(call Call) int {
	return slices.IndexFunc(c, func(w pendingCall) bool { return w.Call == call })
}

// take takes a call out, which is about to be answered.
func (c *callQueue) remove(i int) Call {
	call := (*c)[i].Call
	*c = slices.Delete(*c, i, i+1)
	return call
}

// limit is until when an acquire may wait: as long as waits may last, and a
// try no longer than tries may.
func waitDeadline(now time.Time, in Acquire, wait, try time.Duration) time.Time {
	if in.Try && (wait == 0 || try < wait) {
		wait = try
	}
	if wait == 0 {
		return time.Time{}
	}
	return now.Add(wait)
}

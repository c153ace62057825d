package protocol

import "slices"

const (
	// MaxQueue is the maximum number of waiters in a participant's queue.
	MaxQueue = 4096
	// MaxLuggage is the maximum number of waiters that travel with a message.
	// The others are not lost: every waiter probes from time to time, and is
	// queued again.
	MaxLuggage = 256
)

// Waiter is one entry of a queue: a holder id, and the mode that its owner waits
// for, [Exclusive] or [Shared].
type Waiter struct {
	ID   string
	Want Mode
}

// Queue is the list of waiters that a participant knows, the next one first. It
// is a hint about the order and about whom to wake. It never decides who may hold
// the lock.
type Queue []Waiter

// Place returns the place of a waiter, starting at 1, or 0 if it is not queued.
func (q Queue) Place(id string) int {
	return 1 + slices.IndexFunc(q, func(w Waiter) bool { return w.ID == id })
}

// Add appends a waiter and returns the queue. A waiter that is already queued
// keeps its place, and its Want is updated in place. A full queue does not take
// new waiters.
func (q Queue) Add(w Waiter) Queue {
	if place := q.Place(w.ID); place > 0 {
		q[place-1].Want = w.Want
		return q
	}
	if len(q) >= MaxQueue {
		return q
	}
	return append(q, w)
}

// Before returns a new queue: first, followed by q. A waiter that occurs more
// than once keeps its first place. At most MaxQueue waiters are kept.
func (q Queue) Before(first ...Waiter) Queue {
	merged := make(Queue, 0, min(len(first)+len(q), MaxQueue))
	seen := make(map[string]bool, cap(merged))
	for _, list := range [][]Waiter{first, q} {
		for _, w := range list {
			if !seen[w.ID] && len(merged) < MaxQueue {
				seen[w.ID] = true
				merged = append(merged, w)
			}
		}
	}
	return merged
}

// Without returns a copy of the queue without one waiter.
func (q Queue) Without(id string) Queue {
	return slices.DeleteFunc(slices.Clone(q), func(w Waiter) bool { return w.ID == id })
}

// Luggage returns the part of the queue that travels with a message: the first
// MaxLuggage waiters. It is not a copy.
func (q Queue) Luggage() Queue { return q[:min(len(q), MaxLuggage)] }

// Ping asks the participants of a channel for their records. Only tether sends
// the fields other than Response.
type Ping struct {
	// Response is the channel on which the participants answer.
	Response string
	// ID is the holder id of the sender. It is empty for other implementations.
	ID string
	// Want is [Exclusive] or [Shared] if the sender will wait when it is refused,
	// and zero otherwise.
	Want Mode
	// First is true if the sender, followed by its Queue, goes ahead of the
	// waiters that are already queued. Two kinds of sender do so: a waiter that
	// was woken, but another contender was faster, and an elected writer that
	// waits for readers to leave.
	First bool
	// Queue is the sender's luggage. It is used only with First.
	Queue Queue
}

// Wake tells a sleeper that it is its turn.
type Wake struct {
	// Queue is the luggage that the woken sleeper takes over.
	Queue Queue
	// Readers is true if the wake is for all sleeping readers. Then there is no
	// Queue.
	Readers bool
}

package protocol

import "slices"

const (
	// MaxQueue is how many waiters a participant remembers.
	MaxQueue = 4096
	// MaxLuggage is how many of them travel with a message. The others come
	// back by themselves: every waiter asks again from time to time.
	MaxLuggage = 256
)

// Waiter is one place in a queue: the holder id of a participant that was
// refused and sleeps, and what it wants, [Exclusive] or [Shared].
type Waiter struct {
	ID   string
	Want Mode
}

// Queue are the waiters that a participant knows of, the first to be served at
// the head. It is a hint about order and about whom to wake, never about who
// may hold the lock.
type Queue []Waiter

// Place is the place of a waiter, from 1, or 0 if it is not queued.
func (q Queue) Place(id string) int {
	return 1 + slices.IndexFunc(q, func(w Waiter) bool { return w.ID == id })
}

// Add puts a waiter at the tail. One that is queued already keeps its place,
// and what it wants now counts.
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

// Before returns the queue of first, in its order, and behind it those of q
// that are not among them. Who is named twice has the earlier place.
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

// Without returns the queue without one waiter.
func (q Queue) Without(id string) Queue {
	return slices.DeleteFunc(slices.Clone(q), func(w Waiter) bool { return w.ID == id })
}

// Luggage is as much of the queue as travels with a message.
func (q Queue) Luggage() Queue { return q[:min(len(q), MaxLuggage)] }

// Ping asks the participants of a channel for their records. Everything but
// Response is known only of peers that tell it.
type Ping struct {
	// Response is the channel on which the answers are expected.
	Response string
	// ID is the holder id of whoever asks.
	ID string
	// Want is [Exclusive] or [Shared] if it waits in case it is refused, and
	// zero if it does not, or does not say.
	Want Mode
	// First is one that comes before those who wait already, and so does its
	// Queue behind it: it was woken and found somebody in its place, or is
	// elected and waits for readers.
	First bool
	Queue Queue
}

// Wake tells a waiter that its turn has come, and hands it the queue. Readers
// is one for all readers that sleep.
type Wake struct {
	Queue   Queue
	Readers bool
}

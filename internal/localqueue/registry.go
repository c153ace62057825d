// Package localqueue lets the Locks of one client share a participant: those with
// the same name and options queue in the process, and a release hands the lock to
// the next of them without a command. As participants of their own they would ask
// each other about the lock all the time.
package localqueue

import (
	"iter"
	"maps"
	"slices"

	"github.com/tetherlock/tether/actor"
)

// Registry is the participants of a client, and the Locks that each of them
// serves. Key tells which Locks may share a participant; the zero Key stands for
// none. Handle is a Lock. A Registry belongs to one goroutine.
type Registry[Key, Handle comparable] struct {
	participants map[*actor.Loop]*served[Key, Handle]
	sharing      map[Key]*actor.Loop
}

// served are the Locks of a participant. One-shot calls have none: their
// participant ends with their last hold.
type served[Key, Handle comparable] struct {
	key     Key
	handles []Handle
}

// NewRegistry returns an empty registry.
func NewRegistry[Key, Handle comparable]() *Registry[Key, Handle] {
	return &Registry[Key, Handle]{map[*actor.Loop]*served[Key, Handle]{}, map[Key]*actor.Loop{}}
}

// Join returns the participant that serves key, which is loop if there was none.
func (r *Registry[Key, Handle]) Join(key Key, loop *actor.Loop) *actor.Loop {
	if found := r.sharing[key]; found != nil {
		return found
	}
	r.participants[loop] = &served[Key, Handle]{key: key}
	if key != *new(Key) {
		r.sharing[key] = loop
	}
	return loop
}

// Add notes that a participant serves a Lock that has a handle.
func (r *Registry[Key, Handle]) Add(loop *actor.Loop, h Handle) {
	s := r.participants[loop]
	s.handles = append(s.handles, h)
}

// Remove notes that a Lock was closed, or its handle dropped, and says whether it
// was the last one of its participant, which nobody can join from then on. A Lock
// that was removed before gets the same answer: of several Closes at once, all are
// the last.
func (r *Registry[Key, Handle]) Remove(loop *actor.Loop, h Handle) (last bool) {
	s := r.participants[loop]
	if s == nil {
		return false
	}
	if i := slices.Index(s.handles, h); i >= 0 {
		s.handles = slices.Delete(s.handles, i, i+1)
	}
	if len(s.handles) > 0 {
		return false
	}
	r.stopSharing(loop)
	return true
}

// Ended forgets a participant.
func (r *Registry[Key, Handle]) Ended(loop *actor.Loop) {
	r.stopSharing(loop)
	delete(r.participants, loop)
}

func (r *Registry[Key, Handle]) stopSharing(loop *actor.Loop) {
	if s := r.participants[loop]; s != nil && r.sharing[s.key] == loop {
		delete(r.sharing, s.key)
	}
}

// Empty says whether there is no participant.
func (r *Registry[Key, Handle]) Empty() bool { return len(r.participants) == 0 }

// All are the participants.
func (r *Registry[Key, Handle]) All() iter.Seq[*actor.Loop] { return maps.Keys(r.participants) }

package actor

import "context"

// leaseRunner is what only the goroutine of a lease has.
type leaseRunner struct {
	env           LeaseEnvironment
	outcomes      chan Ran
	released      chan struct{}
	stopListening func() // ends the listening for releases, nil if there is none
}

// startRun runs a command on a goroutine of its own: it takes as long as the
// user's client lets it. If the lock has ended meanwhile, a key that the command
// may have set is deleted; if that fails, it expires.
func (r *runner) startRun(e Run) {
	env, outcomes, done := r.lease.env, r.lease.outcomes, r.done
	ctx := context.Background()
	if e.Op != DropKey { // a deletion is of use after the end of the lock too
		ctx = lifetime{ctx, done}
	}
	go func() {
		reply, err := env.Run(ctx, e)
		select {
		case outcomes <- Ran{Num: e.Num, Reply: reply, Err: err}:
		case <-done:
			if e.Op == TakeKey && (reply.OK || err != nil) {
				_, _ = env.Run(context.Background(), Run{Op: DropKey, ID: e.ID})
			}
		}
	}()
}

// lifetime is a context that ends when a lock's goroutine ends.
type lifetime struct {
	context.Context
	done <-chan struct{}
}

func (l lifetime) Done() <-chan struct{} { return l.done }

func (l lifetime) Err() error {
	select {
	case <-l.done:
		return context.Canceled
	default:
		return nil
	}
}

// listen begins or ends to listen for releases. A release that was reported
// before is forgotten.
func (r *runner) listen(on bool) {
	l := r.lease
	if l == nil {
		return
	}
	if l.stopListening != nil {
		l.stopListening()
		l.stopListening = nil
	}
	select {
	case <-l.released:
	default:
	}
	if on {
		l.stopListening = l.env.Listen(l.released)
	}
}

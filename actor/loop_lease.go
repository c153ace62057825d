package actor

import "context"

// startRun runs a command on a goroutine of its own: it takes as long as the
// user's client lets it. If the lock has ended meanwhile, a key that the command
// may have set is deleted; if that fails, it expires.
func (r *runner) startRun(e Run) {
	env, outcomes, done := r.lease, r.outcomes, r.done
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
	if r.stopListening != nil {
		r.stopListening()
		r.stopListening = nil
	}
	select {
	case <-r.released:
	default:
	}
	if on {
		r.stopListening = r.lease.Listen(r.released)
	}
}

package actor

import "context"

// startRun runs a command beside the loop: it may take as long as the client
// of its user lets it. One that sets the key when nobody is there to know any
// more is undone.
func (r *runner) startRun(e Run) {
	keys, outcomes, done := r.lease, r.outcomes, r.done
	ctx := context.Background()
	if e.Op != DropKey { // which is of use even then
		ctx = lifetime{ctx, done}
	}
	go func() {
		reply, err := keys.Run(ctx, e)
		select {
		case outcomes <- Ran{Num: e.Num, Reply: reply, Err: err}:
		case <-done:
			if e.Op == TakeKey && (reply.OK || err != nil) {
				_, _ = keys.Run(context.Background(), Run{Op: DropKey, ID: e.ID}) // else it expires
			}
		}
	}()
}

// lifetime is a context that ends with a lock.
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

// listen begins or ends to listen for releases.
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

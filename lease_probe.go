package tether

import (
	"context"
	"fmt"

	"github.com/tetherlock/tether/internal/leasekey"
)

// ProbeLease asks who holds a lease: nobody, or one holder with the time until
// its key expires, whatever program has set it. It changes nothing, and the
// answer is a snapshot, stale when you read it.
func (c *Client) ProbeLease(ctx context.Context, name string) ([]Holder, error) {
	switch {
	case name == "":
		return nil, &ConfigError{Reason: "a lock needs a name"}
	case isClosed(c.loop.Done()):
		return nil, ErrClosed
	}
	records, err := leasekey.Holder(ctx, c.rdb, name)
	if err != nil && ctx.Err() != nil {
		err = contextError(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("tether: probe %q: %w", name, stripped(publicError(err)))
	}
	return append([]Holder{}, holders(records)...), nil
}

package tether

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/tetherlock/tether/protocol"
)

var probeLease = redis.NewScript(`local holder = redis.call('GET', KEYS[1])
return holder and {holder, redis.call('PTTL', KEYS[1])}`)

// ProbeLease asks who holds a lease: nobody, or one holder with the time until
// its key expires, whatever program has set it. It changes nothing, and the
// answer is a snapshot, stale when you read it.
func (c *Client) ProbeLease(ctx context.Context, name string) ([]Holder, error) {
	switch {
	case name == "":
		return nil, &ConfigError{Reason: "a lock needs a name"}
	case c.loop.closed():
		return nil, ErrClosed
	}
	records, err := leaseRecords(ctx, c.rdb, name)
	if err != nil {
		return nil, fmt.Errorf("tether: probe %q: %w", name, stripped(publicError(err)))
	}
	return append([]Holder{}, holders(records)...), nil
}

// leaseRecords asks beside the caller: the client may not look at the context.
func leaseRecords(ctx context.Context, rdb redis.UniversalClient, name string) ([]protocol.Record, error) {
	answer := make(chan *redis.Cmd, 1)
	go func() { answer <- probeLease.Run(ctx, rdb, []string{name}) }()
	select {
	case cmd := <-answer:
		records, err := leaseRecord(cmd)
		if err != nil && ctx.Err() != nil {
			err = contextError(ctx)
		}
		return records, err
	case <-ctx.Done():
		return nil, contextError(ctx)
	}
}

func leaseRecord(cmd *redis.Cmd) ([]protocol.Record, error) {
	said, err := cmd.Slice()
	switch {
	case errors.Is(err, redis.Nil):
		return nil, nil
	case err != nil:
		return nil, leaseFault(err)
	case len(said) != 2:
		return nil, fmt.Errorf("a reply of %d elements", len(said))
	}
	value, _ := said[0].(string)
	ttl, _ := said[1].(int64)
	return []protocol.Record{{ID: printable(value), Mode: protocol.Exclusive, TTL: max(0, ttl)}}, nil
}

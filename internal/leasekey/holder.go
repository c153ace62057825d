package leasekey

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/tetherlock/tether/protocol"
)

var probe = redis.NewScript(`local holder = redis.call('GET', KEYS[1])
return holder and {holder, redis.call('PTTL', KEYS[1])}`)

// Holder returns the record of who holds a lease, if anybody does. It asks beside
// the caller: not every client heeds the context.
func Holder(ctx context.Context, rdb redis.UniversalClient, name string) ([]protocol.Record, error) {
	answer := make(chan *redis.Cmd, 1)
	go func() { answer <- probe.Run(ctx, rdb, []string{name}) }()
	select {
	case cmd := <-answer:
		return record(cmd)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func record(cmd *redis.Cmd) ([]protocol.Record, error) {
	said, err := cmd.Slice()
	switch {
	case errors.Is(err, redis.Nil):
		return nil, nil
	case err != nil:
		return nil, fault(err)
	case len(said) != 2:
		return nil, fmt.Errorf("a reply of %d elements", len(said))
	}
	value, _ := said[0].(string)
	ttl, _ := said[1].(int64)
	return []protocol.Record{{ID: printable(value), Mode: protocol.Exclusive, TTL: max(0, ttl)}}, nil
}

package leasekey

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// hearAgain is the time until another attempt to listen. Whoever waits looks at
// the key meanwhile.
const hearAgain = 3 * time.Second

// Hear listens for releases, as far as there is pub/sub.
func (k *Key) Listen(nudged chan<- struct{}) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for ctx.Err() == nil {
			k.hear(ctx, nudged)
			select {
			case <-ctx.Done():
			case <-time.After(hearAgain):
			}
		}
	}()
	return cancel
}

// hear listens until the connection or the context ends. That the subscription
// stands is news as well: the key may have been given back before.
func (k *Key) hear(ctx context.Context, nudged chan<- struct{}) {
	sub := k.subscribe(ctx)
	if sub == nil {
		return
	}
	defer func() { _ = sub.Close() }() // again, perhaps
	defer context.AfterFunc(ctx, func() { _ = sub.Close() })()
	for {
		if _, err := sub.Receive(ctx); err != nil {
			return
		}
		select {
		case nudged <- struct{}{}:
		default: // one is waiting already
		}
	}
}

// subscribe returns nil where a ring has no shard left: it panics then.
func (k *Key) subscribe(ctx context.Context) (sub *redis.PubSub) {
	defer func() { _ = recover() }()
	return k.rdb.Subscribe(ctx, k.channel)
}

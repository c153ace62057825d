package leasekey

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// listenAgain is the time until another attempt to listen. Waiters poll the key
// meanwhile.
const listenAgain = 3 * time.Second

// Listen reports releases on released, without blocking, until stop is called. Where
// there is no pub/sub it reports none.
func (k *Key) Listen(released chan<- struct{}) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for ctx.Err() == nil {
			k.listen(ctx, released)
			select {
			case <-ctx.Done():
			case <-time.After(listenAgain):
			}
		}
	}()
	return cancel
}

// listen listens until the connection or the context ends. It also reports that the
// subscription stands: the key may have been released before.
func (k *Key) listen(ctx context.Context, released chan<- struct{}) {
	sub := k.subscribe(ctx)
	if sub == nil {
		return
	}
	defer func() { _ = sub.Close() }() // it may be closed already
	defer context.AfterFunc(ctx, func() { _ = sub.Close() })()
	for {
		if _, err := sub.Receive(ctx); err != nil {
			return
		}
		select {
		case released <- struct{}{}:
		default: // an unread report is there already
		}
	}
}

// subscribe returns nil where a ring has no shard left, for which go-redis panics.
func (k *Key) subscribe(ctx context.Context) (sub *redis.PubSub) {
	defer func() { _ = recover() }()
	return k.rdb.Subscribe(ctx, k.channel)
}

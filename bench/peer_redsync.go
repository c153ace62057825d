package main

import (
	"context"
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

func redsyncPeer() *peer {
	return &peer{
		library: "redsync", about: "it retries every 50 to 250 ms; the TTL is 8 s",
		ttl: 8 * time.Second, retryInterval: 250 * time.Millisecond, open: openRedsync(defaultOptions),
	}
}

func redsyncBestPeer() *peer {
	return &peer{
		library: "redsync", setting: best,
		about: "WithRetryDelay(1ms), WithFailFast, a TTL of 5 s, a large pool, no extra commands on new connections",
		ttl:   lockTTL, retryInterval: time.Millisecond,
		open: openRedsync(bestOptions, redsync.WithRetryDelay(time.Millisecond), redsync.WithFailFast(true), redsync.WithExpiry(lockTTL)),
	}
}

func openRedsync(options func(endpoints) *redis.Options, opts ...redsync.Option) func(endpoints) (locker, error) {
	return func(at endpoints) (locker, error) {
		rdb := redis.NewClient(options(at))
		return &redsyncLocker{rdb, redsync.New(goredis.NewPool(rdb)), opts}, nil
	}
}

type redsyncLocker struct {
	rdb  *redis.Client
	sync *redsync.Redsync
	opts []redsync.Option
}

// Acquire retries when the library gives up, after 32 attempts.
func (l *redsyncLocker) Acquire(ctx context.Context, name string) (func() error, error) {
	m := l.sync.NewMutex(name, l.opts...)
	for {
		err := m.LockContext(ctx)
		if err == nil {
			return func() error { return unlock(m) }, nil
		}
		if _, taken := errors.AsType[*redsync.ErrTaken](err); ctx.Err() != nil || !taken && !errors.Is(err, redsync.ErrFailed) {
			return nil, err
		}
	}
}

var errExpired = errors.New("the lock has expired")

func unlock(m *redsync.Mutex) error {
	ok, err := m.UnlockContext(context.Background())
	if err == nil && !ok {
		err = errExpired
	}
	return err
}

func (l *redsyncLocker) Close() error { return l.rdb.Close() }

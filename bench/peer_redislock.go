package main

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// The library needs a TTL, and waits only with a retry strategy.
func redislockPeer() *peer {
	return &peer{
		library: "redislock", about: "LinearBackoff(100ms), as in its README; the TTL is 5 s",
		ttl: lockTTL, retryInterval: 100 * time.Millisecond, open: openRedislock(defaultOptions, 100*time.Millisecond),
	}
}

func redislockBestPeer() *peer {
	return &peer{
		library: "redislock", setting: best, about: "LinearBackoff(1ms), a large pool, no extra commands on new connections",
		ttl: lockTTL, retryInterval: time.Millisecond, open: openRedislock(bestOptions, time.Millisecond),
	}
}

// defaultOptions are the defaults of go-redis.
func defaultOptions(at endpoints) *redis.Options {
	return &redis.Options{Addr: at.Redis, Dialer: at.dialer()}
}

// bestOptions have a pool that is large enough for all, and leave out commands on
// new connections that are not needed here.
func bestOptions(at endpoints) *redis.Options {
	o := defaultOptions(at)
	o.PoolSize = 300
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return o
}

func openRedislock(options func(endpoints) *redis.Options, looks time.Duration) func(endpoints) (locker, error) {
	return func(at endpoints) (locker, error) {
		rdb := redis.NewClient(options(at))
		retry := &redislock.Options{RetryStrategy: redislock.LinearBackoff(looks)}
		return &redislockLocker{rdb, redislock.New(rdb), retry}, nil
	}
}

type redislockLocker struct {
	rdb    *redis.Client
	client *redislock.Client
	retry  *redislock.Options
}

// Acquire retries when the library gives up: without a deadline it waits for one
// TTL only.
func (l *redislockLocker) Acquire(ctx context.Context, name string) (func() error, error) {
	for {
		lock, err := l.client.Obtain(ctx, name, lockTTL, l.retry)
		if err == nil {
			return func() error { return lock.Release(context.Background()) }, nil
		}
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
	}
}

func (l *redislockLocker) Close() error { return l.rdb.Close() }

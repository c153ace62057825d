package main

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// The library asks for a TTL, and waits only where it is told to look again.
func redislockPeer() *peer {
	return &peer{
		library: "redislock", about: "LinearBackoff(100ms), as in its README; the TTL is 5 s",
		ttl: ttl, looks: 100 * time.Millisecond, open: openRedislock(plainOptions, 100*time.Millisecond),
	}
}

func redislockBestPeer() *peer {
	return &peer{
		library: "redislock", setting: best, about: "LinearBackoff(1ms), a large pool, no extra commands on new connections",
		ttl: ttl, looks: time.Millisecond, open: openRedislock(bestOptions, time.Millisecond),
	}
}

// plainOptions are go-redis as it comes.
func plainOptions(at place) *redis.Options {
	return &redis.Options{Addr: at.Redis, Dialer: at.dialer()}
}

// bestOptions let nobody wait for a connection, and send nothing that is of no
// use here.
func bestOptions(at place) *redis.Options {
	o := plainOptions(at)
	o.PoolSize = 300
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return o
}

func openRedislock(options func(place) *redis.Options, looks time.Duration) func(place) (locker, error) {
	return func(at place) (locker, error) {
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

// Acquire goes on where the library gives up: without a deadline it waits for
// one TTL.
func (l *redislockLocker) Acquire(ctx context.Context, name string) (func() error, error) {
	for {
		lock, err := l.client.Obtain(ctx, name, ttl, l.retry)
		if err == nil {
			return func() error { return lock.Release(context.Background()) }, nil
		}
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
	}
}

func (l *redislockLocker) Close() error { return l.rdb.Close() }

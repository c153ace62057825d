package main

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/tetherlock/tether"
)

func tetherPeer() *peer {
	return &peer{library: tetherLibrary, about: "defaults", open: openTether()}
}

// tether20msPeer differs where waiters poll: after a crash.
func tether20msPeer() *peer {
	return &peer{
		library: tetherLibrary, setting: "20ms", about: "WithPollInterval(20ms)",
		open: openTether(tether.WithPollInterval(tetherPollInterval)),
	}
}

func openTether(opts ...tether.LockOption) func(endpoints) (locker, error) {
	return func(at endpoints) (locker, error) {
		rdb := redis.NewClient(&redis.Options{Addr: at.Redis, Dialer: at.dialer()})
		return newTetherLocker(rdb, tether.New(rdb), opts), nil
	}
}

// tetherLocker keeps one Lock for each name.
type tetherLocker struct {
	rdb    *redis.Client
	client *tether.Client
	opts   []tether.LockOption

	mu    sync.Mutex
	locks map[string]*tether.Lock
}

func newTetherLocker(rdb *redis.Client, client *tether.Client, opts []tether.LockOption) *tetherLocker {
	return &tetherLocker{rdb: rdb, client: client, opts: opts, locks: map[string]*tether.Lock{}}
}

func (l *tetherLocker) lock(name string) *tether.Lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	lock := l.locks[name]
	if lock == nil {
		lock = l.client.Lock(name, l.opts...)
		l.locks[name] = lock
	}
	return lock
}

func (l *tetherLocker) Acquire(ctx context.Context, name string) (func() error, error) {
	return held(l.lock(name).Acquire(ctx))
}

func (l *tetherLocker) AcquireOnce(ctx context.Context, name string) (func() error, error) {
	return held(l.client.Acquire(ctx, name, l.opts...))
}

func held(h *tether.Hold, err error) (func() error, error) {
	if err != nil {
		return nil, err
	}
	return func() error { return h.Release(context.Background()) }, nil
}

// Isolate returns a locker with Lock objects of its own, which share the client's
// local queues, or with a client of its own.
func (l *tetherLocker) Isolate(iso isolation) (locker, error) {
	if iso == ownLock {
		return sameClient{newTetherLocker(l.rdb, l.client, l.opts)}, nil
	}
	return otherClient{newTetherLocker(l.rdb, tether.New(l.rdb), l.opts)}, nil
}

func (l *tetherLocker) Close() error {
	err := l.client.Close()
	_ = l.rdb.Close() // it has no open connections
	return err
}

// otherClient is a locker that shares only the options of the Redis client.
type otherClient struct{ *tetherLocker }

func (l otherClient) Close() error { return l.client.Close() }

// sameClient is a locker that does not close its client.
type sameClient struct{ locker }

func (sameClient) Close() error { return nil }

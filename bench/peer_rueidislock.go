package main

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// tryNextAfter is longer than the library's default of 20 ms. With a single key
// there is no next key to try, and a waiter that has timed out may not be woken any
// more: it would wait for ever.
const tryNextAfter = 2 * time.Second

func rueidislockPeer() *peer {
	return &peer{
		library: "rueidislock", about: "defaults: two of three keys, the TTL is 5 s, renewed",
		ttl: lockTTL, open: openRueidislock(rueidislock.LockerOption{}),
	}
}

func rueidislockOneKeyPeer() *peer {
	return &peer{
		library: "rueidislock", setting: "one-key", about: "KeyMajority 1, which it recommends for a single Redis",
		ttl: lockTTL, open: openRueidislock(rueidislock.LockerOption{KeyMajority: 1, TryNextAfter: tryNextAfter}),
	}
}

func rueidislockBestPeer() *peer {
	return &peer{
		library: "rueidislock", setting: best, about: "KeyMajority 1 and NoLoopTracking",
		ttl: lockTTL, open: openRueidislock(rueidislock.LockerOption{KeyMajority: 1, TryNextAfter: tryNextAfter, NoLoopTracking: true}),
	}
}

func openRueidislock(o rueidislock.LockerOption) func(endpoints) (locker, error) {
	return func(at endpoints) (locker, error) {
		o := o
		o.ClientOption = rueidis.ClientOption{InitAddress: []string{at.Redis}}
		if dial := at.dialer(); dial != nil {
			o.ClientOption.DialCtxFn = func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return dial(ctx, "tcp", addr)
			}
		}
		l, err := rueidislock.NewLocker(o)
		return rueidisLocker{l}, err
	}
}

type rueidisLocker struct{ rueidislock.Locker }

func (l rueidisLocker) Acquire(ctx context.Context, name string) (func() error, error) {
	_, cancel, err := l.WithContext(ctx, name)
	return func() error { cancel(); return nil }, err
}

func (l rueidisLocker) Close() error {
	l.Locker.Close()
	return nil
}

package main

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// tryNextAfter is more than the library's 20 ms: with a single key there is no
// next one to try, and after a time-out nobody may be left to wake the waiter,
// who then waits for ever.
const tryNextAfter = 2 * time.Second

func rueidislockPeer() *peer {
	return &peer{
		library: "rueidislock", about: "as it comes: two of three keys, the TTL is 5 s, renewed",
		ttl: ttl, open: openRueidislock(rueidislock.LockerOption{}),
	}
}

func rueidislockOneKeyPeer() *peer {
	return &peer{
		library: "rueidislock", setting: "one-key", about: "KeyMajority 1, as it says for a single Redis",
		ttl: ttl, open: openRueidislock(rueidislock.LockerOption{KeyMajority: 1, TryNextAfter: tryNextAfter}),
	}
}

func rueidislockBestPeer() *peer {
	return &peer{
		library: "rueidislock", setting: best, about: "KeyMajority 1 and NoLoopTracking",
		ttl: ttl, open: openRueidislock(rueidislock.LockerOption{KeyMajority: 1, TryNextAfter: tryNextAfter, NoLoopTracking: true}),
	}
}

func openRueidislock(o rueidislock.LockerOption) func(place) (locker, error) {
	return func(at place) (locker, error) {
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

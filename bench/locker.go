package main

import (
	"context"
	"slices"
	"time"
)

// locker is a client of a library. Acquire waits until ctx ends. ctx must not end
// before the release: some libraries bind the lock to it.
type locker interface {
	Acquire(ctx context.Context, name string) (release func() error, err error)
	Close() error
}

// isolator is a locker that makes lockers for separate users. Locks of one name
// that are acquired through them exclude each other, whether the lockers share a
// client or not. Other libraries need none: every acquire is a separate user.
type isolator interface {
	Isolate(each isolation) (locker, error)
}

// onceLocker has a special call for a name that is used once.
type onceLocker interface {
	AcquireOnce(ctx context.Context, name string) (release func() error, err error)
}

// peer is one library with one setting.
type peer struct {
	library string
	setting string // empty for the library's default
	about   string // what the setting is
	// ttl is how long the lock of a dead process stays taken; 0 if it does not.
	ttl time.Duration
	// retryInterval is the time between two attempts of a waiter; 0 if waiters
	// are woken. The time of a release is randomized over this interval:
	// otherwise it would always fall into the same phase.
	retryInterval time.Duration
	// settleTime is how long after its attempt a waiter can be woken at once; 0
	// if that is negligible.
	settleTime time.Duration
	// python says that peer_portalocker.py is the worker; etcd that the peer
	// needs an etcd server.
	python bool
	etcd   bool
	open   func(endpoints) (locker, error)
}

func (p *peer) id() string {
	if p.setting == "" {
		return p.library
	}
	return p.library + ":" + p.setting
}

// Settings of several peers.
const (
	best               = "best"
	tetherPollInterval = 20 * time.Millisecond
	lockTTL            = 5 * time.Second
)

// floorLibrary is no library: raw sockets send the least that a lock can send.
const floorLibrary, tetherLibrary = "raw", "tether"

// allPeers returns all peers, in the order of the tables.
func allPeers() []*peer {
	return []*peer{
		rawPeer(),
		tetherPeer(), tether20msPeer(),
		redislockPeer(), redislockBestPeer(),
		redsyncPeer(), redsyncBestPeer(),
		rueidislockPeer(), rueidislockOneKeyPeer(), rueidislockBestPeer(),
		etcdPeer(), etcdBestPeer(),
		portalockerPeer(), portalockerBestPeer(),
	}
}

func peerByID(id string) *peer {
	for _, p := range slices.Concat(allPeers(), extraFloors()) {
		if p.id() == id {
			return p
		}
	}
	return nil
}

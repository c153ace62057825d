package main

import (
	"context"
	"slices"
	"time"
)

// locker is a library's client, ready for use. Acquire waits until ctx ends,
// which must not happen before the release: some libraries bind the lock to it.
type locker interface {
	Acquire(ctx context.Context, name string) (release func() error, err error)
	Close() error
}

// separator is a locker that can be told who asks: locks of one name taken
// through separate lockers exclude each other, on the same client or not. Other
// libraries' locks do so anyway.
type separator interface {
	Separate(each standing) (locker, error)
}

// onceLocker has a call of its own for a name that is used once.
type onceLocker interface {
	AcquireOnce(ctx context.Context, name string) (release func() error, err error)
}

// peer is one library with one setting.
type peer struct {
	library string
	setting string // empty for the library's default
	about   string // what the setting is
	// ttl is what the lock of a dead process waits for, 0 if nothing.
	ttl time.Duration
	// looks is how often a waiter looks, 0 if it is woken. A release must be
	// spread over as long a time, or it would always meet the same phase.
	looks time.Duration
	// falls is how long a waiter takes to fall asleep, if that is long.
	falls time.Duration
	// python is driven by peer_portalocker.py, and etcd needs that server.
	python bool
	etcd   bool
	open   func(place) (locker, error)
}

func (p *peer) id() string {
	if p.setting == "" {
		return p.library
	}
	return p.library + ":" + p.setting
}

// The settings that several peers have.
const (
	best  = "best"
	quick = 20 * time.Millisecond
	ttl   = 5 * time.Second
)

// floor is no library: raw sockets do the least that can be done.
const floor, own = "raw", "tether"

// peers are all that can be measured, in the order of the tables.
func peers() []*peer {
	return []*peer{
		rawPeer(),
		tetherPeer(), tetherQuickPeer(),
		redislockPeer(), redislockBestPeer(),
		redsyncPeer(), redsyncBestPeer(),
		rueidislockPeer(), rueidislockOneKeyPeer(), rueidislockBestPeer(),
		etcdPeer(), etcdBestPeer(),
		portalockerPeer(), portalockerBestPeer(),
	}
}

func peerOf(id string) *peer {
	for _, p := range slices.Concat(peers(), floors()) {
		if p.id() == id {
			return p
		}
	}
	return nil
}

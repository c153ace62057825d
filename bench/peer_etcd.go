package main

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

// etcdSettleTime: a waiter watches from a past revision. The server checks such
// watches only every 100 ms, and a release before that check wakes nobody at once.
const etcdSettleTime = 120 * time.Millisecond

func etcdPeer() *peer {
	return &peer{
		library: "etcd", about: "one node that syncs to disk; the session's TTL is 60 s, renewed",
		ttl: time.Minute, etcd: true, settleTime: etcdSettleTime, open: openEtcd(false),
	}
}

func etcdBestPeer() *peer {
	return &peer{
		library: "etcd", setting: best, about: "one node that does not sync (unsafe-no-fsync); the session's TTL is 5 s",
		ttl: lockTTL, etcd: true, settleTime: etcdSettleTime, open: openEtcd(true, concurrency.WithTTL(int(lockTTL/time.Second))),
	}
}

func openEtcd(noSync bool, opts ...concurrency.SessionOption) func(endpoints) (locker, error) {
	return func(at endpoints) (locker, error) {
		addr := at.Etcd
		if noSync {
			addr = at.EtcdNoSync
		}
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
		if err != nil {
			return nil, err
		}
		l, err := newEtcdLocker(client, opts)
		if err != nil {
			return nil, errors.Join(err, client.Close())
		}
		l.owner = true
		return l, nil
	}
}

// etcdLocker is one session. Mutexes of one session do not exclude each other.
type etcdLocker struct {
	client  *clientv3.Client
	session *concurrency.Session
	opts    []concurrency.SessionOption
	owner   bool // it closes the client
}

func newEtcdLocker(client *clientv3.Client, opts []concurrency.SessionOption) (*etcdLocker, error) {
	session, err := concurrency.NewSession(client, opts...)
	return &etcdLocker{client: client, session: session, opts: opts}, err
}

func (l *etcdLocker) Acquire(ctx context.Context, name string) (func() error, error) {
	m := concurrency.NewMutex(l.session, "/"+name)
	if err := m.Lock(ctx); err != nil {
		return nil, err
	}
	return func() error { return m.Unlock(context.Background()) }, nil
}

func (l *etcdLocker) Isolate(isolation) (locker, error) { return newEtcdLocker(l.client, l.opts) }

func (l *etcdLocker) Close() error {
	err := l.session.Close()
	if l.owner {
		err = errors.Join(err, l.client.Close())
	}
	return err
}

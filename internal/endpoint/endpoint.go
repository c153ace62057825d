// Package endpoint is where presence connections come from: the address, dialler,
// time-outs and credentials that the caller's Redis client has in its options.
package endpoint

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/tetherlock/tether/actor"
	"github.com/tetherlock/tether/wire"
)

const (
	// fallbackDial and fallbackReply stand in for time-outs that the options
	// switch off. An attempt without a bound would never be retried.
	fallbackDial  = 5 * time.Second
	fallbackReply = 5 * time.Second
)

// failoverAddr is the address in the options of go-redis clients whose dialler
// asks Sentinel.
const failoverAddr = "FailoverClient"

// Endpoint dials presence connections. The options of the client are read, never
// written.
type Endpoint struct {
	// DialLimit bounds a dial, ReplyLimit the wait for a reply.
	DialLimit, ReplyLimit time.Duration
	// DB is the database of the fencing counters.
	DB int
	// Sentinel says that Sentinel tells the address, and may tell another one
	// later.
	Sentinel bool

	dial        func(ctx context.Context) (net.Conn, error)
	credentials credentials
}

// New reads the options of a client. Dial, if not nil, dials instead of the
// client's dialler. The error says that the client names no single server: then
// nothing can be dialled.
func New(rdb redis.UniversalClient, dial func(ctx context.Context) (net.Conn, error)) (*Endpoint, error) {
	e := &Endpoint{dial: dial, DialLimit: fallbackDial, ReplyLimit: fallbackReply}
	switch c := rdb.(type) {
	case interface{ Options() *redis.Options }:
		e.read(c.Options())
	case interface{ Options() *redis.ClusterOptions }:
		o := c.Options()
		e.credentials = credentials{o.StreamingCredentialsProvider, o.CredentialsProviderContext, o.CredentialsProvider, wire.Login{User: o.Username, Password: o.Password}}
	case interface{ Options() *redis.RingOptions }:
		e.credentials.static = wire.Login{User: c.Options().Username, Password: c.Options().Password}
	}
	if e.dial == nil {
		return e, &actor.Fault{Kind: actor.Unsupported, Message: fmt.Sprintf(
			"a %T does not tell the one server that the lock lives on: pass the client of a standalone server, or use WithDialer", rdb)}
	}
	return e, nil
}

func (e *Endpoint) read(o *redis.Options) {
	if o.DialTimeout > 0 {
		e.DialLimit = o.DialTimeout
	}
	if o.ReadTimeout > 0 {
		e.ReplyLimit = o.ReadTimeout
	}
	e.credentials = credentials{o.StreamingCredentialsProvider, o.CredentialsProviderContext, o.CredentialsProvider, wire.Login{User: o.Username, Password: o.Password}}
	e.DB = o.DB
	if e.dial == nil && o.Dialer != nil {
		e.Sentinel = o.Addr == failoverAddr
		e.dial = func(ctx context.Context) (net.Conn, error) { return o.Dialer(ctx, o.Network, o.Addr) }
	}
}

// RenewableLogin says whether asking again may give other credentials.
func (e *Endpoint) RenewableLogin() bool { return e.credentials.renewable() }

// Socket dials, and asks for the credentials first. It may return after its
// context has ended: go-redis's TLS dialler ignores the context.
func (e *Endpoint) Socket(ctx context.Context) (*wire.Socket, error) {
	ctx, cancel := context.WithTimeout(ctx, e.DialLimit)
	defer cancel()
	login, rotated, stop, err := e.credentials.get(ctx)
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	conn, err := e.connect(ctx)
	if err != nil {
		if stop != nil {
			stop()
		}
		return nil, dialFault(err)
	}
	s := wire.NewSocket(conn, NewID(), login, stop)
	s.Rotated = rotated
	return s, nil
}

// connect dials, and completes a TLS handshake. Left to the first write, the
// handshake would make the lock's goroutine wait for the peer.
func (e *Endpoint) connect(ctx context.Context) (net.Conn, error) {
	conn, err := e.dial(ctx)
	if err != nil {
		return nil, err
	}
	if c, ok := conn.(interface{ HandshakeContext(context.Context) error }); ok {
		if err := c.HandshakeContext(ctx); err != nil {
			_ = conn.Close() // it was never used
			return nil, err
		}
	}
	return conn, nil
}

// dialFault tells errors that will repeat from those that pass.
func dialFault(err error) error {
	_, badCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	if badCertificate || errors.Is(err, redis.ErrClosed) {
		return &actor.Fault{Kind: actor.Rejected, Err: err}
	}
	return err
}

// Address dials once to see where a new connection ends up. It is empty without
// a connection.
func (e *Endpoint) Address(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, e.DialLimit)
	defer cancel()
	conn, err := e.dial(ctx)
	if err != nil {
		return ""
	}
	addr := wire.RemoteAddr(conn)
	_ = conn.Close() // nothing was sent on it
	return addr
}

// Commands returns a short-lived client for plain commands at the endpoint. The
// caller closes it.
func (e *Endpoint) Commands() *redis.Client {
	return redis.NewClient(&redis.Options{
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return e.dial(ctx) },
		CredentialsProviderContext: func(ctx context.Context) (string, string, error) {
			login, _, stop, err := e.credentials.get(ctx)
			if stop != nil {
				stop()
			}
			return login.User, login.Password, err
		},
		Protocol: 2, PoolSize: 2, DialTimeout: e.DialLimit, ReadTimeout: e.ReplyLimit, ContextTimeoutEnabled: true,
		DisableIdentity: true,
	})
}

// NewID returns a new holder id: 32 hexadecimal digits that no other socket has.
func NewID() string {
	id := uuid.New()
	return hex.EncodeToString(id[:])
}

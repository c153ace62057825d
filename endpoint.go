package tether

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
	"github.com/redis/go-redis/v9/auth"

	"github.com/tetherlock/tether/actor"
	"github.com/tetherlock/tether/wire"
)

const (
	// fallbackDial and fallbackReply stand in for time-outs that the options
	// switch off: an attempt that nothing bounds would never be retried.
	fallbackDial  = 5 * time.Second
	fallbackReply = 5 * time.Second
)

// endpoint is where presence connections come from: what the options of the
// caller's client say, which are read and never written.
type endpoint struct {
	dial       func(ctx context.Context) (net.Conn, error)
	dialLimit  time.Duration
	replyLimit time.Duration
	login      logins
	db         int  // of the fencing counters
	sentinel   bool // Sentinel tells the address, and may tell another one
}

// logins are the ways to log in, in go-redis's own order.
type logins struct {
	streaming auth.StreamingCredentialsProvider
	withCtx   func(ctx context.Context) (username, password string, err error)
	plain     func() (username, password string)
	static    wire.Login
}

// renewable says that asking again may give other credentials.
func (l *logins) renewable() bool { return l.streaming != nil || l.withCtx != nil || l.plain != nil }

// failoverAddr is the address that go-redis gives clients whose dialler asks
// Sentinel.
const failoverAddr = "FailoverClient"

// newEndpoint reads the options of a client. With an error it has no dialler.
func newEndpoint(rdb redis.UniversalClient, dial func(ctx context.Context) (net.Conn, error)) (*endpoint, error) {
	e := &endpoint{dial: dial, dialLimit: fallbackDial, replyLimit: fallbackReply}
	switch c := rdb.(type) {
	case interface{ Options() *redis.Options }:
		e.read(c.Options())
	case interface{ Options() *redis.ClusterOptions }:
		o := c.Options()
		e.login = logins{o.StreamingCredentialsProvider, o.CredentialsProviderContext, o.CredentialsProvider, wire.Login{User: o.Username, Password: o.Password}}
	case interface{ Options() *redis.RingOptions }:
		e.login.static = wire.Login{User: c.Options().Username, Password: c.Options().Password}
	}
	if e.dial == nil {
		return e, &UnsupportedError{Reason: fmt.Sprintf(
			"a %T does not tell the one server that the lock lives on: pass the client of a standalone server, or use WithDialer", rdb)}
	}
	return e, nil
}

func (e *endpoint) read(o *redis.Options) {
	if o.DialTimeout > 0 {
		e.dialLimit = o.DialTimeout
	}
	if o.ReadTimeout > 0 {
		e.replyLimit = o.ReadTimeout
	}
	e.login = logins{o.StreamingCredentialsProvider, o.CredentialsProviderContext, o.CredentialsProvider, wire.Login{User: o.Username, Password: o.Password}}
	e.db = o.DB
	if e.dial == nil && o.Dialer != nil {
		e.sentinel = o.Addr == failoverAddr
		e.dial = func(ctx context.Context) (net.Conn, error) { return o.Dialer(ctx, o.Network, o.Addr) }
	}
}

// socket dials and finds out what to log in with. It may outlast its context:
// go-redis's TLS dialler does not look at it.
func (e *endpoint) socket(ctx context.Context) (*wire.Socket, error) {
	ctx, cancel := context.WithTimeout(ctx, e.dialLimit)
	defer cancel()
	login, rotated, stop, err := e.login.get(ctx)
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
	s := wire.NewSocket(conn, newID(), login, stop)
	s.Rotated = rotated
	return s, nil
}

// connect dials. A TLS connection that has yet to shake hands does so here: its
// first write would, and wait for the peer on the lock's goroutine.
func (e *endpoint) connect(ctx context.Context) (net.Conn, error) {
	conn, err := e.dial(ctx)
	if err != nil {
		return nil, err
	}
	if shy, ok := conn.(interface{ HandshakeContext(context.Context) error }); ok {
		if err := shy.HandshakeContext(ctx); err != nil {
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

func (l *logins) get(ctx context.Context) (login wire.Login, rotated <-chan wire.Login, stop func(), err error) {
	switch {
	case l.streaming != nil:
		return subscribeLogin(l.streaming)
	case l.withCtx != nil:
		login.User, login.Password, err = l.withCtx(ctx)
	case l.plain != nil:
		login.User, login.Password = l.plain()
	default:
		login = l.static
	}
	return login, nil, nil, err
}

// listener brings new credentials to a socket's owner, the newest last.
type listener struct{ logins chan wire.Login }

func subscribeLogin(p auth.StreamingCredentialsProvider) (wire.Login, <-chan wire.Login, func(), error) {
	l := &listener{make(chan wire.Login, 1)}
	first, cancel, err := p.Subscribe(l)
	if err != nil {
		return wire.Login{}, nil, nil, err
	}
	user, password := first.BasicAuth()
	stop := func() {
		if cancel != nil {
			_ = cancel() // the provider's own business
		}
	}
	return wire.Login{User: user, Password: password}, l.logins, stop, nil
}

// OnNext is called by the provider, on any goroutine.
func (l *listener) OnNext(c auth.Credentials) {
	user, password := c.BasicAuth()
	for {
		select {
		case l.logins <- wire.Login{User: user, Password: password}:
			return
		default:
		}
		select {
		case <-l.logins: // outdated
		default:
		}
	}
}

// OnError is the provider's trouble in getting new credentials. The old ones
// stay; when the server stops to accept them, that shows on the socket.
func (l *listener) OnError(error) {}

// newID returns 32 hexadecimal digits that nobody else has.
func newID() string {
	id := uuid.New()
	return hex.EncodeToString(id[:])
}

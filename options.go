package tether

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// Option configures a [Client].
type Option func(*clientOptions)

type clientOptions struct {
	logger *slog.Logger
	dialer func(ctx context.Context) (net.Conn, error)
}

// WithLogger logs losses, holds that were dropped without a release, and
// (at debug level) failed attempts. The default logs nothing.
func WithLogger(l *slog.Logger) Option {
	return func(o *clientOptions) {
		if l != nil {
			o.logger = l
		}
	}
}

// WithDialer dials the presence connections, instead of what the options of
// the Redis client say. The connection must reach one standalone Redis 6 or
// newer, TLS included; credentials still come from the client. It is needed
// for cluster clients and rings, whose options name no single server.
func WithDialer(dial func(ctx context.Context) (net.Conn, error)) Option {
	return func(o *clientOptions) { o.dialer = dial }
}

// LockOption configures a [Lock].
type LockOption func(*lockOptions)

type lockOptions struct {
	health time.Duration
}

const (
	defaultHealthCheck = 10 * time.Second
	minHealthCheck     = 10 * time.Millisecond
)

// WithHealthCheck sets the time between two health checks of a hold: the
// server must answer on the hold's own connection, within the same time or 5
// seconds if that is shorter, and still be a master. It bounds how long a loss
// can go unnoticed that no socket error tells. A server that pauses its clients
// for that long ends their holds. The default is 10 seconds, the least is 10
// milliseconds.
func WithHealthCheck(d time.Duration) LockOption {
	return func(o *lockOptions) { o.health = d }
}

func (o lockOptions) validate(name string) error {
	if name == "" {
		return &ConfigError{Reason: "a lock needs a name"}
	}
	if o.health < minHealthCheck {
		return &ConfigError{Reason: fmt.Sprintf("WithHealthCheck needs at least %v, got %v", minHealthCheck, o.health)}
	}
	return nil
}

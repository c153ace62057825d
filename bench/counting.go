package main

import (
	"context"
	"net"
	"sync/atomic"
	"time"
)

// endpoints are the addresses of the servers, and the counter of what is sent to
// Redis.
type endpoints struct {
	Redis        string
	Etcd         string // the node with fsync
	EtcdNoSync   string
	Side         int // 0 or 1 in a hand-over
	commandsSent *atomic.Int64
}

// dialer dials connections that count commands. It is nil if nothing is counted;
// then the library dials itself.
func (at endpoints) dialer() func(ctx context.Context, network, addr string) (net.Conn, error) {
	if at.commandsSent == nil {
		return nil
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		d := net.Dialer{Timeout: 5 * time.Second, KeepAlive: 5 * time.Minute}
		conn, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &countingConn{TCPConn: conn.(*net.TCPConn), commandsSent: at.commandsSent}, nil
	}
}

// countingConn counts the commands that a client writes. The server's statistics
// are no replacement: they also count the commands inside of scripts.
type countingConn struct {
	*net.TCPConn
	commandsSent *atomic.Int64
	counter      commandCounter
}

func (c *countingConn) Write(p []byte) (int, error) {
	n, err := c.TCPConn.Write(p)
	c.commandsSent.Add(c.counter.count(p[:n]))
	return n, err
}

// commandCounter parses a stream of commands: arrays of bulk strings. Writes may
// split it anywhere.
type commandCounter struct {
	skip int // bytes of a bulk string that are still to come
	kind byte
	size int
}

// count returns how many commands begin in p.
func (c *commandCounter) count(p []byte) (commands int64) {
	for len(p) > 0 {
		if c.skip > 0 {
			n := min(c.skip, len(p))
			c.skip -= n
			p = p[n:]
			continue
		}
		switch b := p[0]; {
		case b == '*' || b == '$':
			c.kind, c.size = b, 0
			if b == '*' {
				commands++
			}
		case b == '\n':
			if c.kind == '$' {
				c.skip = c.size + 2
			}
		case '0' <= b && b <= '9':
			c.size = 10*c.size + int(b-'0')
		}
		p = p[1:]
	}
	return commands
}

package main

import (
	"context"
	"net"
	"sync/atomic"
	"time"
)

// place is where the servers are, and who counts what is sent to them.
type place struct {
	Redis      string
	Etcd       string // of the node that syncs to disk
	EtcdNoSync string
	Side       int // of a hand-over's two
	sent       *atomic.Int64
}

// dialer dials connections that count commands, nil where nobody counts and
// the library may dial as it likes.
func (at place) dialer() func(ctx context.Context, network, addr string) (net.Conn, error) {
	if at.sent == nil {
		return nil
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		d := net.Dialer{Timeout: 5 * time.Second, KeepAlive: 5 * time.Minute}
		conn, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &countingConn{TCPConn: conn.(*net.TCPConn), sent: at.sent}, nil
	}
}

// countingConn counts the commands that a client writes. The server's own
// statistics would count those inside of scripts too.
type countingConn struct {
	*net.TCPConn
	sent    *atomic.Int64
	counter commandCounter
}

func (c *countingConn) Write(p []byte) (int, error) {
	n, err := c.TCPConn.Write(p)
	c.sent.Add(c.counter.take(p[:n]))
	return n, err
}

// commandCounter follows a stream of commands: arrays of bulk strings.
type commandCounter struct {
	skip int // bytes of a bulk string that are still to come
	kind byte
	size int
}

// take returns how many commands begin in p.
func (c *commandCounter) take(p []byte) (commands int64) {
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

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// redisServer is a Redis of this run.
type redisServer struct {
	addr  string
	dir   string
	child *child
}

// freePort returns a port on which nobody listens. It is below the range of
// ephemeral ports, so that no outgoing connection takes it.
func freePort() int {
	for {
		port := 12000 + rand.IntN(10000)
		l, err := net.Listen("tcp", loopback(port))
		if err == nil {
			_ = l.Close()
			return port
		}
	}
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// startRedis tries several ports: another program may take one first.
func startRedis() (*redisServer, error) {
	var failed error
	for range 5 {
		s, err := startRedisOn(freePort())
		if err == nil {
			return s, nil
		}
		failed = err
	}
	return nil, failed
}

func startRedisOn(port int) (*redisServer, error) {
	dir, err := os.MkdirTemp("", "tether-bench-")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("redis-server", "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir,
		"--save", "", "--appendonly", "no", "--maxclients", "15000", "--tcp-backlog", "4096")
	// Redis refuses to start if the locale is not installed.
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	s := &redisServer{addr: loopback(port), dir: dir}
	if s.child, err = start(cmd, nil); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	go s.child.drain()
	if err := s.ready(); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// ready waits until the server answers. It compares the process id, as another
// server may have taken the port.
func (s *redisServer) ready() error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(10 * time.Second)
	pid := "process_id:" + strconv.Itoa(s.child.cmd.Process.Pid) + "\r\n"
	for {
		info, err := s.do("INFO", "server")
		if err == nil && strings.Contains(info, pid) {
			return nil
		}
		select {
		case <-tick.C:
		case <-s.child.ended:
			return fmt.Errorf("redis-server has ended; on port %s", s.addr)
		case <-limit:
			return fmt.Errorf("redis-server does not answer: %w", err)
		}
	}
}

// do sends one command on a connection of its own.
func (s *redisServer) do(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn, err := dialRaw(ctx, s.addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.close() }() // it has no unread data
	return conn.call(args...)
}

// info is one number of the server's own statistics.
func (s *redisServer) info(section, selected string) (int64, error) {
	text, err := s.do("INFO", section)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), selected+":"); ok {
			return strconv.ParseInt(v, 10, 64)
		}
	}
	return 0, fmt.Errorf("INFO %s has no %s", section, selected)
}

// processor is the processor time that the server has used so far.
func (s *redisServer) processor() (time.Duration, error) {
	text, err := s.do("INFO", "cpu")
	if err != nil {
		return 0, err
	}
	var sum float64
	for line := range strings.Lines(text) {
		name, v, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_sys" || name == "used_cpu_user" {
			f, err := strconv.ParseFloat(v, 64)
			if err != nil {
				return 0, err
			}
			sum += f
		}
	}
	return time.Duration(sum * float64(time.Second)), nil
}

func (s *redisServer) stop() {
	s.child.kill()
	_ = os.RemoveAll(s.dir) // it is in the system's temporary folder
}

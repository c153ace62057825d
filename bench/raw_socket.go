package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
)

// rawSocket is a connection without a library. It writes prepared bytes, and its
// reader skips what is not needed.
type rawSocket struct {
	conn net.Conn
	r    *bufio.Reader
}

func dialRaw(ctx context.Context, addr string) (*rawSocket, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &rawSocket{conn, bufio.NewReader(conn)}, nil
}

func (s *rawSocket) close() error { return s.conn.Close() }

// command encodes a command in RESP.
func command(args ...string) []byte {
	out := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, arg := range args {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return out
}

// exchange writes p and reads the given number of frames. It returns the last
// number in the last frame.
func (s *rawSocket) exchange(p []byte, frames int) (int, error) {
	if _, err := s.conn.Write(p); err != nil {
		return 0, err
	}
	var last int
	for range frames {
		n, err := s.frame()
		if err != nil {
			return 0, err
		}
		last = n
	}
	return last, nil
}

// frame reads one reply or push, and returns the last number in it.
func (s *rawSocket) frame() (int, error) {
	var last int
	for left := 1; left > 0; left-- {
		kind, n, err := s.head()
		if err != nil {
			return 0, err
		}
		switch kind {
		case '*', '>', '~':
			left += n
		case '%':
			left += 2 * n
		case '$', '=':
			if n >= 0 {
				if _, err := s.r.Discard(n + 2); err != nil {
					return 0, err
				}
			}
		case ':':
			last = n
		}
	}
	return last, nil
}

// head reads the first line of a value: its kind, and its number if it has one.
func (s *rawSocket) head() (kind byte, n int, err error) {
	line, err := s.r.ReadSlice('\n')
	if err != nil {
		return 0, 0, err
	}
	if len(line) < 3 {
		return 0, 0, errors.New("a line without content")
	}
	kind, text := line[0], line[1:len(line)-2]
	switch kind {
	case '-', '!':
		return 0, 0, errors.New(string(text))
	case '*', '>', '~', '%', '$', '=', ':':
		n = number(text)
	}
	return kind, n, nil
}

// number parses digits. It does not check them: they come from the server.
func number(text []byte) int {
	n, sign := 0, 1
	for _, c := range text {
		if c == '-' {
			sign = -1
			continue
		}
		n = 10*n + int(c-'0')
	}
	return sign * n
}

// call sends one command and returns its reply as text.
func (s *rawSocket) call(args ...string) (string, error) {
	if _, err := s.conn.Write(command(args...)); err != nil {
		return "", err
	}
	line, err := s.r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = line[:max(0, len(line)-2)]
	if line == "" {
		return "", errors.New("a line without content")
	}
	switch line[0] {
	case '-':
		return "", errors.New(line[1:])
	case '$', '=':
		n, err := strconv.Atoi(line[1:])
		if err != nil || n < 0 {
			return "", err
		}
		text := make([]byte, 0, n)
		for range n {
			b, err := s.r.ReadByte()
			if err != nil {
				return "", err
			}
			text = append(text, b)
		}
		_, err = s.r.Discard(2)
		return string(text), err
	default:
		return line[1:], nil
	}
}

package interop

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy is a proxy between clients and a server. It keeps the commands of each
// connection.
type proxy struct {
	listener net.Listener
	server   string

	mu          sync.Mutex
	connections [][][]string // connection → commands → words
}

func startProxy(t testing.TB, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &proxy{listener: l, server: server}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { r.relay(client) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return r
}

// relay copies both directions until one side ends.
func (r *proxy) relay(client net.Conn) {
	upstream, err := net.Dial("tcp", r.server)
	if err != nil {
		_ = client.Close()
		return
	}
	r.mu.Lock()
	number := len(r.connections)
	r.connections = append(r.connections, nil)
	r.mu.Unlock()

	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(client, upstream)
		_ = client.Close()
	})
	both.Go(func() {
		r.forward(number, client, upstream)
		_ = upstream.Close()
	})
	both.Wait()
}

// forward passes commands on. A command is kept before it is passed on: when its
// effect is visible, sent returns it.
func (r *proxy) forward(number int, client io.Reader, upstream io.Writer) {
	for in := bufio.NewReader(client); ; {
		words, err := readCommand(in)
		if err != nil {
			return
		}
		r.mu.Lock()
		r.connections[number] = append(r.connections[number], words)
		r.mu.Unlock()
		if _, err := io.WriteString(upstream, encodeCommand(words)); err != nil {
			return
		}
	}
}

// sent returns the commands of each connection.
func (r *proxy) sent() [][][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([][][]string{}, r.connections...)
}

// readCommand reads a command, an array of bulk strings. Clients use no other form.
func readCommand(in *bufio.Reader) ([]string, error) {
	n, err := readLength(in, '*')
	if err != nil {
		return nil, err
	}
	words := make([]string, n)
	for i := range words {
		size, err := readLength(in, '$')
		if err != nil {
			return nil, err
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(in, word); err != nil {
			return nil, err
		}
		words[i] = string(word[:size])
	}
	return words, nil
}

func readLength(in *bufio.Reader, kind byte) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, fmt.Errorf("%q does not begin with %q", line, kind)
	}
	return strconv.Atoi(strings.TrimRight(line[1:], "\r\n"))
}

func encodeCommand(words []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b.String()
}

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

// recorder stands between clients and a server, and writes down what the clients
// send. Each connection has its own record.
type recorder struct {
	listener net.Listener
	server   string

	mu          sync.Mutex
	connections [][][]string // connection → its commands → their words
}

func record(t testing.TB, server string) *recorder {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &recorder{listener: l, server: server}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { r.pass(client) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return r
}

// pass passes both directions on until one side ends.
func (r *recorder) pass(client net.Conn) {
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

// forward passes commands on. Each is written down first: before the server can
// answer it.
func (r *recorder) forward(number int, client io.Reader, upstream io.Writer) {
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

// sent is what each connection has sent.
func (r *recorder) sent() [][][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([][][]string{}, r.connections...)
}

// readCommand reads an array of bulk strings, the only form of a command that
// clients use.
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
		return 0, fmt.Errorf("%q begins no %q", line, kind)
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

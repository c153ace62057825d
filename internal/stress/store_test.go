package stress

import (
	"encoding/json"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// store is the resource that the locks protect. For each lock it remembers the
// highest token that it has seen, and refuses lower ones. It is in the process of
// the test, which is never stopped or killed.
type store struct {
	listener net.Listener
	history  *historyFile
	serving  sync.WaitGroup

	mu      sync.Mutex
	highest map[string]int64
}

// write is a holder's request to the store.
type write struct {
	Who, Lock string
	Hold      int
	Token     int64
}

func startStore(t *testing.T, j *historyFile) *store {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &store{listener: l, history: j, highest: map[string]int64{}}
	s.serving.Go(s.accept)
	return s
}

func (s *store) addr() string { return s.listener.Addr().String() }

// close waits until the last worker has closed its connection.
func (s *store) close() {
	_ = s.listener.Close() // an error changes nothing here
	s.serving.Wait()
}

func (s *store) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.serving.Go(func() {
			defer conn.Close()
			s.serve(conn)
		})
	}
}

// serve answers the writes of one connection until it ends. A SIGKILL of the
// worker may end it in the middle of a write.
func (s *store) serve(conn io.ReadWriter) {
	in, out := json.NewDecoder(conn), json.NewEncoder(conn)
	for {
		var w write
		if in.Decode(&w) != nil || out.Encode(s.put(w)) != nil {
			return
		}
	}
}

// put reports whether a write is accepted. The mutex keeps the entries of the
// history in the order of the decisions.
func (s *store) put(w write) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := entry{Kind: accepted, Who: w.Who, Lock: w.Lock, Hold: w.Hold, Token: w.Token}
	if w.Token < s.highest[w.Lock] {
		e.Kind = refused
	} else {
		s.highest[w.Lock] = w.Token
	}
	s.history.add(e)
	return e.Kind == accepted
}

// storeClient is one worker goroutine's connection to the store.
type storeClient struct {
	conn net.Conn
	in   *json.Decoder
	out  *json.Encoder
}

func dialStore(addr string) (*storeClient, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &storeClient{conn, json.NewDecoder(conn), json.NewEncoder(conn)}, nil
}

// put reports whether the store accepted a write.
func (c *storeClient) put(w write) (ok bool, err error) {
	if err := c.out.Encode(w); err != nil {
		return false, err
	}
	err = c.in.Decode(&ok)
	return ok, err
}

func (c *storeClient) close() { _ = c.conn.Close() }

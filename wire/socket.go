package wire

import (
	"errors"
	"net"
	"time"
)

// Login is what a socket logs in with.
type Login struct {
	User, Password string
}

// Batch is what a socket's reader delivers: the frames that came together, and
// the error that ended the socket behind them. Nothing follows an error.
type Batch struct {
	Frames []Value
	Err    error
}

// Socket is one connection and the goroutine that reads it. It has one owner at a
// time, which alone writes and closes. It never reconnects.
type Socket struct {
	// ID is the holder id. Each socket has a new one. If an id were used again
	// after its connection broke, the server might still count the old half-open
	// connection, and the answer of the new one would be taken for its answer.
	ID string
	// Login is what AUTH says, kept up to date by the owner.
	Login Login
	// Rotated delivers new credentials; nil when they cannot change.
	Rotated <-chan Login

	conn   net.Conn
	frames chan Batch // closed behind an error
	after  func()
	fresh  bool
	until  time.Time // the deadline of writes
}

const (
	// backlog is how many batches may wait for the owner. Behind them the reader
	// waits, and the server buffers.
	backlog = 1
	// batchSize bounds a batch.
	batchSize = 64
	// batchRoom is how many values are allocated together at most: the replies to
	// an acquire are three frames, which consist of ten values.
	batchRoom = 13
	// firstFrames is how many of them are frames.
	firstFrames = 3
)

// looked are the keys of HELLO's reply that are used. The others are not kept.
var looked = []string{"role", "mode"}

// A write may take between writeMin and twice writeMax. Commands are small, and the
// kernel takes them at once unless the peer has not read for megabytes: then the owner
// must not wait for it. One deadline serves many writes.
const (
	writeMin = 125 * time.Millisecond
	writeMax = 250 * time.Millisecond
)

// NewSocket takes over a connection and starts to read it. After, if not nil,
// is called once when the socket is closed, on a goroutine of its own.
func NewSocket(conn net.Conn, id string, login Login, after func()) *Socket {
	s := &Socket{
		ID: id, Login: login, conn: conn, after: after, fresh: true,
		frames: make(chan Batch, backlog),
	}
	r := NewReader(conn)
	r.wanted = &looked
	go s.read(r, 0)
	return s
}

// minRead is how long a goroutine reads at least. It bounds how often a socket that
// is busy starts a new one.
const minRead = 100 * time.Millisecond

// read reads until the end, or for as long as least, and then goes on in a new
// goroutine. What decoding needs of the stack is not given back while a goroutine is
// parked in a read; a new one begins with 2 kB, and a lock waits most of its life.
func (s *Socket) read(r *Reader, least time.Duration) {
	startedAt := time.Now()
	for r.wait(); s.deliver(r); r.wait() {
		if time.Since(startedAt) >= least {
			r.shed()
			go s.read(r, minRead)
			return
		}
	}
}

// deliver reads what has come and hands it to the owner. It returns false when
// nothing follows.
func (s *Socket) deliver(r *Reader) bool {
	b := receive(r)
	s.frames <- b
	if b.Err != nil {
		close(s.frames)
	}
	return b.Err == nil
}

// receive waits for the next frames and reads them. Their values are one allocation,
// because they are used together. It is made when the bytes are there: a reader that
// waits has none.
func receive(r *Reader) Batch {
	r.wait()
	r.room = make([]Value, min(r.lines(), batchRoom))
	b := readBatch(r)
	r.room = nil
	return b
}

// readBatch reads the frames that have arrived together, so that the owner is woken
// once for the replies to one write.
func readBatch(r *Reader) (b Batch) {
	b.Frames = r.elems(firstFrames)
	v, err := r.Read()
	for ok := true; ok && err == nil; {
		b.Frames = append(b.Frames, v)
		if len(b.Frames) == batchSize {
			return b
		}
		v, ok, err = r.ReadBuffered()
	}
	b.Err = err
	return b
}

// Frames delivers what the server sends, in order. It is closed behind an error. Maps
// have the keys role and mode, which HELLO's reply is used for, and no others.
func (s *Socket) Frames() <-chan Batch { return s.frames }

// Fresh says whether nothing has been written yet.
func (s *Socket) Fresh() bool { return s.fresh }

// RemoteAddr is the server's address, as far as the connection knows one.
func (s *Socket) RemoteAddr() string { return RemoteAddr(s.conn) }

// RemoteAddr is the address that a connection leads to, empty if it knows none.
func RemoteAddr(conn net.Conn) string {
	if addr := conn.RemoteAddr(); addr != nil {
		return addr.String()
	}
	return ""
}

// Write writes commands. It waits for the kernel only, and not for long. A deadline
// that has passed is extended once: on a busy machine the goroutine may not have run
// between setting the deadline and the system call.
func (s *Socket) Write(p []byte) error {
	s.fresh = false
	now := time.Now()
	if s.until.Sub(now) < writeMin {
		if err := s.deadline(now); err != nil {
			return err
		}
	}
	n, err := s.conn.Write(p)
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		if err := s.deadline(time.Now()); err != nil {
			return err
		}
		_, err = s.conn.Write(p[n:])
	}
	return err
}

// deadline sets the deadline of writes.
func (s *Socket) deadline(now time.Time) error {
	s.until = now.Add(writeMax)
	return s.conn.SetWriteDeadline(s.until)
}

// Quiet reports whether the server has sent nothing that was not read, nor ended the
// connection.
func (s *Socket) Quiet() bool { return len(s.frames) == 0 }

// Close closes the connection. The owner calls it once, and does not wait for it: TLS
// writes a last alert, to a peer that may not read, and after is a function of the
// caller of [NewSocket].
func (s *Socket) Close() {
	go func() {
		for range s.frames { // the reader may be blocked on it
		}
	}()
	go func() {
		_ = s.conn.Close() // the lock is given up either way
		if s.after != nil {
			s.after()
		}
	}()
}

package wire

import (
	"bytes"
	"io"
)

const (
	// bufferSize is the size of a quiet connection's buffer. Each held lock has
	// one. The replies to an acquire, about 400 bytes, fit in it.
	bufferSize = 512
	// idleSize is its size when the connection is likely to be quiet for long. A
	// read that fills it is followed by one into a buffer of bufferSize.
	idleSize = 64
	// maxBuffer bounds the buffer. Longer strings and lines are not read
	// through it.
	maxBuffer = 4 << 10
	// quietReads is the number of short reads in a row after which a buffer
	// that has grown shrinks again. One is not enough: in a series of acquires
	// and releases, long reads and short ones alternate.
	quietReads = 8
	// emptyReads is the number of reads without a byte or an error after which
	// the source counts as broken.
	emptyReads = 100
)

// buffer reads ahead. A bufio.Reader has one size for its whole life: a small one
// makes a busy connection slow, and a large one is paid for by each lock that is
// held and hears nothing. This one grows when the bytes that arrive fill it, and
// shrinks when few arrive. It does not grow because a header announces many bytes.
type buffer struct {
	src      io.Reader
	data     []byte
	from, to int   // the bytes that are read and not yet taken
	full     bool  // the last read filled the buffer
	short    int32 // reads in a row that a buffer of bufferSize could have taken
	err      error
}

// buffered returns the bytes that are read and not yet taken.
func (b *buffer) buffered() []byte { return b.data[b.from:b.to] }

// fill reads at least one more byte. The buffer must not be full at its largest
// size.
func (b *buffer) fill() error {
	if b.err != nil {
		return b.err
	}
	if b.to == 0 || b.from > 0 || b.to > len(b.data)/4*3 {
		b.makeRoom()
	}
	for range emptyReads {
		n, err := b.src.Read(b.data[b.to:])
		b.to += n
		b.err = err
		if n > 0 {
			b.measure()
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// measure notes how much the last read has brought.
func (b *buffer) measure() {
	b.full = b.to == len(b.data)
	if b.to > bufferSize {
		b.short = 0
	} else if b.short < quietReads {
		b.short++
	}
}

// makeRoom moves what is left to the front. It also grows a buffer that is too
// small, and shrinks one that has been too large for a while.
func (b *buffer) makeRoom() {
	rest := b.buffered()
	size := len(b.data)
	switch {
	case size == 0:
		size = bufferSize
	case size < maxBuffer && (b.full || len(rest) > size/4*3):
		size = max(2*size, bufferSize)
	case size > bufferSize && b.short >= quietReads && len(rest) == 0:
		size = bufferSize
	}
	if size != len(b.data) {
		b.data = make([]byte, size)
		b.full = false
	}
	b.from, b.to = 0, copy(b.data, rest)
}

// shed replaces the buffer by a small one, unless there is something in it.
func (b *buffer) shed() {
	if b.from == b.to && len(b.data) > idleSize {
		b.data, b.from, b.to = make([]byte, idleSize), 0, 0
	}
}

// peek returns the next n bytes, at most maxBuffer, and takes none of them.
func (b *buffer) peek(n int) ([]byte, error) {
	for b.to-b.from < n {
		if err := b.fill(); err != nil {
			return nil, err
		}
	}
	return b.data[b.from : b.from+n], nil
}

func (b *buffer) discard(n int) { b.from += n }

func (b *buffer) readByte() (byte, error) {
	if b.from == b.to {
		if err := b.fill(); err != nil {
			return 0, err
		}
	}
	c := b.data[b.from]
	b.from++
	return c, nil
}

// readLine returns the bytes up to and with the next line break. Without ended
// it returns what there is: maxBuffer bytes that have none, or fewer and an
// error. The result is valid until the next read.
func (b *buffer) readLine() (line []byte, ended bool, err error) {
	for searched := 0; ; {
		rest := b.buffered()
		if i := bytes.IndexByte(rest[searched:], '\n'); i >= 0 {
			b.from += searched + i + 1
			return rest[:searched+i+1], true, nil
		}
		searched = len(rest)
		if searched < maxBuffer {
			err = b.fill()
		}
		if searched == maxBuffer || err != nil {
			b.from = b.to
			return rest, false, err
		}
	}
}

// Read reads strings that are too long for the buffer.
func (b *buffer) Read(p []byte) (int, error) {
	if b.from == b.to {
		if b.err != nil {
			return 0, b.err
		}
		return b.src.Read(p)
	}
	n := copy(p, b.buffered())
	b.from += n
	return n, nil
}

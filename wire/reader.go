package wire

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// firstElems is the largest number of elements that are allocated when a header
// announces them. For more, memory is allocated as they arrive: a header of 16
// bytes can announce a gigabyte.
const firstElems = 16

// Reader turns a stream of bytes into RESP3 frames. It reads RESP2 too, which is a
// part of RESP3. It is not safe for concurrent use.
type Reader struct {
	src    buffer
	limits *Limits
	open   []level   // aggregates that are not complete, the outermost first
	attr   *Value    // the attribute of the value that comes next
	room   []Value   // allocated for the next elements
	wanted *[]string // the keys that are kept of a frame that is a map; nil for all
	about  string    // the channel of the last push
	used   int       // the size of the values that are not returned yet
	owed   int       // the part of it that is attr
	off    int64     // bytes consumed
	at     int64     // off at the last header
	err    error     // what ended the stream
}

// level is an aggregate that is not complete.
type level struct {
	kind  Kind
	left  int // number of values that are missing; negative if an end mark follows
	elems []Value
	attr  *Value
	used  int // the Reader's used before the aggregate and its attribute
}

// NewReader returns a Reader with the default limits. It reads ahead, so nothing
// else can read from r any more.
func NewReader(r io.Reader) *Reader { return &Reader{src: buffer{src: r}, limits: &defaultLimits} }

var defaultLimits = Limits{}.orDefault()

// NewLimitedReader returns a Reader with other limits.
func NewLimitedReader(r io.Reader, limits Limits) *Reader {
	limits = limits.orDefault()
	return &Reader{src: buffer{src: r}, limits: &limits}
}

// Read returns the next complete frame. It waits for it as long as the underlying
// reader does.
//
// Some servers write a push into the middle of a reply, during EXEC. Read returns
// it before that reply, as a frame of its own, and does not count it as an
// element. That is right for a message that the transaction has caused. It is
// wrong for a SUBSCRIBE within the transaction: its push takes the place of an
// element, and nothing in the stream tells the two cases apart. So do not
// subscribe within MULTI.
//
// The error is io.EOF when the stream ends between two frames,
// io.ErrUnexpectedEOF when it ends within one, a [*ProtocolError] when it breaks
// the rules or a limit, and otherwise the error of the underlying reader. After
// an error every call returns the same error.
func (r *Reader) Read() (Value, error) {
	v, _, err := r.frame(true)
	return v, err
}

// ReadBuffered is Read for the bytes that are buffered. It never waits: ok is
// false when no complete frame is there. A caller can take all frames that came
// together with it, and does not wait for the rest of an incomplete one.
func (r *Reader) ReadBuffered() (v Value, ok bool, err error) {
	return r.frame(false)
}

// wait waits for the next byte, and leaves it in the buffer.
func (r *Reader) wait() {
	if r.err != nil {
		return
	}
	if _, err := r.src.peek(1); err != nil {
		r.err = r.ended(err)
	}
}

// shed frees memory that is not needed to wait.
func (r *Reader) shed() {
	r.src.shed()
	if len(r.open) == 0 {
		r.open = nil
	}
}

// frame reads headers until a frame is complete. Open aggregates are on a stack in
// the Reader and not on the goroutine's: the frame may be incomplete when the
// function returns, with a push from inside of it, or because wait is false.
func (r *Reader) frame(wait bool) (v Value, complete bool, err error) {
	for r.err == nil {
		if !wait && !r.arrived() {
			return Value{}, false, nil
		}
		v, complete, err = r.next()
		if err == nil && complete {
			v, complete, err = r.place(v)
		}
		if err != nil {
			r.err, r.open, r.attr = err, nil, nil
		} else if complete {
			return v, true, nil
		}
	}
	return Value{}, false, r.err
}

// arrived returns true if the next value is in the buffer: its header, and the
// string behind it if there is one. It is false for a streamed string.
func (r *Reader) arrived() bool {
	header, behind, ended := bytes.Cut(r.src.buffered(), []byte{'\n'})
	if !ended || len(header) == 0 {
		return ended
	}
	switch header[0] {
	case '$', '!', '=':
		n, ok := digits(bytes.TrimSuffix(header[1:], []byte{'\r'}))
		if !ok {
			return !bytes.HasPrefix(header, []byte("$?")) // some of its chunks may be missing
		}
		return n < uint64(len(behind)) && int(n)+2 <= len(behind)
	default:
		return true
	}
}

// next reads one header and, if it is a string's, the string. It returns a
// complete value, or none if the header has opened an aggregate.
func (r *Reader) next() (v Value, complete bool, err error) {
	r.at = r.off
	t, err := r.src.readByte()
	if err != nil {
		return Value{}, false, r.ended(err)
	}
	r.off++
	// The type is checked before the line is read: a server of another protocol
	// may never send a line break.
	if !strings.ContainsRune("+-:_#,($!=*~%>|.", rune(t)) {
		return Value{}, false, r.broken("%q is the type of nothing", t)
	}
	line, err := r.line()
	if err != nil {
		return Value{}, false, err
	}
	switch t {
	case '$', '!', '=':
		return r.bulk(t, line)
	case '*', '~', '%', '>', '|':
		return r.aggregate(t, line)
	case '.':
		return r.end(line)
	default:
		return r.simple(t, line)
	}
}

// simple returns the value that a line holds.
func (r *Reader) simple(t byte, line []byte) (Value, bool, error) {
	v, ok := Value{}, true
	switch t {
	case '+':
		v = Value{Kind: SimpleString, Str: r.text(line)}
	case '-':
		v = Value{Kind: Error, Str: string(line)}
	case ':':
		v.Kind = Integer
		v.Int, ok = integer(line)
	case '_':
		ok = len(line) == 0
	case '#':
		v.Kind = Boolean
		ok = len(line) == 1 && (line[0] == 't' || line[0] == 'f')
		if ok && line[0] == 't' {
			v.Int = 1
		}
	case ',':
		if string(line) == "-nan" { // Redis before 7.2 prints what C's printf does
			line = line[1:]
		}
		v, ok = Value{Kind: Double, Str: string(line)}, isDouble(line)
	case '(':
		v, ok = Value{Kind: BigNumber, Str: string(line)}, isBigNumber(line)
	}
	if !ok {
		return Value{}, false, r.broken("%.32q is no value of the type %q", line, t)
	}
	return r.scalar(v)
}

// scalar completes a value that is not an aggregate.
func (r *Reader) scalar(v Value) (Value, bool, error) {
	v.Attr = r.takeAttr()
	return v, true, r.charge(len(v.Str))
}

// charge counts one value and the bytes of its string towards the limit of a frame.
func (r *Reader) charge(size int) error {
	if size > r.limits.Frame-r.used-valueSize {
		return r.broken("a frame of more than %d bytes", r.limits.Frame)
	}
	r.used += valueSize + size
	return nil
}

func (r *Reader) broken(format string, args ...any) error {
	return &ProtocolError{Offset: r.at, Reason: fmt.Sprintf(format, args...)}
}

// ended returns the error for a stream that ends where a header is due.
func (r *Reader) ended(err error) error {
	if len(r.open) == 0 && r.attr == nil {
		return err
	}
	return cut(err)
}

// cut returns the error for a stream that ends within a frame.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

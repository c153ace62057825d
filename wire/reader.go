package wire

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// firstElems is the most that get room on the word of a header alone.
const firstElems = 16

// Reader turns a stream of bytes into RESP3 frames; RESP2 is among them. It
// belongs to one goroutine.
type Reader struct {
	src    buffer
	limits *Limits
	open   []level   // aggregates that are not complete, the outermost first
	attr   *Value    // the attribute of the value that comes next
	room   []Value   // for the elements of what comes next
	wanted *[]string // if any, the keys to which a frame that is a map is cut down
	about  string    // the channel of the last push
	used   int       // what the values that are not returned yet take in memory
	owed   int       // what of that is attr
	off    int64     // bytes consumed
	at     int64     // off at the last header
	err    error     // what ended the stream
}

// level is an aggregate that is not complete.
type level struct {
	kind  Kind
	left  int // values that are missing, negative when an end mark will tell
	elems []Value
	attr  *Value
	used  int // the Reader's used before the aggregate and its attribute
}

// NewReader returns a Reader with the default limits. It reads ahead: r is its
// own from now on.
func NewReader(r io.Reader) *Reader { return &Reader{src: buffer{src: r}, limits: &defaultLimits} }

var defaultLimits = Limits{}.orDefault()

// NewLimitedReader returns a Reader with other limits.
func NewLimitedReader(r io.Reader, limits Limits) *Reader {
	limits = limits.orDefault()
	return &Reader{src: buffer{src: r}, limits: &limits}
}

// Read returns the next complete frame, and waits for it as long as the
// underlying reader does. A push that stands inside a reply, where some servers
// put it during EXEC, comes as a frame of its own before that reply, of which it
// is no element. That is right for a message which the transaction itself has
// caused. It cannot be for a SUBSCRIBE within the transaction: that one's push
// stands in the place of an element and is counted as one, and nothing in the
// stream tells the two apart. Don't subscribe within MULTI.
//
// The error is io.EOF when the stream ends between two frames,
// io.ErrUnexpectedEOF when it ends within one, a [*ProtocolError] when it
// breaks the rules or a limit, and otherwise the underlying reader's. After an
// error every call returns the same one.
func (r *Reader) Read() (Value, error) {
	v, _, err := r.frame(true)
	return v, err
}

// ReadBuffered is Read for what has been read ahead: it never waits, and ok is
// false when no complete frame is there. It lets a caller take together what came
// together without a complete frame being held up by the half of another.
func (r *Reader) ReadBuffered() (v Value, ok bool, err error) {
	return r.frame(false)
}

// wait waits for the next byte, as Read does, and takes nothing.
func (r *Reader) wait() {
	if r.err != nil {
		return
	}
	if _, err := r.src.peek(1); err != nil {
		r.err = r.ended(err)
	}
}

// shed gives up memory that is of no use before something comes.
func (r *Reader) shed() {
	r.src.shed()
	if len(r.open) == 0 {
		r.open = nil
	}
}

// frame reads headers until a frame is complete. It is a loop over a stack of
// its own, and keeps that stack when it hands out a push from inside, or when it
// must not wait for what is missing.
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

// arrived says whether the next header is in the buffer, and with it the string
// that it announces. A streamed string counts as out of reach.
func (r *Reader) arrived() bool {
	header, behind, ended := bytes.Cut(r.src.buffered(), []byte{'\n'})
	if !ended || len(header) == 0 {
		return ended
	}
	switch header[0] {
	case '$', '!', '=':
		n, ok := digits(bytes.TrimSuffix(header[1:], []byte{'\r'}))
		if !ok {
			return !bytes.HasPrefix(header, []byte("$?")) // its chunks may be under way
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
	// The type is checked first: a server of another protocol may never send a
	// line break.
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

// simple makes a value of a line.
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

// scalar completes a value that is no aggregate.
func (r *Reader) scalar(v Value) (Value, bool, error) {
	v.Attr = r.takeAttr()
	return v, true, r.charge(len(v.Str))
}

// charge counts one value, and the bytes of its string, towards the frame.
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

// ended is the error for a stream that ends before a header.
func (r *Reader) ended(err error) error {
	if len(r.open) == 0 && r.attr == nil {
		return err
	}
	return cut(err)
}

// cut is the error for a stream that ends within a frame.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

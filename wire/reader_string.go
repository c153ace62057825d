package wire

import (
	"bytes"
	"io"
	"strings"
)

// line returns the bytes up to the line break, without it. The result is valid
// until the next read.
func (r *Reader) line() ([]byte, error) {
	limit := min(maxLine, r.limits.Bulk)
	line, ended, err := r.src.readLine()
	if !ended && err == nil {
		line, err = r.longLine(line, limit)
	}
	r.off += int64(len(line))
	if err != nil {
		return nil, cut(err)
	}
	text, proper := bytes.CutSuffix(line, []byte("\r\n"))
	switch {
	case !proper || bytes.IndexByte(text, '\r') >= 0:
		return nil, r.broken("a line that is broken otherwise than by CR LF")
	case len(text) > limit:
		return nil, r.broken("a line of more than %d bytes", limit)
	}
	return text, nil
}

// longLine reads the rest of a line that does not fit in the buffer.
func (r *Reader) longLine(start []byte, limit int) ([]byte, error) {
	line := bytes.Clone(start)
	for len(line) <= limit {
		part, ended, err := r.src.readLine()
		line = append(line, part...)
		if ended || err != nil {
			return line, err
		}
	}
	return nil, r.broken("a line of more than %d bytes", limit)
}

// bulk reads a string whose length is in the header.
func (r *Reader) bulk(t byte, line []byte) (Value, bool, error) {
	if t == '$' && string(line) == "-1" {
		return r.scalar(Value{})
	}
	var s string
	var err error
	if t == '$' && string(line) == "?" {
		s, err = r.chunks()
	} else {
		s, err = r.sized(line, 0)
	}
	if err != nil {
		return Value{}, false, err
	}
	switch t {
	case '!':
		return r.scalar(Value{Kind: BulkError, Str: s})
	case '=':
		if len(s) < 4 || s[3] != ':' {
			return Value{}, false, r.broken("a verbatim string that starts with %.8q and not with its format", s)
		}
		return r.scalar(Value{Kind: Verbatim, Format: [3]byte{s[0], s[1], s[2]}, Str: s[4:]})
	default:
		return r.scalar(Value{Kind: BulkString, Str: s})
	}
}

// sized reads as many bytes as the header announces. The string has before bytes
// already, from earlier chunks.
func (r *Reader) sized(header []byte, before int) (string, error) {
	n, ok := digits(header)
	switch {
	case !ok:
		return "", r.broken("%.32q is no length", header)
	case n > uint64(r.limits.Bulk-before):
		return "", r.broken("a string of more than %d bytes", r.limits.Bulk)
	case int(n)+before > r.limits.Frame-r.used-valueSize:
		return "", r.broken("a frame of more than %d bytes", r.limits.Frame)
	}
	return r.payload(int(n))
}

// payload reads n bytes and the line break behind them.
func (r *Reader) payload(n int) (string, error) {
	if n > maxBuffer-2 {
		return r.longPayload(n)
	}
	b, err := r.src.peek(n + 2)
	if err != nil {
		return "", cut(err)
	}
	if string(b[n:]) != "\r\n" {
		return "", r.overrun(n)
	}
	s := r.text(b[:n])
	r.off += int64(len(b))
	r.src.discard(len(b))
	return s, nil
}

// longPayload is payload for strings that do not fit in the buffer. It allocates as
// the bytes arrive, and not as many as the header announces.
func (r *Reader) longPayload(n int) (string, error) {
	var s strings.Builder
	if _, err := io.CopyN(&s, &r.src, int64(n)); err != nil {
		return "", cut(err)
	}
	var end [2]byte
	if _, err := io.ReadFull(&r.src, end[:]); err != nil {
		return "", cut(err)
	}
	if string(end[:]) != "\r\n" {
		return "", r.overrun(n)
	}
	r.off += int64(n) + 2
	return s.String(), nil
}

func (r *Reader) overrun(n int) error {
	return r.broken("a string of %d bytes without a line break behind it", n)
}

// chunks reads a streamed string.
func (r *Reader) chunks() (string, error) {
	var s strings.Builder
	for {
		t, err := r.src.readByte()
		if err != nil {
			return "", cut(err)
		}
		r.off++
		if t != ';' {
			return "", r.broken("%q where the next chunk of a streamed string was due", t)
		}
		line, err := r.line()
		if err != nil {
			return "", err
		}
		if string(line) == "0" { // it ends the string and has no payload
			return s.String(), nil
		}
		chunk, err := r.sized(line, s.Len())
		if err != nil {
			return "", err
		}
		s.WriteString(chunk)
	}
}

package wire

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxMessage is how long a message may be, in bytes. Anybody may publish on a
// lock's channel, and its participants read all of it.
const maxMessage = 1 << 20

// raw is a JSON value as it is written, cut out of a message that is valid JSON.
// Nothing stands for a value that is not there.
//
// Messages are not read into structs: encoding/json would fill a field named
// protocol from a key Protocol, which to every other peer is a stranger, and it
// gives up on a whole message for one malformed part.
type raw []byte

// object reads a message that is a JSON object.
func object(data string) (raw, bool) {
	if len(data) > maxMessage {
		return nil, false
	}
	data = strings.TrimLeft(data, " \t\r\n")
	if !strings.HasPrefix(data, "{") || !utf8.ValidString(data) {
		return nil, false
	}
	r := raw(data)
	return r, json.Valid(r)
}

// text is a string.
func (r raw) text() (string, bool) {
	b, ok := r.bytes()
	return string(b), ok
}

// bytes is text for what is only looked at.
func (r raw) bytes() ([]byte, bool) {
	if len(r) == 0 || r[0] != '"' {
		return nil, false
	}
	if bytes.IndexByte(r, '\\') < 0 {
		return r[1 : len(r)-1], true
	}
	var s string
	err := json.Unmarshal(r, &s)
	return []byte(s), err == nil
}

// is says whether the value is this number, however it is written: 1, 1.0.
func (r raw) is(want float64) bool {
	n, err := strconv.ParseFloat(string(r), 64)
	return err == nil && n == want
}

// integer is an integer from 0 to limit, written without a fraction or an
// exponent.
func (r raw) integer(limit uint64) (int64, bool) {
	n, ok := digits(r)
	if !ok || n > limit {
		return 0, false
	}
	return int64(n), true
}

// members goes through an object. Of equal keys the last one counts, which is up
// to the caller. What is no object has no members.
func (r raw) members() walk { return r.walk('{') }

// elements goes through an array. What is no array has no elements.
func (r raw) elements() walk { return r.walk('[') }

func (r raw) walk(open byte) walk {
	if len(r) == 0 || r[0] != open {
		return walk{}
	}
	return walk{rest: r[1:]}
}

// isArray says whether the value is an array, be it an empty one.
func (r raw) isArray() bool { return len(r) > 0 && r[0] == '[' }

// walk is a way through an array or an object. It takes each byte once, however
// deep the values are.
type walk struct {
	key   []byte
	value raw
	rest  raw
}

// element goes on to the next element of an array.
func (w *walk) element() bool {
	w.value = w.take()
	return len(w.value) > 0
}

// member goes on to the next key and value of an object.
func (w *walk) member() bool {
	key := w.take()
	if len(key) == 0 {
		return false
	}
	w.key = key[1 : len(key)-1]
	if bytes.IndexByte(key, '\\') >= 0 {
		w.key, _ = key.bytes()
	}
	w.value = w.take()
	return true
}

// take cuts the next value off the rest, or nothing at its end. Because the
// message is valid, commas and colons stand where they must and need no look.
func (w *walk) take() raw {
	i := 0
	for i < len(w.rest) && separates(w.rest[i]) {
		i++
	}
	end := i + extent(w.rest[i:])
	taken := w.rest[i:end]
	w.rest = w.rest[end:]
	return taken
}

// separates says whether c stands between values.
func separates(c byte) bool {
	return c == ',' || c == ':' || c == ' ' || c == '\n' || c == '\t' || c == '\r'
}

// extent is the length of the value that b begins with, 0 if b begins with the
// end of what is around it.
func extent(b raw) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			i += quoted(b[i:]) - 1
			if depth == 0 {
				return i + 1
			}
		case c == '[' || c == '{':
			depth++
		case depth == 0 && (c == ']' || c == '}' || separates(c)):
			return i
		case c == ']' || c == '}':
			depth--
			if depth == 0 {
				return i + 1
			}
		}
	}
	return len(b)
}

// quoted is the length of the string that b begins with, with its quotes.
func quoted(b raw) int {
	i := 1
	for i < len(b) && b[i] != '"' {
		if b[i] == '\\' {
			i++
		}
		i++
	}
	return min(i+1, len(b))
}

// appendString adds a JSON string, as encoding/json writes it.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if !plainly(s[i]) {
			out, err := json.Marshal(s)
			if err != nil {
				panic("wire: " + err.Error()) // a string always has a form
			}
			return append(dst, out...)
		}
	}
	dst = append(append(dst, '"'), s...)
	return append(dst, '"')
}

// plainly says whether c stands for itself in what encoding/json writes.
func plainly(c byte) bool {
	return c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
}

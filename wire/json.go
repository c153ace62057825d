package wire

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxMessage is the maximum length of a message, in bytes. Anybody may publish
// on a lock's channel, and every participant decodes what arrives there.
const maxMessage = 1 << 20

// raw is the text of one JSON value, a slice of a message that is valid JSON.
// A missing value is empty.
//
// Messages are not unmarshaled into structs, for two reasons. encoding/json
// fills a field named protocol from a key Protocol, which all other peers
// ignore. And it rejects a whole message because of one malformed part, but a
// malformed extension must not invalidate a record.
type raw []byte

// parseObject returns a message if it is a JSON object, in UTF-8 and of at most
// maxMessage bytes.
func parseObject(data string) (raw, bool) {
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

// asString decodes a JSON string.
func (r raw) asString() (string, bool) {
	b, ok := r.asBytes()
	return string(b), ok
}

// asBytes decodes a JSON string. Without escapes the result is a part of r, so
// that a comparison costs no copy.
func (r raw) asBytes() ([]byte, bool) {
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

// equals reports whether the value is the number want in any notation, such as
// 1 or 1.0.
func (r raw) equals(want float64) bool {
	n, err := strconv.ParseFloat(string(r), 64)
	return err == nil && n == want
}

// asInteger parses an integer from 0 to limit, without fraction and exponent.
func (r raw) asInteger(limit uint64) (int64, bool) {
	n, ok := digits(r)
	if !ok || n > limit {
		return 0, false
	}
	return int64(n), true
}

// members iterates over an object; any other value has no members. It yields
// duplicate keys, too. The caller must let the last one win, as other JSON
// parsers do.
func (r raw) members() iterator { return r.iterate('{') }

// elements iterates over an array; any other value has no elements.
func (r raw) elements() iterator { return r.iterate('[') }

// iterate iterates over a value that starts with open, and over nothing otherwise.
func (r raw) iterate(open byte) iterator {
	if len(r) == 0 || r[0] != open {
		return iterator{}
	}
	return iterator{rest: r[1:]}
}

// isArray reports whether the value is an array, possibly an empty one.
func (r raw) isArray() bool { return len(r) > 0 && r[0] == '[' }

// iterator iterates over an array or an object. It scans each byte once at each
// level that is iterated over, so deeply nested values cost linear time.
type iterator struct {
	key   []byte
	value raw
	rest  raw
}

// element advances to the next element of an array. It returns false at the end.
func (it *iterator) element() bool {
	it.value = it.next()
	return len(it.value) > 0
}

// member advances to the next key and value of an object. It returns false at
// the end.
func (it *iterator) member() bool {
	key := it.next()
	if len(key) == 0 {
		return false
	}
	it.key = key[1 : len(key)-1]
	if bytes.IndexByte(key, '\\') >= 0 {
		it.key, _ = key.asBytes()
	}
	it.value = it.next()
	return true
}

// next removes the next value from the rest and returns it. At the end it
// returns an empty value. It skips separators without checking them, because the
// message is known to be valid JSON.
func (it *iterator) next() raw {
	i := 0
	for i < len(it.rest) && isSeparator(it.rest[i]) {
		i++
	}
	end := i + valueLen(it.rest[i:])
	value := it.rest[i:end]
	it.rest = it.rest[end:]
	return value
}

// isSeparator reports whether c is a separator or white space between values.
func isSeparator(c byte) bool {
	return c == ',' || c == ':' || c == ' ' || c == '\n' || c == '\t' || c == '\r'
}

// valueLen returns the length of the value at the start of b, and 0 if b starts
// with the closing bracket of the enclosing value.
func valueLen(b raw) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			i += stringLen(b[i:]) - 1
			if depth == 0 {
				return i + 1
			}
		case c == '[' || c == '{':
			depth++
		case depth == 0 && (c == ']' || c == '}' || isSeparator(c)):
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

// stringLen returns the length of the string at the start of b, with its quotes.
func stringLen(b raw) int {
	i := 1
	for i < len(b) && b[i] != '"' {
		if b[i] == '\\' {
			i++
		}
		i++
	}
	return min(i+1, len(b))
}

// appendString appends s as a JSON string, exactly as encoding/json encodes it.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if !writtenAsIs(s[i]) {
			out, err := json.Marshal(s)
			if err != nil {
				panic("wire: " + err.Error()) // cannot happen: every string can be encoded
			}
			return append(dst, out...)
		}
	}
	dst = append(append(dst, '"'), s...)
	return append(dst, '"')
}

// writtenAsIs reports whether encoding/json writes c without an escape.
func writtenAsIs(c byte) bool {
	return c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
}

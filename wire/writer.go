package wire

import (
	"strconv"
	"strings"
)

// AppendCommand appends a command to dst, as an array of bulk strings. The first
// argument is the command's name and must not be missing.
func AppendCommand(dst []byte, args ...string) []byte {
	dst = appendHeader(dst, '*', len(args))
	for _, arg := range args {
		dst = appendBulk(dst, '$', arg)
	}
	return dst
}

// AppendValue appends the RESP3 encoding of a value to dst. Every value that a
// [Reader] can return is read back unchanged. Other values are encoded as the
// closest valid one:
//
//   - A simple string or an error that does not fit on one line becomes a bulk
//     string or a bulk error.
//   - A malformed double or big number becomes a bulk string.
//   - An attribute in the place of a value becomes a map.
//   - The last key of a map is dropped if it has no value.
//   - An unknown kind becomes null.
func AppendValue(dst []byte, v Value) []byte {
	if v.Attr != nil && len(v.Attr.Elems) > 1 {
		dst = appendPairs(dst, '|', v.Attr.Elems)
	}
	switch v.Kind {
	case SimpleString:
		return appendLineOrBulk(dst, '+', '$', v.Str, fitsOnOneLine(v.Str))
	case Error:
		return appendLineOrBulk(dst, '-', '!', v.Str, fitsOnOneLine(v.Str))
	case Double:
		return appendLineOrBulk(dst, ',', '$', v.Str, fitsOnOneLine(v.Str) && isDouble([]byte(v.Str)))
	case BigNumber:
		return appendLineOrBulk(dst, '(', '$', v.Str, fitsOnOneLine(v.Str) && isBigNumber([]byte(v.Str)))
	case BulkString:
		return appendBulk(dst, '$', v.Str)
	case BulkError:
		return appendBulk(dst, '!', v.Str)
	case Verbatim:
		return appendVerbatim(dst, v)
	case Integer:
		return append(strconv.AppendInt(append(dst, ':'), v.Int, 10), "\r\n"...)
	case Boolean:
		if v.Int != 0 {
			return append(dst, "#t\r\n"...)
		}
		return append(dst, "#f\r\n"...)
	case Array:
		return appendElems(dst, '*', v.Elems)
	case Set:
		return appendElems(dst, '~', v.Elems)
	case Push:
		return appendElems(dst, '>', v.Elems)
	case Map, Attribute:
		return appendPairs(dst, '%', v.Elems)
	default:
		return append(dst, "_\r\n"...)
	}
}

// fitsOnOneLine reports whether a Reader with the default limits reads s as one
// line.
func fitsOnOneLine(s string) bool {
	return len(s) <= maxLine && !strings.ContainsAny(s, "\r\n")
}

func appendHeader(dst []byte, t byte, n int) []byte {
	return append(strconv.AppendInt(append(dst, t), int64(n), 10), "\r\n"...)
}

func appendBulk(dst []byte, t byte, s string) []byte {
	dst = append(appendHeader(dst, t, len(s)), s...)
	return append(dst, "\r\n"...)
}

// appendLineOrBulk appends s as a line of the type line if it fits, and as a bulk
// of the type bulk otherwise.
func appendLineOrBulk(dst []byte, line, bulk byte, s string, fits bool) []byte {
	if !fits {
		return appendBulk(dst, bulk, s)
	}
	dst = append(append(dst, line), s...)
	return append(dst, "\r\n"...)
}

func appendVerbatim(dst []byte, v Value) []byte {
	format := v.Format
	if format == ([3]byte{}) {
		format = [3]byte{'t', 'x', 't'}
	}
	dst = appendHeader(dst, '=', len(format)+1+len(v.Str))
	dst = append(append(append(dst, format[:]...), ':'), v.Str...)
	return append(dst, "\r\n"...)
}

func appendElems(dst []byte, t byte, elems []Value) []byte {
	return appendAll(appendHeader(dst, t, len(elems)), elems)
}

func appendPairs(dst []byte, t byte, elems []Value) []byte {
	pairs := len(elems) / 2
	return appendAll(appendHeader(dst, t, pairs), elems[:2*pairs])
}

func appendAll(dst []byte, elems []Value) []byte {
	for _, v := range elems {
		dst = AppendValue(dst, v)
	}
	return dst
}

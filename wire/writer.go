package wire

import (
	"strconv"
	"strings"
)

// AppendCommand adds a command to dst: an array of bulk strings. It must have
// at least one argument, its name.
func AppendCommand(dst []byte, args ...string) []byte {
	dst = appendHeader(dst, '*', len(args))
	for _, arg := range args {
		dst = appendBulk(dst, '$', arg)
	}
	return dst
}

// AppendValue adds a value to dst as RESP3 writes it. A [Reader] reads from it
// what it was given, with these exceptions for what no Reader returns: a simple
// string or an error that does not fit on one line, and a number that is none,
// travel as the bulk kind of their text; an attribute in a value's place, as a
// map; a map's last key without a value, not at all; an unknown kind, as null.
func AppendValue(dst []byte, v Value) []byte {
	if v.Attr != nil && len(v.Attr.Elems) > 1 {
		dst = appendPairs(dst, '|', v.Attr.Elems)
	}
	switch v.Kind {
	case SimpleString:
		return appendText(dst, '+', '$', v.Str, onOneLine(v.Str))
	case Error:
		return appendText(dst, '-', '!', v.Str, onOneLine(v.Str))
	case Double:
		return appendText(dst, ',', '$', v.Str, onOneLine(v.Str) && isDouble([]byte(v.Str)))
	case BigNumber:
		return appendText(dst, '(', '$', v.Str, onOneLine(v.Str) && isBigNumber([]byte(v.Str)))
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

// onOneLine says whether a Reader takes s for one line.
func onOneLine(s string) bool {
	return len(s) <= maxLine && !strings.ContainsAny(s, "\r\n")
}

func appendHeader(dst []byte, t byte, n int) []byte {
	return append(strconv.AppendInt(append(dst, t), int64(n), 10), "\r\n"...)
}

func appendBulk(dst []byte, t byte, s string) []byte {
	dst = append(appendHeader(dst, t, len(s)), s...)
	return append(dst, "\r\n"...)
}

// appendText writes s as a line if it can be one, and in bulk if not.
func appendText(dst []byte, line, bulk byte, s string, fits bool) []byte {
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

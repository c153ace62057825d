package wire

import (
	"bytes"
	"math"
)

// Numbers are parsed strictly. A server writes them in one form, so any other
// form means that the reader has lost its place in the stream. Guessing would be
// dangerous: with a wrong length, payload would be read as frames.

// digits parses decimal digits without sign and without leading zeros. A number
// of more than 64 bits becomes the largest one, which exceeds every limit.
func digits(b []byte) (n uint64, ok bool) {
	if len(b) == 0 || len(b) > 1 && b[0] == '0' {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		d := uint64(c - '0')
		if n > (math.MaxUint64-d)/10 {
			n = math.MaxUint64
			continue
		}
		n = n*10 + d
	}
	return n, true
}

// cutSign removes an optional sign from a number.
func cutSign(b []byte) (rest []byte, negative bool) {
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		return b[1:], b[0] == '-'
	}
	return b, false
}

// integer parses an optional sign and digits that fit in an int64.
func integer(b []byte) (int64, bool) {
	rest, negative := cutSign(b)
	n, ok := digits(rest)
	switch {
	case !ok:
		return 0, false
	case negative && n <= 1<<63:
		return -int64(n), true
	default:
		return int64(n), !negative && n <= math.MaxInt64
	}
}

// isBigNumber reports whether b is an optional sign and any number of digits.
func isBigNumber(b []byte) bool {
	rest, _ := cutSign(b)
	_, ok := digits(rest)
	return ok
}

// isDouble reports whether b is inf, -inf, nan, or a decimal number with an
// optional sign, fraction and exponent.
func isDouble(b []byte) bool {
	switch string(b) {
	case "inf", "-inf", "nan":
		return true
	}
	b, _ = cutSign(b)
	if i := bytes.IndexAny(b, "eE"); i >= 0 {
		exponent, _ := cutSign(b[i+1:])
		if !allDigits(exponent) {
			return false
		}
		b = b[:i]
	}
	whole, fraction, pointed := bytes.Cut(b, []byte{'.'})
	if _, ok := digits(whole); !ok {
		return false
	}
	return !pointed || allDigits(fraction)
}

// allDigits reports whether b consists of digits. Unlike digits it allows
// leading zeros, as in 1e-05 and 1.05.
func allDigits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}

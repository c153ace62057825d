package wire

import (
	"bytes"
	"math"
)

// Numbers are read strictly: a server writes them in one form, so another form
// means that the stream has been misunderstood, and a length that is guessed
// wrong turns payload into commands.

// digits reads decimal digits without sign and without leading zeros. What
// exceeds 64 bits becomes the largest number, which every limit refuses.
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

// unsigned takes an optional sign off a number.
func unsigned(b []byte) (rest []byte, negative bool) {
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		return b[1:], b[0] == '-'
	}
	return b, false
}

// integer reads an optional sign and digits that fit in 64 bits.
func integer(b []byte) (int64, bool) {
	rest, negative := unsigned(b)
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

// isBigNumber says whether b is an optional sign and digits, however many.
func isBigNumber(b []byte) bool {
	rest, _ := unsigned(b)
	_, ok := digits(rest)
	return ok
}

// isDouble says whether b is inf, -inf, nan, or a decimal number with an
// optional sign, fraction and exponent.
func isDouble(b []byte) bool {
	switch string(b) {
	case "inf", "-inf", "nan":
		return true
	}
	b, _ = unsigned(b)
	if i := bytes.IndexAny(b, "eE"); i >= 0 {
		exponent, _ := unsigned(b[i+1:])
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

// allDigits allows leading zeros: 1e-05 and 1.05 have them.
func allDigits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}

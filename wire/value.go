package wire

import "strconv"

// Kind is the RESP3 type of a [Value].
type Kind uint8

const (
	// Null is the absence of a value. RESP2 encodes it as a string or an array
	// of length -1. The zero Value is null.
	Null Kind = iota
	// SimpleString is a string without line breaks, in Str.
	SimpleString
	// Error is an error without line breaks, in Str.
	Error
	// BulkError is an error that may hold any byte, in Str.
	BulkError
	// Integer is a signed 64-bit number, in Int.
	Integer
	// BulkString is a string that may hold any byte, in Str.
	BulkString
	// Verbatim is a string with a format, in Str and Format.
	Verbatim
	// Boolean is true when Int is 1 and false when it is 0.
	Boolean
	// Double is a floating-point number as the server wrote it, in Str,
	// including inf, -inf and nan. It is kept as text, because a float64 cannot
	// represent every number that a server may write.
	Double
	// BigNumber is an integer of any size as the server wrote it, in Str.
	BigNumber
	// Array is a sequence of values, in Elems.
	Array
	// Set is a sequence of values without a meaningful order, in Elems.
	Set
	// Map is a sequence of alternating keys and values, in Elems.
	Map
	// Push is a message that is not a reply to a command, in Elems.
	Push
	// Attribute is the kind of the Value in Attr: alternating keys and values,
	// in Elems. A [Reader] never returns one as a value or as an element.
	Attribute
)

// valueSize is the size of a Value in memory, without what it points to.
const valueSize = 64

// Value is one RESP3 value. Which fields are used depends on its kind. In a Value
// that a [Reader] returns, the other fields are zero.
type Value struct {
	// Kind is the type of the value.
	Kind Kind
	// Format is the format of a verbatim string: three bytes, usually txt or
	// mkd.
	Format [3]byte
	// Int is an integer, or 1 or 0 for a boolean.
	Int int64
	// Str is a string, the text of an error, or the digits of a number.
	Str string
	// Elems are the elements of an aggregate, nil when it is empty.
	Elems []Value
	// Attr is the attribute that preceded the value, nil without one.
	Attr *Value
}

// IsError reports whether the value is an error of either kind.
func (v Value) IsError() bool { return v.Kind == Error || v.Kind == BulkError }

// Text returns the value as text: strings, errors and numbers as they are sent,
// booleans as true and false. For null and aggregates it is empty.
func (v Value) Text() string {
	switch v.Kind {
	case Integer:
		return strconv.FormatInt(v.Int, 10)
	case Boolean:
		return strconv.FormatBool(v.Int != 0)
	default:
		return v.Str
	}
}

// Lookup returns the value of a key in a map, in an attribute, or in an array of
// alternating keys and values, which RESP2 sends instead of a map. The first of
// several equal keys wins. Without the key the value is null and ok is false.
func (v Value) Lookup(key string) (value Value, ok bool) {
	if v.Kind != Map && v.Kind != Attribute && v.Kind != Array {
		return Value{}, false
	}
	for i := 0; i+1 < len(v.Elems); i += 2 {
		if k := v.Elems[i]; k.hasText() && k.Text() == key {
			return v.Elems[i+1], true
		}
	}
	return Value{}, false
}

// hasText reports whether the value has a text, possibly an empty one.
func (v Value) hasText() bool {
	switch v.Kind {
	case Null, Array, Set, Map, Push, Attribute:
		return false
	default:
		return true
	}
}

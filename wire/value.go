package wire

import "strconv"

// Kind is what a [Value] is.
type Kind uint8

const (
	// Null is the absence of a value, which RESP2 writes as a string or an
	// array of length -1. The zero Value is null.
	Null Kind = iota
	// SimpleString is a text without line breaks, in Str.
	SimpleString
	// Error is an error of one line, in Str.
	Error
	// BulkError is an error that may hold any byte, in Str.
	BulkError
	// Integer is a signed number, in Int.
	Integer
	// BulkString is a string that may hold any byte, in Str.
	BulkString
	// Verbatim is a string with a format, in Str and Format.
	Verbatim
	// Boolean is true when Int is 1 and false when it is 0.
	Boolean
	// Double is a floating-point number as the server wrote it, in Str; inf,
	// -inf and nan are among them. As text it keeps every digit of a number
	// that a float64 cannot hold.
	Double
	// BigNumber is an integer of any size as the server wrote it, in Str.
	BigNumber
	// Array is a sequence of values, in Elems.
	Array
	// Set is a sequence of values whose order means nothing, in Elems.
	Set
	// Map is a sequence of keys and values by turns, in Elems.
	Map
	// Push is what the server says without being asked, in Elems.
	Push
	// Attribute is what stands in Attr: keys and values by turns, in Elems. A
	// [Reader] never returns one as a value or as an element.
	Attribute
)

// valueSize is what a Value takes in memory, without what it refers to.
const valueSize = 64

// Value is one RESP3 value. Which fields count depends on its kind; the others
// are zero in what a [Reader] returns.
type Value struct {
	// Kind is what the value is.
	Kind Kind
	// Format is the format of a verbatim string: txt, mkd or another three
	// bytes.
	Format [3]byte
	// Int is an integer, or 1 or 0 for a boolean.
	Int int64
	// Str is a string, the text of an error, or the digits of a number.
	Str string
	// Elems are the elements of an aggregate, nil when it is empty.
	Elems []Value
	// Attr is the attribute that stood before the value, nil when none did.
	Attr *Value
}

// IsError says whether the value is an error of either kind.
func (v Value) IsError() bool { return v.Kind == Error || v.Kind == BulkError }

// Text is the value as text: strings, errors and numbers as they travel,
// booleans as true and false. Null and aggregates have none.
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

// Lookup finds the value of a key in a map or an attribute, or in an array of
// keys and values by turns, which is what RESP2 makes of a map. The first of
// several equal keys counts. Without the key the value is null.
func (v Value) Lookup(key string) (Value, bool) {
	if v.Kind != Map && v.Kind != Attribute && v.Kind != Array {
		return Value{}, false
	}
	for i := 0; i+1 < len(v.Elems); i += 2 {
		if k := v.Elems[i]; k.scalar() && k.Text() == key {
			return v.Elems[i+1], true
		}
	}
	return Value{}, false
}

// scalar says whether the value has a text, be it an empty one.
func (v Value) scalar() bool {
	switch v.Kind {
	case Null, Array, Set, Map, Push, Attribute:
		return false
	default:
		return true
	}
}

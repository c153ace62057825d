package wire

import "fmt"

// Limits bound what a [Reader] accepts. A frame that exceeds a limit is a
// [ProtocolError]. The limits are checked before memory is allocated, and what a
// header announces is allocated only as its bytes arrive: a header of 16 bytes
// cannot claim a gigabyte. A limit of 0 or less means the default.
type Limits struct {
	// Bulk is the maximum length of a string, in bytes. The default is 64 MiB.
	// For headers and for strings that end at a line break, which announce no
	// length, the maximum is 64 KiB if that is less.
	Bulk int
	// Elements is the maximum number of values in one aggregate. The keys and
	// the values of a map count separately. The default is 1,048,576.
	Elements int
	// Depth is how deep aggregates may be nested. The default is 32.
	Depth int
	// Frame is the maximum size of one frame in memory, in bytes: the length of
	// all its strings, and 64 for each value. The default is 128 MiB.
	Frame int
}

// maxLine is the maximum length of a line. A line announces no length, so that
// without a limit a stream without line breaks would fill the memory.
const maxLine = 64 << 10

func (l Limits) orDefault() Limits {
	pick := func(limit, fallback int) int {
		if limit > 0 {
			return limit
		}
		return fallback
	}
	return Limits{
		Bulk:     pick(l.Bulk, 64<<20),
		Elements: pick(l.Elements, 1<<20),
		Depth:    pick(l.Depth, 32),
		Frame:    pick(l.Frame, 128<<20),
	}
}

// ProtocolError is the error of a stream that violates RESP3 or exceeds one of
// the [Limits].
type ProtocolError struct {
	// Offset is the number of bytes in the stream before the header of the
	// value that could not be read.
	Offset int64
	// Reason says what is wrong there.
	Reason string
}

// Error returns the reason and the offset.
func (e *ProtocolError) Error() string {
	return fmt.Sprintf("wire: broken stream at byte %d: %s", e.Offset, e.Reason)
}

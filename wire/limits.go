package wire

import "fmt"

// Limits bound what a [Reader] takes in before it gives up on the stream. They
// hold before memory is taken: what a header announces costs nothing until the
// bytes arrive. A limit of 0 stands for its default.
type Limits struct {
	// Bulk is the longest string, in bytes. The default is 64 MiB. A string
	// that is no bulk, and any header, is held to 64 KiB besides.
	Bulk int
	// Elements is how many values one aggregate may have; the keys and the
	// values of a map count singly. The default is 1,048,576.
	Elements int
	// Depth is how many aggregates may stand inside one another. The default
	// is 32.
	Depth int
	// Frame is how large one frame may become, in bytes: the length of all
	// its strings and 64 for each value. The default is 128 MiB.
	Frame int
}

// maxLine bounds what ends at a line break, which announces no length.
const maxLine = 64 << 10

func (l Limits) orDefault() Limits {
	pick := func(limit, normal int) int {
		if limit > 0 {
			return limit
		}
		return normal
	}
	return Limits{
		Bulk:     pick(l.Bulk, 64<<20),
		Elements: pick(l.Elements, 1<<20),
		Depth:    pick(l.Depth, 32),
		Frame:    pick(l.Frame, 128<<20),
	}
}

// ProtocolError is a stream that breaks the rules of RESP3, or that exceeds a
// limit.
type ProtocolError struct {
	// Offset is where in the stream the header stands that could not be read,
	// or the header of the string that could not be: the number of bytes
	// before it.
	Offset int64
	// Reason says what is wrong there.
	Reason string
}

// Error says what is wrong with the stream, and where.
func (e *ProtocolError) Error() string {
	return fmt.Sprintf("wire: broken stream at byte %d: %s", e.Offset, e.Reason)
}

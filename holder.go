package tether

import (
	"fmt"
	"strings"
	"time"

	"github.com/tetherlock/tether/protocol"
)

// Holder is a participant of a lock: whoever holds it, or is about to.
type Holder struct {
	// ID is the holder id, 32 hexadecimal digits; legacy-<n> for a peer that
	// does not tell one.
	ID string
	// Mode is "exclusive", "pending" or "shared".
	Mode string
	// Elected is a pending writer that goes next.
	Elected bool
	// Legacy is a peer that answers without a record, portalocker 3.2 or
	// older. It counts as exclusive.
	Legacy bool
	// Held is how long it has held the lock, 0 if it does not say.
	Held time.Duration
	// Addr is the address of its connection, if that could be found out.
	Addr string
}

// String describes the holder in a few words.
func (h Holder) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s", h.ID, h.Mode)
	if h.Held > 0 {
		fmt.Fprintf(&b, " for %v", h.Held)
	}
	b.WriteString(")")
	if h.Addr != "" {
		b.WriteString(" at " + h.Addr)
	}
	return b.String()
}

func holders(records []protocol.Record) []Holder {
	var list []Holder
	for _, r := range records {
		list = append(list, Holder{
			ID: r.ID, Mode: r.Mode.String(), Elected: r.Election == protocol.Elected, Legacy: r.Legacy,
			Held: time.Duration(r.Held) * time.Millisecond,
		})
	}
	return list
}

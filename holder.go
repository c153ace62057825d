package tether

import (
	"fmt"
	"strings"
	"time"

	"github.com/tetherlock/tether/actor"
	"github.com/tetherlock/tether/protocol"
)

// Holder is a participant of a lock: it holds the lock, or is about to.
type Holder struct {
	// ID is the holder id, 32 hexadecimal digits; legacy-<n> for a peer that
	// does not tell one, and empty for such a one that does not answer. Of a
	// [Client.Lease] it is the value of the key: another program's may be
	// anything, and is quoted unless it is printable.
	ID string
	// Mode is "exclusive", "pending" or "shared", and empty for one that does
	// not answer.
	Mode string
	// Elected is a pending writer that goes next.
	Elected bool
	// Legacy is a peer that answers without a record, portalocker 3.2 or
	// older. It counts as exclusive.
	Legacy bool
	// Label is what it calls itself, see [WithLabel].
	Label string
	// Held is how long it has held the lock, 0 if it does not say.
	Held time.Duration
	// TTL is the time until the key of a [Client.Lease] expires unless it is
	// renewed, 0 if it never does, and for presence locks.
	TTL time.Duration
	// Addr is the address of its connection, if that could be found out.
	Addr string
}

// String describes the holder in a few words.
func (h Holder) String() string {
	var b strings.Builder
	b.WriteString(h.name())
	if h.Label != "" {
		fmt.Fprintf(&b, " %q", h.Label)
	}
	switch {
	case h.Mode != "" && h.Held > 0:
		fmt.Fprintf(&b, " (%s for %v)", h.Mode, h.Held)
	case h.Mode != "" && h.TTL > 0:
		fmt.Fprintf(&b, " (%s, expires in %v)", h.Mode, h.TTL)
	case h.Mode != "":
		fmt.Fprintf(&b, " (%s)", h.Mode)
	}
	if h.Addr != "" {
		b.WriteString(" at " + h.Addr)
	}
	return b.String()
}

func (h Holder) name() string {
	if h.ID == "" && h.Legacy {
		return "a legacy participant"
	}
	return h.ID
}

func holders(records []protocol.Record) []Holder {
	var list []Holder
	for _, r := range records {
		list = append(list, Holder{
			ID: r.ID, Mode: r.Mode.String(), Elected: r.Election == protocol.Elected, Legacy: r.Legacy,
			Label: r.Label, Held: time.Duration(r.Held) * time.Millisecond, TTL: time.Duration(r.TTL) * time.Millisecond,
		})
	}
	return list
}

// connHolder is what is known of a participant by its connection alone.
func connHolder(c actor.Connection) Holder { return Holder{ID: c.ID, Legacy: c.Legacy, Addr: c.Addr} }

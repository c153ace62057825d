package tethertest

import (
	"time"

	"github.com/tetherlock/tether/wire"
)

// ttl rounds to seconds, as Redis does. miniredis rounds down: a key that was just
// set with EX 30 would have 29 seconds left.
func ttl(e *engine, c *client, args []string) (wire.Value, bool) {
	if len(args) != 1 {
		return wrongNumber("ttl"), true
	}
	db := e.keys.DB(c.db)
	switch left := db.TTL(args[0]); {
	case !db.Exists(args[0]):
		return number(-2), true
	case left == 0:
		return number(-1), true
	default:
		return number(int(left.Round(time.Second).Seconds())), true
	}
}

// expire advances miniredis's clock, which expires keys.
func (e *engine) expire() {
	now := time.Now()
	if age := now.Sub(e.lastExpiry); age > 0 {
		e.keys.FastForward(age)
		e.lastExpiry = now
	}
}

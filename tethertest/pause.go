package tethertest

import (
	"math"
	"time"

	"github.com/tetherlock/tether/wire"
)

// pause is the state of CLIENT PAUSE. It is zero when there is no pause.
type pause struct {
	until     time.Time
	all       bool // the mode is ALL, not WRITE
	ended     <-chan time.Time
	postponed []*client // clients with postponed commands, in order of the first one
}

const (
	msgPauseTime = "ERR timeout is not an integer or out of range"
	msgPauseSign = "ERR timeout is negative"
	msgPauseMode = "ERR CLIENT PAUSE mode must be WRITE or ALL"
)

// longestPause is the longest duration in milliseconds, about 292 years.
const longestPause = math.MaxInt64 / time.Millisecond

// clientPause starts a pause or extends the current one to the later end. The
// stricter mode wins: during a pause of mode ALL, another CLIENT PAUSE is
// postponed itself, so it cannot relax the mode.
func clientPause(e *engine, _ *client, args []string) (wire.Value, bool) {
	millis, valid := integer(args[0])
	mode := "ALL"
	if len(args) > 1 {
		mode = upper(args[1])
	}
	switch {
	case len(args) > 2:
		return fail("ERR unknown subcommand or wrong number of arguments for 'PAUSE'. Try CLIENT HELP.")
	case mode != "ALL" && mode != "WRITE":
		return fail(msgPauseMode)
	case !valid:
		return fail(msgPauseTime)
	case millis < 0:
		return fail(msgPauseSign)
	}
	now := time.Now()
	e.pause.all = mode == "ALL"
	if until := now.Add(min(time.Duration(millis), longestPause) * time.Millisecond); until.After(e.pause.until) {
		e.pause.until = until
	}
	e.pause.ended = time.After(e.pause.until.Sub(now))
	return ok()
}

// clientUnpause ends a pause. Postponed commands run after its reply.
func clientUnpause(e *engine, _ *client, _ []string) (wire.Value, bool) {
	e.pause.until = time.Time{}
	return ok()
}

// resume runs the postponed commands if the pause is over: client by client, in
// the order in which they were postponed, and all commands of each. If one of
// them is a CLIENT PAUSE, the rest is postponed again.
func (e *engine) resume() {
	if e.pause.ended == nil || time.Now().Before(e.pause.until) {
		return
	}
	postponed := e.pause.postponed
	e.pause = pause{}
	for _, c := range postponed {
		commands := c.postponed
		c.postponed = nil
		for _, args := range commands {
			e.handle(command{c, args})
		}
	}
}

// mustPostpone reports whether a pause postpones a command.
func (e *engine) mustPostpone(c *client, name string) bool {
	if !time.Now().Before(e.pause.until) {
		return false
	}
	return e.pause.all || e.writes(c, name)
}

// postpone keeps a command until the pause ends. All later commands of the same
// client are postponed, too.
func (e *engine) postpone(c *client, args []string) {
	if len(c.postponed) == 0 {
		e.pause.postponed = append(e.pause.postponed, c)
	}
	c.postponed = append(c.postponed, args)
}

// unflagged are the commands of miniredis that do not write, although they are
// not flagged as read-only.
var unflagged = setOf("CLUSTER COMMAND DISCARD ECHO INFO MEMORY MULTI OBJECT SCRIPT TIME UNWATCH WATCH XINFO")

// writes reports whether CLIENT PAUSE WRITE postpones a command. It does if the
// command changes keys, or has to be sent to replicas.
func (e *engine) writes(c *client, name string) bool {
	_, own := commands[name]
	switch {
	case name == "EXEC":
		return c.tx != nil && c.tx.writes
	case name == "PUBLISH" || name == "PFCOUNT":
		return true
	}
	return !own && !unflagged[name] && !e.scripts.IsReadOnlyCommand(name)
}

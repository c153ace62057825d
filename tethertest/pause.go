package tethertest

import (
	"math"
	"time"

	"github.com/tetherlock/tether/wire"
)

// pause is what CLIENT PAUSE has ordered. Without one it is zero.
type pause struct {
	until time.Time
	all   bool // and not only what writes
	ended <-chan time.Time
	held  []*client // whose commands wait, in the order in which they came
}

const (
	msgPauseTime = "ERR timeout is not an integer or out of range"
	msgPauseSign = "ERR timeout is negative"
	msgPauseMode = "ERR CLIENT PAUSE mode must be WRITE or ALL"
)

// longestPause is about three hundred years.
const longestPause = math.MaxInt64 / time.Millisecond

// clientPause begins a pause, or adds to the one that there is: the later end
// and the stricter mode count. While everything is held, so is the next of these.
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

// clientUnpause ends a pause. Who was held goes on behind the reply.
func clientUnpause(e *engine, _ *client, _ []string) (wire.Value, bool) {
	e.pause.until = time.Time{}
	return ok()
}

// resume goes on with those who were held, if the pause is over: in the order in
// which they came, and each with all of its commands, until one of these is a
// CLIENT PAUSE.
func (e *engine) resume() {
	if e.pause.ended == nil || time.Now().Before(e.pause.until) {
		return
	}
	held := e.pause.held
	e.pause = pause{}
	for _, c := range held {
		commands := c.held
		c.held = nil
		for _, args := range commands {
			e.handle(command{c, args})
		}
	}
}

// holds says whether a command has to wait.
func (e *engine) holds(c *client, name string) bool {
	if !time.Now().Before(e.pause.until) {
		return false
	}
	return e.pause.all || e.writes(c, name)
}

// hold keeps a command until the pause ends, and with it all that its client
// says behind it.
func (e *engine) hold(c *client, args []string) {
	if len(c.held) == 0 {
		e.pause.held = append(e.pause.held, c)
	}
	c.held = append(c.held, args)
}

// silent are commands of miniredis that are not marked as reading and write
// nothing.
var silent = setOf("CLUSTER COMMAND DISCARD ECHO INFO MEMORY MULTI OBJECT SCRIPT TIME UNWATCH WATCH XINFO")

// writes says whether a command is one that CLIENT PAUSE WRITE holds: it changes
// keys, or a replica may have to be told.
func (e *engine) writes(c *client, name string) bool {
	_, own := commands[name]
	switch {
	case name == "EXEC":
		return c.tx != nil && c.tx.writes
	case name == "PUBLISH" || name == "PFCOUNT":
		return true
	}
	return !own && !silent[name] && !e.scripts.IsReadOnlyCommand(name)
}

package actor

import (
	"fmt"

	"github.com/tetherlock/tether/protocol"
)

// Input is something that happened to a lock: a caller's wish, a frame from
// the server, a result of an effect, or the passing of time. Every input is
// plain data, so a run can be written down and replayed.
type Input interface{ input() }

// Call identifies one caller's request. The machine only compares calls and
// hands them back in effects; the host keeps the way to the caller in them.
type Call any

// Inputs from callers.
type (
	// Acquire asks for the lock. Try refuses to wait for a holder.
	Acquire struct {
		Call Call
		Try  bool
	}
	// Cancel says that the context of an acquire has ended.
	Cancel struct {
		Call  Call
		Cause error
	}
	// Reclaimed says that the host has taken a grant back that nobody had
	// received; it answers the effect Reclaim.
	Reclaimed struct {
		Call  Call
		Cause error
	}
	// Release gives back the hold that was granted to a call. Any other hold
	// is none of its business.
	Release struct{ Hold Call }
	// Abandon says that a release is not waited for any longer.
	Abandon struct {
		Hold  Call
		Cause error
	}
	// Close ends the lock and everything that it does.
	Close struct{}
	// Orphan says that no handle is left: the lock ends once it is idle.
	Orphan struct{}
)

// Inputs from the socket and the clock.
type (
	// Dialed says that the socket which Dial asked for is there. Fresh means
	// that nothing has been written to it yet.
	Dialed struct {
		Dial  int
		ID    string
		Fresh bool
	}
	// DialFailed says that there will be no socket.
	DialFailed struct {
		Dial int
		Err  error
	}
	// Disconnected says that the socket has ended.
	Disconnected struct{ Err error }
	// Subscribed is the server's push behind a SUBSCRIBE.
	Subscribed struct{ Channel string }
	// Unsubscribed is the server's push behind an UNSUBSCRIBE.
	Unsubscribed struct{ Channel string }
	// Pinged is a ping on the lock's channel.
	Pinged struct{ Response string }
	// Answered is a participant's answer to a ping of ours.
	Answered struct {
		Response string
		Record   protocol.Record
	}
	// Counted is the reply to Count.
	Counted struct{ N int }
	// Probed is the reply to Probe: how many participants got the ping.
	Probed struct{ N int }
	// Greeted is the reply to Hello.
	Greeted struct{ Role, Mode string }
	// Done is the reply to a command that has nothing to tell.
	Done struct{}
	// Failed is an error reply, or the error to a subscribe.
	Failed struct {
		Command Op
		Message string
	}
	// Rotated says that the credentials of the socket have changed.
	Rotated struct{}
	// MasterMoved says that a fresh dial reaches another master than the
	// socket does.
	MasterMoved struct{ Err error }
	// Tick says that the machine's deadline has passed.
	Tick struct{}
)

func (Acquire) input()      {}
func (Cancel) input()       {}
func (Reclaimed) input()    {}
func (Release) input()      {}
func (Abandon) input()      {}
func (Close) input()        {}
func (Orphan) input()       {}
func (Dialed) input()       {}
func (DialFailed) input()   {}
func (Disconnected) input() {}
func (Subscribed) input()   {}
func (Unsubscribed) input() {}
func (Pinged) input()       {}
func (Answered) input()     {}
func (Counted) input()      {}
func (Probed) input()       {}
func (Greeted) input()      {}
func (Done) input()         {}
func (Failed) input()       {}
func (Rotated) input()      {}
func (MasterMoved) input()  {}
func (Tick) input()         {}

// Op is the kind of a [Command].
type Op uint8

// The commands of a lock. Subscribe and Unsubscribe answer with a push, all
// others with a reply.
const (
	// Login is HELLO 3 with AUTH and SETNAME, the first command of a socket.
	Login Op = iota + 1
	// Hello is HELLO 3: it asks for role and mode, and sets the name if there
	// is one.
	Hello
	// Auth is AUTH with the socket's newest credentials.
	Auth
	// Subscribe is SUBSCRIBE of one channel.
	Subscribe
	// Unsubscribe is UNSUBSCRIBE of one channel.
	Unsubscribe
	// Count is PUBSUB NUMSUB of the lock's channel.
	Count
	// Probe counts and pings the lock's channel in one script.
	Probe
	// LoadProbe is Probe with the script's text, for a server that has
	// forgotten it.
	LoadProbe
	// Answer publishes the own record on a response channel.
	Answer
)

var opNames = [...]string{
	Login: "HELLO", Hello: "HELLO", Auth: "AUTH", Subscribe: "SUBSCRIBE", Unsubscribe: "UNSUBSCRIBE",
	Count: "PUBSUB", Probe: "EVALSHA", LoadProbe: "EVAL", Answer: "PUBLISH",
}

// String returns the name of the Redis command.
func (o Op) String() string {
	if int(o) < len(opNames) && opNames[o] != "" {
		return opNames[o]
	}
	return fmt.Sprintf("Op(%d)", uint8(o))
}

// pushed says whether success shows as a push, outside the replies.
func (o Op) pushed() bool { return o == Subscribe || o == Unsubscribe }

// Command is one Redis command that the lock wants to be written.
type Command struct {
	Op Op
	// Channel is what Subscribe and Unsubscribe are about, and where a Probe
	// or an Answer expects or sends records.
	Channel string
	// Record is what an Answer says.
	Record protocol.Record
	// Naming says what a Login or Hello does with the connection's name.
	Naming Naming
}

// Naming is what a HELLO does with the name of the connection.
type Naming uint8

const (
	// KeepName leaves the name alone.
	KeepName Naming = iota
	// LockName names the connection as a participant of the lock's channel.
	LockName
	// IdleName takes the lock's name off.
	IdleName
)

package actor

import (
	"fmt"
	"time"

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
	// is none of its business. With a loss the hold is ended like a lost one,
	// whose holder did not give it back.
	Release struct {
		Hold Call
		Loss error
	}
	// Abandon says that a release is not waited for any longer.
	Abandon struct {
		Hold  Call
		Cause error
	}
	// Inquire asks the server whether the hold of a call still stands.
	CheckOwned struct{ Hold, Call Call }
	// Close ends the lock and everything that it does.
	Close struct{}
	// Orphan says that no handle is left: the lock ends once it is idle.
	Unreferenced struct{}
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
	Pinged struct{ Ping protocol.Ping }
	// Answered is a participant's answer to a ping of ours, with the queue
	// that it hands on.
	Answered struct {
		Response string
		Record   protocol.Record
		Queue    protocol.Queue
	}
	// Woken is a wake on the lock's own wake channel, or for all readers.
	Woken struct{ Wake protocol.Wake }
	// Counted is the reply to Count and Draw: the subscribers of the lock's
	// channel, and the token if one was drawn.
	Counted struct {
		N     int
		Token int64
	}
	// Looked is the reply to Look: the subscribers of the lock's channel and
	// of the waiters' channel.
	Polled struct{ N, Sleepers int }
	// Probed is the reply to Probe and DrawProbe: how many participants got
	// the ping, and the token if one was drawn.
	Probed struct {
		N     int
		Token int64
	}
	// Listening is the reply to Listen: how many listen on each of the wake
	// channels.
	WaitersCounted struct{ Counts []int }
	// Waked is the reply to Wake: how many received it.
	Waked struct{ N int }
	// Listed is the reply to List.
	Listed struct{ Connections []Connection }
	// Killed is the reply to Kill: how many connections have ended.
	Killed struct{ N int }
	// Greeted is the reply to Hello.
	Greeted struct{ Role, Mode string }
	// Done is the reply to a command that has nothing to tell.
	Done struct{}
	// Failed is an error reply, or the error to a subscribe.
	// Text says that a script was sent with its text.
	Failed struct {
		Command Op
		Text    bool
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

// Inputs of a lease.
type (
	// Ran is the outcome of Run.
	Ran struct {
		Num   int
		Reply LeaseReply
		Err   error
	}
	// Nudged says that somebody has given the key back.
	KeyReleased struct{}
	// Slept says that time has passed which the timers' clock does not know
	// of: the machine was suspended, or the other clock was set forward.
	Slept struct{ For time.Duration }
)

// LeaseReply is what a command on the key of a lease returns.
type LeaseReply struct {
	// OK says that the key is, or was until now, the own one.
	OK bool
	// Token is the fencing token that TakeKey has drawn, 0 for none.
	Token int64
	// Holder is the value of the key if it is somebody else's, and TTL the
	// time until it expires, below zero for never.
	Holder string
	TTL    time.Duration
}

func (Ran) input()         {}
func (KeyReleased) input() {}
func (Slept) input()       {}

// Connection is a connection at the server that may be subscribed to the
// lock's channel.
type Connection struct {
	// Num is the server's number for it.
	Num int64
	// ID is the holder id in its name, empty if it bears no name of the
	// lock's participants.
	ID string
	// Legacy says that it bears the name that all participants of portalocker
	// 3.2 and older have.
	Legacy bool
	// Addr is where it comes from.
	Addr string
}

func (Acquire) input()        {}
func (Cancel) input()         {}
func (Reclaimed) input()      {}
func (Release) input()        {}
func (Abandon) input()        {}
func (CheckOwned) input()     {}
func (Close) input()          {}
func (Unreferenced) input()   {}
func (Dialed) input()         {}
func (DialFailed) input()     {}
func (Disconnected) input()   {}
func (Subscribed) input()     {}
func (Unsubscribed) input()   {}
func (Pinged) input()         {}
func (Answered) input()       {}
func (Woken) input()          {}
func (Counted) input()        {}
func (Polled) input()         {}
func (Probed) input()         {}
func (WaitersCounted) input() {}
func (Waked) input()          {}
func (Listed) input()         {}
func (Killed) input()         {}
func (Greeted) input()        {}
func (Done) input()           {}
func (Failed) input()         {}
func (Rotated) input()        {}
func (MasterMoved) input()    {}
func (Tick) input()           {}

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
	// Select chooses the database of the fencing counter.
	Select
	// Subscribe is SUBSCRIBE of one channel.
	Subscribe
	// Unsubscribe is UNSUBSCRIBE of one channel.
	Unsubscribe
	// Count is PUBSUB NUMSUB of the lock's channel.
	Count
	// Draw counts as Count does and draws a fencing token if the lock is alone
	// on the channel, in one script.
	CountAndDraw
	// Look is PUBSUB NUMSUB of the lock's channel and the waiters' channel.
	Poll
	// Probe counts and pings the lock's channel in one script.
	Probe
	// DrawProbe is Probe, and draws a fencing token.
	ProbeAndDraw
	// Echo pings the lock's channel without a count.
	SelfPing
	// Answer publishes the own record on a response channel.
	Answer
	// Wake wakes the first of a queue that listens, in one script.
	Wake
	// Summon wakes all readers that sleep.
	WakeReaders
	// Listen is PUBSUB NUMSUB of the wake channels of a queue.
	CountWaiters
	// List is CLIENT LIST of all subscribers.
	List
	// Kill is CLIENT KILL of one connection.
	Kill
)

var opNames = [...]string{
	Login: "HELLO", Hello: "HELLO", Auth: "AUTH", Select: "SELECT", Subscribe: "SUBSCRIBE", Unsubscribe: "UNSUBSCRIBE",
	Count: "PUBSUB", CountAndDraw: "EVALSHA", Poll: "PUBSUB", Probe: "EVALSHA", ProbeAndDraw: "EVALSHA", SelfPing: "PUBLISH",
	Answer: "PUBLISH", Wake: "EVALSHA", WakeReaders: "PUBLISH", CountWaiters: "PUBSUB", List: "CLIENT|LIST", Kill: "CLIENT|KILL",
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
	// Channel is what Subscribe and Unsubscribe are about, and where an Answer
	// goes to.
	Channel string
	// Record is what an Answer says.
	Record *protocol.Record
	// Ping is what a Probe, a DrawProbe or an Echo sends.
	Ping *protocol.Ping
	// Queue is whom a Wake wakes, whom a Listen is about, and what an Answer
	// hands on.
	Queue protocol.Queue
	// Num is the connection that Kill ends.
	Num int64
	// Text sends a script with its text, for a server that has forgotten it.
	Text bool
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

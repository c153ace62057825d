package actor

import (
	"fmt"
	"time"

	"github.com/tetherlock/tether/protocol"
)

// Input is something that happened to a lock: a caller's request, a frame from
// the server, the result of an effect, or the passing of time. Every input is
// plain data, so a run can be written down and replayed.
type Input interface{ input() }

// Call identifies one caller's request, and the hold that came of it. The
// machine only compares calls and returns them in effects, so they must be
// comparable. The environment finds the caller by them.
type Call any

// Inputs from callers.
type (
	// Acquire asks for the lock. It is answered by a [Grant] or a [Refuse].
	// With Try it does not wait for a holder.
	Acquire struct {
		Call Call
		Try  bool
	}
	// Cancel says that the context of an acquire has ended.
	Cancel struct {
		Call  Call
		Cause error
	}
	// Reclaimed says that the environment has taken a grant back that nobody
	// had received. It answers [Reclaim].
	Reclaimed struct {
		Call  Call
		Cause error
	}
	// Release gives back the hold that was granted to a call, and nothing if
	// that has ended. It is answered by [End] at once and by [Released] later.
	// With a Loss the hold ends like a lost one, with that as the reason.
	Release struct {
		Hold Call
		Loss error
	}
	// Abandon says that the caller of a release no longer waits for it.
	Abandon struct {
		Hold  Call
		Cause error
	}
	// CheckOwned asks the server whether the hold of a call still stands. It is
	// answered by an [OwnedAnswer].
	CheckOwned struct{ Hold, Call Call }
	// Close ends the lock: its hold is lost, its calls are refused, and [Stop]
	// follows when the channel is left.
	Close struct{}
	// Unreferenced says that no handle is left: the lock ends once it is idle.
	Unreferenced struct{}
)

// Inputs from the socket and the clock.
type (
	// Dialed says that the socket which [Dial] asked for is there. ID is its
	// holder id. Fresh means that nothing has been written to it yet.
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
	// Disconnected says that the socket has ended and is closed.
	Disconnected struct{ Err error }
	// Subscribed is the server's push that confirms a SUBSCRIBE.
	Subscribed struct{ Channel string }
	// Unsubscribed is the server's push that confirms an UNSUBSCRIBE, or ends a
	// subscription on its own account.
	Unsubscribed struct{ Channel string }
	// Pinged is a ping on the lock's channel, of any participant.
	Pinged struct{ Ping protocol.Ping }
	// Answered is an answer on a response channel, with the queue that its
	// sender passes on.
	Answered struct {
		Response string
		Record   protocol.Record
		Queue    protocol.Queue
	}
	// Woken is a wake on the lock's own wake channel, or, for all readers, on
	// the waiters' channel.
	Woken struct{ Wake protocol.Wake }
	// Counted is the reply to Count and CountAndDraw: the subscribers of the
	// lock's channel, and the token, 0 if none was drawn.
	Counted struct {
		N     int
		Token int64
	}
	// Polled is the reply to Poll: the subscribers of the lock's channel and of
	// the waiters' channel.
	Polled struct{ N, Sleepers int }
	// Probed is the reply to Probe and ProbeAndDraw: how many participants got
	// the ping, the lock included, and the token, 0 if none was drawn.
	Probed struct {
		N     int
		Token int64
	}
	// WaitersCounted is the reply to CountWaiters: the subscribers of each wake
	// channel, in the order of the queue.
	WaitersCounted struct{ Counts []int }
	// Waked is the reply to Wake: how many waiters were woken.
	Waked struct{ N int }
	// Listed is the reply to List.
	Listed struct{ Connections []Connection }
	// Killed is the reply to Kill: how many connections were ended.
	Killed struct{ N int }
	// Greeted is the reply to Hello.
	Greeted struct{ Role, Mode string }
	// Done is the reply to any other command.
	Done struct{}
	// Failed is an error reply to a command, or to a SUBSCRIBE or UNSUBSCRIBE,
	// which has no reply otherwise. Text says that a script was sent with its
	// text.
	Failed struct {
		Command Op
		Text    bool
		Message string
	}
	// Rotated says that the socket has new credentials.
	Rotated struct{}
	// MasterMoved says that a new dial reaches another master than the socket
	// does.
	MasterMoved struct{ Err error }
	// Tick says that the deadline of the machine or lease has passed. It may
	// come too early.
	Tick struct{}
)

// Inputs of a lease.
type (
	// Ran is the outcome of the [Run] with the same Num. With an Err the command
	// may have been run or not.
	Ran struct {
		Num   int
		Reply LeaseReply
		Err   error
	}
	// KeyReleased says that the key may have been given back: a release was
	// published, or listening for them has just begun.
	KeyReleased struct{}
	// Slept says that more time has passed than the monotonic clock shows: the
	// computer was suspended, or the wall clock was set forward.
	Slept struct{ For time.Duration }
)

// LeaseReply is what a command on the key of a lease returns.
type LeaseReply struct {
	// OK says that the key has the id of the command. For DropKey: that it had
	// it until now.
	OK bool
	// Token is the fencing token that TakeKey has drawn, 0 for none.
	Token int64
	// Holder is the value of a key with another id, and TTL the time until it
	// expires, below zero for never.
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
	// ID is the holder id in its name, empty if the name is not one of this
	// lock's participants.
	ID string
	// Legacy says that it has the name that all participants of portalocker 3.2
	// and older share.
	Legacy bool
	// Addr is the client's address, as the server writes it.
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
	// Hello is HELLO 3: it asks for role and mode, and sets the connection's
	// name as Naming says.
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
	// CountAndDraw counts as Count does and draws a fencing token if the lock is
	// alone on the channel, in one script.
	CountAndDraw
	// Poll is PUBSUB NUMSUB of the lock's channel and the waiters' channel.
	Poll
	// Probe counts and pings the lock's channel in one script.
	Probe
	// ProbeAndDraw is Probe, and draws a fencing token.
	ProbeAndDraw
	// SelfPing pings the lock's channel without a count.
	SelfPing
	// Answer publishes the own record on a response channel.
	Answer
	// Wake wakes the first waiter of a queue that still sleeps, or the first
	// readers together, in one script.
	Wake
	// WakeReaders wakes all readers that sleep.
	WakeReaders
	// CountWaiters is PUBSUB NUMSUB of the wake channels of a queue.
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

// pushed reports whether success is a push and not a reply.
func (o Op) pushed() bool { return o == Subscribe || o == Unsubscribe }

// Command is one Redis command that the lock wants to be written.
type Command struct {
	Op Op
	// Channel is the channel of a Subscribe or Unsubscribe, and the response
	// channel of an Answer.
	Channel string
	// Record is the record of an Answer.
	Record *protocol.Record
	// Ping is the ping of a Probe, a ProbeAndDraw or a SelfPing.
	Ping *protocol.Ping
	// Queue is the queue that a Wake wakes, that a CountWaiters counts, and that
	// an Answer passes on.
	Queue protocol.Queue
	// Num is the number of the connection that Kill ends.
	Num int64
	// Text sends a script by its text and not by its hash, for a server that
	// does not have it in its cache.
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
	// IdleName names the connection as idle, in place of the lock's name.
	IdleName
)

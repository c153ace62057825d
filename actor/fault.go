package actor

import (
	"errors"
	"fmt"
	"strings"
)

// ErrClosed ends what was under way when a lock was closed.
var ErrClosed = errors.New("tether: closed")

// ErrMasterChanged ends a hold whose connection does not lead to the master any
// more.
var ErrMasterChanged = errors.New("tether: the master has changed")

// Kind says how a lock reacts to a [Fault].
type Kind uint8

const (
	// Transient ends the attempt; the next one may succeed.
	Transient Kind = iota + 1
	// NotMaster is a node that is no master, or no longer. It ends the attempt;
	// dialling again may reach the new master.
	NotMaster
	// Unauthorized is a login that the server refused. It ends the acquire,
	// after one more attempt if there may be fresh credentials.
	Unauthorized
	// Denied is a command that the user may not run. It ends the acquire.
	Denied
	// Unsupported is a server that cannot do what the protocol needs. It ends
	// the acquire.
	Unsupported
	// Rejected is any other error of the server, which would come again. It
	// ends the acquire.
	Rejected
	// Contradicted is a participant whose settings do not fit this lock's. It
	// ends the acquire.
	Contradicted
)

// Fault is an error of the server or of the connection to it.
type Fault struct {
	Kind Kind
	// Command is the Redis command that failed, if one did.
	Command string
	// Message says what happened, in the server's words where it has any.
	Message string
	// Err is the cause, if it is an error of this side.
	Err error
}

// Error returns the command, the message and the cause, as far as there are any.
func (f *Fault) Error() string {
	text := f.Message
	if f.Err != nil {
		text = f.Err.Error()
		if f.Message != "" {
			text = f.Message + ": " + text
		}
	}
	if f.Command == "" {
		return text
	}
	return f.Command + ": " + text
}

// Unwrap returns the cause, nil if there is none.
func (f *Fault) Unwrap() error { return f.Err }

// terminal reports whether another attempt is pointless.
func terminal(err error) bool {
	f, ok := errors.AsType[*Fault](err)
	if !ok {
		return false
	}
	switch f.Kind {
	case Unauthorized, Denied, Unsupported, Rejected, Contradicted:
		return true
	case Transient, NotMaster:
		return false
	}
	return false
}

// unauthorized reports whether other credentials could help.
func unauthorized(err error) bool {
	f, ok := errors.AsType[*Fault](err)
	return ok && f.Kind == Unauthorized
}

// transientCodes are the error codes of a server that cannot serve right now.
var transientCodes = map[string]bool{
	"LOADING": true, "READONLY": true, "MASTERDOWN": true, "BUSY": true, "OOM": true, "MISCONF": true,
	"CLUSTERDOWN": true, "TRYAGAIN": true, "NOREPLICAS": true, "UNBLOCKED": true, "NOSCRIPT": true,
}

// ReplyFault returns the fault of an error reply to a Redis command.
func ReplyFault(command, message string) *Fault {
	code, rest, _ := strings.Cut(message, " ")
	f := &Fault{Kind: Rejected, Command: command, Message: message}
	switch {
	case transientCodes[code], strings.HasPrefix(rest, "max number of clients reached"):
		f.Kind = Transient
	case code == "NOPERM":
		f.Kind = Denied
	case strings.HasPrefix(message, "ERR The user executing the script can't"), strings.Contains(message, "ACL failure in script"):
		// The script counts and publishes. Counting was allowed in the first
		// round trip, so it is PUBLISH that is denied.
		f.Kind, f.Command = Denied, Answer.String()
	case code == "WRONGPASS", code == "NOAUTH", strings.HasPrefix(rest, "invalid password"):
		f.Kind = Unauthorized
	case code == "NOPROTO", strings.HasPrefix(rest, "unknown command"), strings.HasPrefix(rest, "unknown subcommand"),
		strings.HasPrefix(rest, "Protocol version"):
		f.Kind = Unsupported
	}
	return f
}

// greetingFault is why a node that answers HELLO like this must not grant, nil
// if it may.
func greetingFault(g Greeted) *Fault {
	switch {
	case g.Mode == "cluster":
		return &Fault{Kind: Unsupported, Command: Hello.String(),
			Message: "the node runs in cluster mode, where subscribers are counted per node; a standalone server is needed"}
	case g.Role == "":
		return &Fault{Kind: NotMaster, Command: Hello.String(), Message: "the server does not tell its role"}
	case g.Role != "master":
		return &Fault{Kind: NotMaster, Command: Hello.String(), Message: "the node is a " + g.Role + " and no master"}
	case g.Mode != "standalone":
		return &Fault{Kind: NotMaster, Command: Hello.String(), Message: fmt.Sprintf("the node runs in mode %q", g.Mode)}
	}
	return nil
}

// late is the fault of a reply that did not come in time.
func late(op Op) *Fault {
	return &Fault{Kind: Transient, Command: op.String(), Message: "no answer in time"}
}

// isNoScript reports whether the server does not have the script in its cache.
func (f *Fault) isNoScript() bool { return strings.HasPrefix(f.Message, "NOSCRIPT") }

// uncounted is the fault of a server that counts no subscriber although this
// lock is subscribed.
func uncounted(op Op) *Fault {
	return &Fault{Kind: Unsupported, Command: op.String(),
		Message: "the server does not count its own subscriber, as if subscriptions and commands went to different nodes"}
}

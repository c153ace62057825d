package tether

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tetherlock/tether/actor"
)

var (
	// ErrHeld says that somebody else holds the lock. See [HeldError].
	ErrHeld = errors.New("tether: held by someone else")
	// ErrReleased ends the context of a hold that was released.
	ErrReleased = errors.New("tether: released")
	// ErrClosed is returned by calls on a closed [Lock] or [Client], and is
	// the cause of a loss by Close.
	ErrClosed = actor.ErrClosed
	// ErrMasterChanged is the cause of a loss: Sentinel has moved the master.
	ErrMasterChanged = errors.New("tether: the master has changed")
	// ErrNotMaster is found in errors about a node that is no master, or no
	// longer one: as the cause of a loss after a demotion, for example.
	ErrNotMaster = errors.New("tether: not a master")
)

// HeldError says who is in the way. It matches [ErrHeld], and the context's
// error if the context ended the waiting.
type HeldError struct {
	// Name is the lock.
	Name string
	// Holders are the participants that were seen holding it last. It is
	// empty when the lock is held by the very [Lock] that was asked.
	Holders []Holder
	// Err is what ended the waiting; nil for a try.
	Err error

	self    bool
	silent  int
	trouble error
}

// Error names the holders.
func (e *HeldError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "tether: lock %q is held by ", e.Name)
	switch {
	case e.self:
		b.WriteString("this Lock")
	case len(e.Holders) == 0:
		b.WriteString("someone else")
	}
	for i, h := range e.Holders {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(h.String())
	}
	b.WriteString(detail(e.silent, e.trouble))
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Is reports whether target is [ErrHeld].
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Unwrap returns what ended the waiting, and the last failure to reach the
// server if nothing was heard since.
func (e *HeldError) Unwrap() []error { return present(e.Err, e.trouble) }

// waitError is an acquire that ended without having seen a holder.
type waitError struct {
	name    string
	silent  int
	trouble error
	err     error
}

func (e *waitError) Error() string {
	text := fmt.Sprintf("tether: acquire %q", e.name) + detail(e.silent, e.trouble)
	if e.err != nil {
		text += ": " + e.err.Error()
	}
	return text
}

func (e *waitError) Unwrap() []error { return present(e.err, e.trouble) }

// present leaves out what is nil.
func present(errs ...error) []error {
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// detail tells what else is known about an acquire that failed.
func detail(silent int, trouble error) string {
	var b strings.Builder
	switch {
	case silent == 1:
		b.WriteString("; 1 participant does not answer")
	case silent > 1:
		fmt.Fprintf(&b, "; %d participants do not answer", silent)
	}
	if trouble != nil {
		fmt.Fprintf(&b, "; last attempt: %v", trouble)
	}
	return b.String()
}

// LostError says that a hold has ended without a release.
type LostError struct {
	// Name is the lock.
	Name string
	// HolderID is the holder's id.
	HolderID string
	// At is when the loss was noticed.
	At time.Time

	cause error
}

// Error tells the cause.
func (e *LostError) Error() string {
	return fmt.Sprintf("tether: lost lock %q: %v", e.Name, e.cause)
}

// Unwrap returns the cause: the socket's error, [ErrNotMaster],
// [ErrMasterChanged], [ErrClosed], …
func (e *LostError) Unwrap() error { return e.cause }

// UnsupportedError says what the server, or the kind of client, cannot do.
type UnsupportedError struct{ Reason string }

// Error tells the reason.
func (e *UnsupportedError) Error() string { return "tether: unsupported: " + e.Reason }

// ConfigError says which option is wrong or contradicts another.
type ConfigError struct{ Reason string }

// Error tells the reason.
func (e *ConfigError) Error() string { return "tether: " + e.Reason }

// AuthError is a login that the server refused.
type AuthError struct{ Message string }

// Error gives the server's words.
func (e *AuthError) Error() string { return "tether: the server refuses the credentials: " + e.Message }

// PermissionError is a command that the Redis user may not run, or a channel
// that it may not use.
type PermissionError struct {
	// Command is the Redis command.
	Command string
	// Message is what the server said.
	Message string
}

// Error names the command.
func (e *PermissionError) Error() string {
	return fmt.Sprintf("tether: no permission for %s: %s", e.Command, e.Message)
}

// public words an error of the lock's machine for users.
func public(err error) error {
	f, ok := errors.AsType[*actor.Fault](err)
	if !ok {
		return err
	}
	switch f.Kind {
	case actor.Unauthorized:
		return &AuthError{Message: f.Message}
	case actor.Denied:
		return &PermissionError{Command: f.Command, Message: f.Message}
	case actor.Unsupported:
		return &UnsupportedError{Reason: f.Error()}
	case actor.NotMaster:
		return fmt.Errorf("%w: %s", ErrNotMaster, f.Message)
	case actor.Transient, actor.Rejected:
		return err
	}
	return err
}

// worded turns a refusal into the error that an acquire returns.
func worded(name string, r actor.Refusal) error {
	cause, trouble := public(r.Cause), public(r.Trouble)
	switch {
	case r.Why == actor.Shut:
		return ErrClosed
	case r.Why == actor.Broken:
		return fmt.Errorf("tether: acquire %q: %w", name, stripped(cause))
	case r.Self || len(r.Holders) > 0 || r.Why == actor.Contended:
		return &HeldError{Name: name, Holders: holders(r.Holders), Err: cause, self: r.Self, silent: r.Silent, trouble: trouble}
	default:
		return &waitError{name, r.Silent, trouble, cause}
	}
}

// prefixless is an error whose text does not repeat the package's name.
type prefixless struct{ error }

func (e prefixless) Error() string { return strings.TrimPrefix(e.error.Error(), "tether: ") }
func (e prefixless) Unwrap() error { return e.error }

func stripped(err error) error { return prefixless{err} }

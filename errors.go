package tether

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tetherlock/tether/actor"
)

var (
	// ErrHeld says that the lock is held, by somebody else as a rule. See
	// [HeldError].
	ErrHeld = errors.New("tether: held by someone else")
	// ErrReleased ends the context of a hold that was released.
	ErrReleased = errors.New("tether: released")
	// ErrClosed is returned by calls on a closed [Lock] or [Client], and is
	// the cause of a loss by Close.
	ErrClosed = actor.ErrClosed
	// ErrMasterChanged is the cause of a loss: Sentinel has moved the master.
	ErrMasterChanged = actor.ErrMasterChanged
	// ErrNotMaster is found in errors about a node that is no master, or no
	// longer one: as the cause of a loss after a demotion, for example.
	ErrNotMaster = errors.New("tether: not a master")
)

// HeldError says who is in the way. It matches [ErrHeld], and the context's
// error if the context ended the waiting.
type HeldError struct {
	// Name is the lock.
	Name string
	// Holders are the participants that were seen holding it last, another
	// Lock of the same client among them. It is empty when the lock is held by
	// the very [Lock] that was asked.
	Holders []Holder
	// Silent counts the participants that did not answer the last ping. What
	// they do is not known; the text names them as far as possible.
	Silent int
	// Err is what ended the waiting: the context's error and cause, or that
	// [WithMaxWait] was over. It is nil for a try.
	Err error

	self    bool
	silence silentPeers
	trouble error
}

// Error names the holders, and what else is known.
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
	b.WriteString(detail(e.silence.words(e.Silent), e.trouble))
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
	silent  string // participants, in words
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

// present returns the errors that are not nil.
func present(errs ...error) []error {
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// detail tells what else is known about an acquire that failed.
func detail(silent string, trouble error) string {
	text := ""
	if silent != "" {
		text = "; " + silent
	}
	if trouble != nil {
		text += "; last attempt: " + stripped(trouble).Error()
	}
	return text
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

// publicError turns a fault of the lock's machine into an exported error type.
func publicError(err error) error {
	f, ok := errors.AsType[*actor.Fault](err)
	if !ok {
		return err
	}
	switch f.Kind {
	case actor.Unauthorized:
		return &AuthError{Message: f.Message}
	case actor.Denied:
		return &PermissionError{Command: f.Command, Message: f.Message}
	case actor.Contradicted:
		return &ConfigError{Reason: f.Message}
	case actor.Unsupported:
		return &UnsupportedError{Reason: f.Error()}
	case actor.NotMaster:
		return fmt.Errorf("%w: %s", ErrNotMaster, f.Message)
	case actor.Transient, actor.Rejected:
		return err
	}
	return err
}

// acquireError turns a refusal of the machine into the error that an acquire
// returns.
func acquireError(name string, maxWait time.Duration, r actor.Refusal) error {
	cause, trouble := publicError(r.Cause), notContextError(publicError(r.LastErr))
	quiet := silentPeers{r.SilentConns, publicError(r.ReapErr), r.ReapState, r.SilentFor, r.Unavailable}
	switch r.Reason {
	case actor.Expired:
		cause = waited(maxWait)
	case actor.AttemptError, actor.Inconclusive:
		cause = notContextError(cause)
	case actor.Contended, actor.Cancelled, actor.LockClosed:
	}
	switch {
	case r.Reason == actor.LockClosed:
		return ErrClosed
	case r.Reason == actor.AttemptError:
		return fmt.Errorf("tether: acquire %q: %w", name, stripped(cause))
	case r.OwnHold || len(r.Holders) > 0 || r.Reason == actor.Contended:
		return &HeldError{
			Name: name, Holders: holders(r.Holders), Silent: r.Silent, Err: cause,
			self: r.OwnHold, silence: quiet, trouble: trouble,
		}
	case r.Reason == actor.Inconclusive && cause == nil && trouble == nil && r.Silent == 0:
		return &HeldError{Name: name, Err: errUndecided}
	}
	return &waitError{name, quiet.words(r.Silent), trouble, cause}
}

// errUndecided ends a try that met other contenders until its time was over. To the
// caller it is contention: another try may succeed.
var errUndecided = errors.New("others want it too, and none of them has it yet")

// waited is the error of an acquire that [WithMaxWait] has ended. It does not match
// a context's error, because no context has ended.
func waited(d time.Duration) error { return fmt.Errorf("waited for %v", d) }

// notContextError keeps a network time-out from matching the caller's context:
// time-outs of package net match context.DeadlineExceeded.
func notContextError(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return notContext{err}
	}
	return err
}

type notContext struct{ err error }

func (e notContext) Error() string { return e.err.Error() }

func (e notContext) Is(target error) bool {
	return target != context.DeadlineExceeded && target != context.Canceled && errors.Is(e.err, target)
}

func (e notContext) As(target any) bool { return errors.As(e.err, target) }

// prefixless is an error whose text does not repeat the package's name.
type prefixless struct{ error }

func (e prefixless) Error() string { return strings.TrimPrefix(e.error.Error(), "tether: ") }
func (e prefixless) Unwrap() error { return e.error }

func stripped(err error) error { return prefixless{err} }

//go:build unix && !aix && !solaris

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os/exec"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/tetherlock/tether"
)

// Exit codes. They follow sysexits.h, whose numbers commands rarely use, and
// the shells.
const (
	exitFailed      = 1
	exitUsage       = 64
	exitUnavailable = 69
	exitMachine     = 70
	exitHeld        = 75
	exitLost        = 76
	exitCannotRun   = 126
	exitNotFound    = 127
	exitSignal      = 128 // plus its number
)

// exitError is an exit code and what to print. For the command's own code the text
// is empty.
type exitError struct {
	code int
	text string
}

func (o *exitError) Error() string { return o.text }

func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Sprintf(format, args...)}
}

func machineError(doing string, err error) error {
	return &exitError{exitMachine, fmt.Sprintf("can't %s on this machine: %v", doing, err)}
}

// signalExit has the exit code by which shells report a signal.
func signalExit(s syscall.Signal, text string) error {
	return &exitError{exitSignal + int(s), text}
}

// explain turns an error of the library into one line that says what to do.
func explain(err error, name string, server *redis.Options) error {
	if _, ok := errors.AsType[*tether.ConfigError](err); ok {
		return usageError("%s", optionsToFlags.Replace(errorText(err)))
	}
	if e, ok := errors.AsType[*tether.HeldError](err); ok {
		return &exitError{exitHeld, fmt.Sprintf("%q is held by %s: try again later, or wait for it with --wait", name, holderList(e.Holders))}
	}
	return &exitError{exitUnavailable, serverErrorText(err, server)}
}

func holderList(holders []tether.Holder) string {
	var names []string
	for _, h := range holders {
		names = append(names, h.String())
	}
	if names == nil {
		return "others, who want it at the same time"
	}
	return strings.Join(names, ", ")
}

// serverErrorText is the text of an error of the server or of the connection.
func serverErrorText(err error, server *redis.Options) string {
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return fmt.Sprintf("no Redis at %s (%v): start one, or try: tether serve", server.Addr, dial.Err)
	}
	if e, ok := errors.AsType[*tether.UnsupportedError](err); ok {
		return fmt.Sprintf("the server at %s can't serve locks (%s): use a standalone Redis 6 or newer", server.Addr, oneLine(e.Reason))
	}
	if e, ok := errors.AsType[*tether.AuthError](err); ok {
		return loginRefusedText(server, e.Message)
	}
	if e, ok := errors.AsType[*tether.PermissionError](err); ok {
		return permissionText(server, e.Message)
	}
	return fmt.Sprintf("Redis at %s: %s: check --redis and the server, then try again", server.Addr, errorText(err))
}

func loginRefusedText(server *redis.Options, said string) string {
	return fmt.Sprintf("Redis at %s refuses the login (%s): put user and password into the URL, redis://user:password@host:port",
		server.Addr, oneLine(said))
}

func permissionText(server *redis.Options, said string) string {
	return fmt.Sprintf("the user at %s lacks a permission (%s): grant what tether's README lists", server.Addr, oneLine(said))
}

// errorText is an error's text on one line, without the prefix that printErr adds.
func errorText(err error) string {
	return strings.TrimPrefix(oneLine(err.Error()), "tether: ")
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// cannotRunError says why a command can't be run, with the exit codes of shells.
func cannotRunError(command string, err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return &exitError{exitNotFound, fmt.Sprintf("no such command: %s: check its name and PATH", command)}
	}
	if e, ok := errors.AsType[*exec.Error](err); ok {
		err = e.Err
	}
	return &exitError{exitCannotRun, fmt.Sprintf("can't run %s (%v): is it an executable file, with #! if it is a script?", command, err)}
}

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

// outcome is how the program ends. A command's own code has no text.
type outcome struct {
	code int
	text string
}

func (o *outcome) Error() string { return o.text }

func usage(format string, args ...any) error {
	return &outcome{exitUsage, fmt.Sprintf(format, args...)}
}

func machine(doing string, err error) error {
	return &outcome{exitMachine, fmt.Sprintf("can't %s on this machine: %v", doing, err)}
}

// bySignal ends the program as shells report a signal.
func bySignal(s syscall.Signal, text string) error {
	return &outcome{exitSignal + int(s), text}
}

// explain puts an error of the library into one line that says what to do.
func explain(err error, name string, server *redis.Options) error {
	if _, ok := errors.AsType[*tether.ConfigError](err); ok {
		return usage("%s", asFlags.Replace(plain(err)))
	}
	if e, ok := errors.AsType[*tether.HeldError](err); ok {
		return &outcome{exitHeld, fmt.Sprintf("%q is held by %s: try again later, or wait for it with --wait", name, inTheWay(e.Holders))}
	}
	return &outcome{exitUnavailable, trouble(err, server)}
}

func inTheWay(holders []tether.Holder) string {
	var names []string
	for _, h := range holders {
		names = append(names, h.String())
	}
	if names == nil {
		return "others, who want it at the same time"
	}
	return strings.Join(names, ", ")
}

// trouble words an error of the server or on the way to it.
func trouble(err error, server *redis.Options) string {
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return fmt.Sprintf("no Redis at %s (%v): start one, or try: tether serve", server.Addr, dial.Err)
	}
	if e, ok := errors.AsType[*tether.UnsupportedError](err); ok {
		return fmt.Sprintf("the server at %s can't serve locks (%s): use a standalone Redis 6 or newer", server.Addr, oneLine(e.Reason))
	}
	if e, ok := errors.AsType[*tether.AuthError](err); ok {
		return refusedLogin(server, e.Message)
	}
	if e, ok := errors.AsType[*tether.PermissionError](err); ok {
		return refusedCommand(server, e.Message)
	}
	return fmt.Sprintf("Redis at %s: %s: check --redis and the server, then try again", server.Addr, plain(err))
}

func refusedLogin(server *redis.Options, said string) string {
	return fmt.Sprintf("Redis at %s refuses the login (%s): put user and password into the URL, redis://user:password@host:port",
		server.Addr, oneLine(said))
}

func refusedCommand(server *redis.Options, said string) string {
	return fmt.Sprintf("the user at %s lacks a permission (%s): grant what tether's README lists", server.Addr, oneLine(said))
}

// plain is an error's text on one line, without the name that the program
// puts in front itself.
func plain(err error) string {
	return strings.TrimPrefix(oneLine(err.Error()), "tether: ")
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// cannotRun says why a command can't be run, with the codes that shells use.
func cannotRun(command string, err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return &outcome{exitNotFound, fmt.Sprintf("no such command: %s: check its name and PATH", command)}
	}
	if e, ok := errors.AsType[*exec.Error](err); ok {
		err = e.Err
	}
	return &outcome{exitCannotRun, fmt.Sprintf("can't run %s (%v): is it an executable file, with #! if it is a script?", command, err)}
}

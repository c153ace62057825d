//go:build unix && !aix && !solaris

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
)

func main() {
	// Errors are printed once, in one line. The log of go-redis would repeat them.
	redis.SetLogger(discardLogger{})
	os.Exit(exitCode(root().Execute()))
}

type discardLogger struct{}

func (discardLogger) Printf(context.Context, string, ...any) {}

// exitCode prints the error, if any, and returns the exit code.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	o, ok := errors.AsType[*exitError](err)
	if !ok {
		o = &exitError{exitUsage, err.Error()}
	}
	if o.text != "" {
		printErr("%s", o.text)
	}
	return o.code
}

// printErr prints a line to standard error. Standard output belongs to the command.
func printErr(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "tether: "+format+"\n", args...)
}

func root() *cobra.Command {
	c := &cobra.Command{
		Use:               "tether",
		Short:             "Run programs under a distributed lock on Redis",
		Args:              knownCommand,
		RunE:              func(c *cobra.Command, _ []string) error { return c.Help() },
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},

		DisableFlagsInUseLine:      true,
		SuggestionsMinimumDistance: 2,
	}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError("%s: see %s --help", oneLine(err.Error()), c.CommandPath())
	})
	c.AddCommand(runCommand(), probeCommand(), serveCommand(), demoCommand())
	c.AddCommand(gatedChildCommand(), watchdogCommand(), demoWorkerCommand())
	return c
}

func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if like := c.SuggestionsFor(args[0]); len(like) > 0 {
		return usageError("no command %q, but there is: tether %s", args[0], strings.Join(like, ", tether "))
	}
	return usageError("no command %q: see tether --help", args[0])
}

// noArguments is for commands that take flags only.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError("%s takes no arguments, got %q: see %s --help", c.CommandPath(), args[0], c.CommandPath())
	}
	return nil
}

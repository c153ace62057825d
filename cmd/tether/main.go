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
	// Its log would come on top of the one line that says what is wrong.
	redis.SetLogger(silence{})
	os.Exit(conclude(root().Execute()))
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// conclude prints what there is to say and returns the exit code.
func conclude(err error) int {
	if err == nil {
		return 0
	}
	o, ok := errors.AsType[*outcome](err)
	if !ok {
		o = &outcome{exitUsage, err.Error()}
	}
	if o.text != "" {
		say("%s", o.text)
	}
	return o.code
}

// say prints a line for the user; standard output is the command's.
func say(format string, args ...any) {
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
		return usage("%s: see %s --help", oneLine(err.Error()), c.CommandPath())
	})
	c.AddCommand(runCommand(), probeCommand(), serveCommand(), demoCommand())
	c.AddCommand(childCommand(), guardCommand(), contenderCommand())
	return c
}

func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if like := c.SuggestionsFor(args[0]); len(like) > 0 {
		return usage("no command %q, but there is: tether %s", args[0], strings.Join(like, ", tether "))
	}
	return usage("no command %q: see tether --help", args[0])
}

// noArguments is for commands that take flags only.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s takes no arguments, got %q: see %s --help", c.CommandPath(), args[0], c.CommandPath())
	}
	return nil
}

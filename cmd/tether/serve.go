//go:build unix && !aix && !solaris

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tetherlock/tether/tethertest"
)

func serveCommand() *cobra.Command {
	var addr string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve locks without Redis, in this process",
		Long: `Runs the in-process server that tether's tests use, for trying tether out on a
machine without Redis. It has no password and stores nothing: not for
production. SIGINT and SIGTERM end it.`,
		Args: noArguments,
	}
	c.Flags().StringVar(&addr, "addr", "127.0.0.1:6379", "`HOST:PORT` to listen on; port 0 picks a free one")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return usageError("--addr %q is no HOST:PORT: write 127.0.0.1:6379, for example", addr)
		}
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
		server, err := tethertest.Start(addr)
		if err != nil {
			return cannotServeError(addr, err)
		}
		defer server.Close()
		if _, err := fmt.Fprintf(c.OutOrStdout(), "serving locks at redis://%s (Ctrl-C ends it)\n", server.Addr()); err != nil {
			return machineError("print", err)
		}
		<-stop
		return nil
	}
	return c
}

func cannotServeError(addr string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return &exitError{exitUnavailable, fmt.Sprintf(
			"%s is taken, perhaps by a Redis that you can use as it is; or take a free port: tether serve --addr 127.0.0.1:0", addr)}
	}
	return &exitError{exitUnavailable, fmt.Sprintf("can't listen on %s (%s): choose another: tether serve --addr HOST:PORT", addr, errorText(err))}
}

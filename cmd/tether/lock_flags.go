//go:build unix && !aix && !solaris

package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tetherlock/tether"
)

// lockFlags are the flags that say how the lock is taken.
type lockFlags struct {
	shared, fenced, lease        bool
	label                        string
	unavailable, poll, selfCheck time.Duration
	ttl, renew                   time.Duration
	isSet                        func(flag string) bool
}

// optionsToFlags replaces the options' names in errors of the library by the
// flags' names.
var optionsToFlags = strings.NewReplacer(
	"Shared and Fenced", "--shared and --fenced",
	"Shared is", "--shared is",
	"WithLabel", "--label",
	"WithTTL", "--ttl",
	"WithRenewInterval", "--renew-interval",
	"WithMaxWait", "--wait",
	"WithUnavailableTimeout", "--unavailable-timeout",
	"WithPollInterval", "--poll-interval",
	"WithSelfCheck", "--self-check",
)

func (f *lockFlags) add(c *cobra.Command) {
	f.isSet = c.Flags().Changed
	c.Flags().BoolVar(&f.shared, "shared", false, "take the lock as a reader: beside other readers, but no writer")
	c.Flags().BoolVar(&f.fenced, "fenced", false, "draw a fencing token, TETHER_TOKEN for the command")
	c.Flags().StringVar(&f.label, "label", "", `what others are told about this holder, "" for nothing (default "pid N on HOST")`)
	c.Flags().DurationVar(&f.unavailable, "unavailable-timeout", 0, "how long others may be silent before they are cut off (default 1s)")
	c.Flags().DurationVar(&f.poll, "poll-interval", 0, "time between two looks at a lock that is waited for (default 100ms)")
	c.Flags().DurationVar(&f.selfCheck, "self-check", 0, "time between two pings to oneself through the lock (default none)")
	c.Flags().BoolVar(&f.lease, "lease", false, "take a lease: a key with an expiry that is renewed, NAME itself")
	c.Flags().DurationVar(&f.ttl, "ttl", 0, "how long the key of a lease lives without a renewal (default 1m0s)")
	c.Flags().DurationVar(&f.renew, "renew-interval", 0, "time between two renewals of a lease (default a third of the TTL)")
}

// validate finds flags that need another one.
func (f *lockFlags) validate() error {
	for _, flag := range []string{"ttl", "renew-interval"} {
		if f.isSet(flag) && !f.lease {
			return usageError("--%s is for leases: add --lease, or leave it out", flag)
		}
	}
	return nil
}

func (f *lockFlags) newLock(locks *tether.Client, name string, opts []tether.LockOption) *tether.Lock {
	if f.lease {
		return locks.Lease(name, opts...)
	}
	return locks.Lock(name, opts...)
}

func (f *lockFlags) options() []tether.LockOption {
	label := f.label
	if !f.isSet("label") && !f.lease {
		label = defaultLabel()
	}
	opts := []tether.LockOption{tether.WithLabel(label)}
	if f.shared {
		opts = append(opts, tether.Shared())
	}
	if f.fenced {
		opts = append(opts, tether.Fenced())
	}
	for _, o := range []struct {
		flag   string
		option tether.LockOption
	}{
		{"unavailable-timeout", tether.WithUnavailableTimeout(f.unavailable)},
		{"poll-interval", tether.WithPollInterval(f.poll)},
		{"self-check", tether.WithSelfCheck(f.selfCheck)},
		{"ttl", tether.WithTTL(f.ttl)},
		{"renew-interval", tether.WithRenewInterval(f.renew)},
	} {
		if f.isSet(o.flag) {
			opts = append(opts, o.option)
		}
	}
	return opts
}

// defaultLabel names this process and its machine. It is not host:pid, which
// could be mistaken for an address, as the two are printed side by side.
func defaultLabel() string {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Sprintf("pid %d", os.Getpid())
	}
	return fmt.Sprintf("pid %d on %s", os.Getpid(), host)
}

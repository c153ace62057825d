//go:build unix && !aix && !solaris

package main

import (
	"context"
	"errors"
	"time"

	"github.com/tetherlock/tether"
)

// holdersProbeTimeout limits how much the probe delays the exit.
const holdersProbeTimeout = 300 * time.Millisecond

// probeHolders completes the holders in a HeldError with what only a probe
// knows: their addresses, and how long they have held the lock by now.
func (j *job) probeHolders(ctx context.Context, locks *tether.Client, err error) error {
	held, ok := errors.AsType[*tether.HeldError](err)
	if !ok {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, holdersProbeTimeout)
	defer cancel()
	list, _ := locks.Probe(ctx, j.name) // if it fails, the error has fewer details
	for i, seen := range held.Holders {
		for _, now := range list {
			if now.ID == seen.ID {
				held.Holders[i] = now
			}
		}
	}
	return err
}

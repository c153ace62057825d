//go:build unix && !aix && !solaris

package main

import (
	"context"
	"errors"
	"time"

	"github.com/tetherlock/tether"
)

// locateLimit is how long the end may be put off for the sake of addresses.
const locateLimit = 300 * time.Millisecond

// located adds to an error that names holders what only a probe tells: where
// they are connected from, and how long they have held by now.
func (j *job) located(ctx context.Context, locks *tether.Client, err error) error {
	held, ok := errors.AsType[*tether.HeldError](err)
	if !ok {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, locateLimit)
	defer cancel()
	list, _ := locks.Probe(ctx, j.name) // without it the error says less, and nothing wrong
	for i, seen := range held.Holders {
		for _, now := range list {
			if now.ID == seen.ID {
				held.Holders[i] = now
			}
		}
	}
	return err
}

package tether

import (
	"context"
	"fmt"
	"slices"

	"github.com/tetherlock/tether/actor"
	"github.com/tetherlock/tether/internal/prober"
	"github.com/tetherlock/tether/wire"
)

// Probe asks who takes part in a lock: those who hold it and those who are
// about to. It changes nothing and takes part in nothing. The answer is a
// snapshot, stale when you read it.
//
// It waits up to a second for answers, as long as ctx lives. Participants that
// do not answer are told as an error, beside the ones that did. Addresses are
// filled in, and the silent ones named, where the Redis user may run CLIENT
// LIST.
func (c *Client) Probe(ctx context.Context, name string) ([]Holder, error) {
	switch {
	case c.err != nil:
		return nil, c.err
	case name == "":
		return nil, &ConfigError{Reason: "a lock needs a name"}
	case isClosed(c.loop.Done()):
		return nil, ErrClosed
	}
	rdb := c.loop.Endpoint.Commands()
	defer func() { _ = rdb.Close() }() // it is ours and idle
	records, missing, err := prober.Probe(ctx, rdb, name)
	if err != nil {
		return nil, fmt.Errorf("tether: probe %q: %w", name, stripped(publicError(err)))
	}
	list := append([]Holder{}, holders(records)...)
	silent := locate(list, prober.Connections(ctx, rdb, name))
	if missing > 0 {
		err = fmt.Errorf("tether: probe %q: %s did not answer%s", name, participants(missing), silentPeers{conns: silent}.who())
	}
	return list, err
}

// locate fills in the addresses of the holders, and returns the connections that are
// none of theirs. Legacy participants all have one connection name, so their
// addresses are given in any order.
func locate(list []Holder, clients []wire.Client) (silent []actor.Connection) {
	legacy := 0
	for _, c := range clients {
		id := c.HolderID
		if c.Legacy {
			id = prober.LegacyID(legacy)
			legacy++
		}
		if i := slices.IndexFunc(list, func(h Holder) bool { return h.ID == id }); i >= 0 {
			list[i].Addr = c.Addr
			continue
		}
		silent = append(silent, actor.Connection{Num: c.Num, ID: c.HolderID, Legacy: c.Legacy, Addr: c.Addr})
	}
	return silent
}

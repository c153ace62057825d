package tether

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tetherlock/tether/actor"
	"github.com/tetherlock/tether/protocol"
	"github.com/tetherlock/tether/wire"
)

const (
	// probeLimit is how long participants may take to answer.
	probeLimit = time.Second
	// recountEvery is the time between two counts while answers are missing.
	recountEvery = 20 * time.Millisecond
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
	case c.loop.closed():
		return nil, ErrClosed
	}
	rdb := c.loop.endpoint.commands()
	defer func() { _ = rdb.Close() }() // it is ours and idle
	records, missing, err := ask(ctx, rdb, name)
	if err != nil {
		return nil, fmt.Errorf("tether: probe %q: %w", name, stripped(err))
	}
	list := append([]Holder{}, holders(records)...)
	silent := locate(list, connections(ctx, rdb, name))
	if missing > 0 {
		err = fmt.Errorf("tether: probe %q: %s did not answer%s", name, participants(missing), silentPeers{conns: silent}.who())
	}
	return list, err
}

// commands returns a short-lived client for plain commands at the endpoint.
func (e *endpoint) commands() *redis.Client {
	return redis.NewClient(&redis.Options{
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return e.dial(ctx) },
		CredentialsProviderContext: func(ctx context.Context) (string, string, error) {
			login, _, stop, err := e.login.get(ctx)
			if stop != nil {
				stop()
			}
			return login.User, login.Password, err
		},
		Protocol: 2, PoolSize: 2, DialTimeout: e.dialLimit, ReadTimeout: e.replyLimit, ContextTimeoutEnabled: true,
		DisableIdentity: true,
	})
}

// ask pings the lock's channel until everybody who got the ping has answered,
// or how many have not is final.
func ask(ctx context.Context, rdb *redis.Client, name string) ([]protocol.Record, int, error) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit+rdb.Options().ReadTimeout)
	defer cancel()
	until := time.Now().Add(probeLimit)
	for {
		records, missing, err := askOnce(ctx, rdb, name, until)
		if err != nil || missing == 0 || !time.Now().Before(until) {
			return records, missing, err
		}
	}
}

var probeScript = redis.NewScript(wire.ProbeScript)

// askOnce sends one ping. It returns who has answered, and how many have not:
// because they are silent, or because they have left.
func askOnce(ctx context.Context, rdb *redis.Client, name string, until time.Time) ([]protocol.Record, int, error) {
	response := wire.ResponseChannel(name, newID())
	answers := rdb.Subscribe(ctx, response)
	defer func() { _ = answers.Close() }() // whatever it says, it is over
	if _, err := answers.Receive(ctx); err != nil {
		return nil, 0, spoken("SUBSCRIBE", err)
	}
	n, err := probeScript.Run(ctx, rdb, nil, name, wire.EncodePing(protocol.Ping{Response: response})).Int()
	if err != nil {
		return nil, 0, spoken("EVAL", err)
	}
	records := map[string]protocol.Record{}
	legacy := 0
	for len(records) < n && time.Now().Before(until) {
		m, err := answers.ReceiveTimeout(ctx, recountEvery)
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
			if left, err := rdb.PubSubNumSub(ctx, name).Result(); err != nil || left[name] < int64(n) {
				break // somebody has left without an answer
			}
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		if m, ok := m.(*redis.Message); ok {
			r, _ := wire.DecodeRecord(m.Payload)
			if r.Legacy {
				r.ID = legacyID(legacy)
				legacy++
			}
			records[r.ID] = r
		}
	}
	if len(records) < n {
		leave(ctx, answers)
	}
	list := slices.SortedFunc(maps.Values(records), func(a, b protocol.Record) int { return strings.Compare(a.ID, b.ID) })
	return list, n - len(records), nil
}

// leave unsubscribes and waits until that is confirmed: who is subscribed to
// anything is suspected of being the one that does not answer.
func leave(ctx context.Context, answers *redis.PubSub) {
	if answers.Unsubscribe(ctx) != nil {
		return
	}
	for {
		m, err := answers.ReceiveTimeout(ctx, probeLimit)
		if s, ok := m.(*redis.Subscription); err != nil || ok && s.Kind == "unsubscribe" {
			return
		}
	}
}

// spoken words an error of go-redis like those of a lock.
func spoken(command string, err error) error {
	if said, ok := errors.AsType[redis.Error](err); ok {
		return publicError(actor.ReplyFault(command, said.Error()))
	}
	return err
}

// connections lists who may be subscribed to a lock's channel, if the server
// tells.
func connections(ctx context.Context, rdb *redis.Client, name string) []wire.Client {
	text, err := rdb.Do(ctx, "CLIENT", "LIST", "TYPE", "pubsub").Text()
	if err != nil {
		return nil
	}
	return wire.ParseClients(name, text)
}

// locate fills in where the holders are connected from, and returns who is not
// among them. Legacy holders all bear one name: who is who cannot be told, only
// that they are these.
func locate(list []Holder, clients []wire.Client) (silent []actor.Connection) {
	legacy := 0
	for _, c := range clients {
		id := c.HolderID
		if c.Legacy {
			id = legacyID(legacy)
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

func legacyID(n int) string { return fmt.Sprintf("legacy-%d", n) }

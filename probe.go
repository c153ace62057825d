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
// It waits up to a second for answers. Participants that do not answer are
// told as an error, beside the ones that did. Addresses are filled in where
// the Redis user may run CLIENT LIST.
func (c *Client) Probe(ctx context.Context, name string) ([]Holder, error) {
	switch {
	case c.err != nil:
		return nil, c.err
	case name == "":
		return nil, &ConfigError{Reason: "a lock needs a name"}
	case c.hub.closed():
		return nil, ErrClosed
	}
	rdb := c.hub.endpoint.commands()
	defer func() { _ = rdb.Close() }() // it is ours and idle
	list, err := ask(ctx, rdb, name)
	if err != nil && list == nil {
		return nil, fmt.Errorf("tether: probe %q: %w", name, stripped(err))
	}
	addresses(ctx, rdb, name, list)
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

// ask pings the lock's channel until everybody who got the ping has answered.
func ask(ctx context.Context, rdb *redis.Client, name string) ([]Holder, error) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit+rdb.Options().ReadTimeout)
	defer cancel()
	until := time.Now().Add(probeLimit)
	for {
		records, missing, err := askOnce(ctx, rdb, name, until)
		switch {
		case err != nil:
			return nil, err
		case missing == 0:
			return append([]Holder{}, holders(records)...), nil
		case !time.Now().Before(until):
			return append([]Holder{}, holders(records)...), fmt.Errorf("tether: probe %q: %d participants did not answer", name, missing)
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
	n, err := probeScript.Run(ctx, rdb, nil, name, wire.EncodePing(response)).Int()
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
			r := wire.DecodeRecord(m.Payload)
			if r.Legacy {
				r.ID = legacyID(legacy)
				legacy++
			}
			records[r.ID] = r
		}
	}
	list := slices.SortedFunc(maps.Values(records), func(a, b protocol.Record) int { return strings.Compare(a.ID, b.ID) })
	return list, n - len(records), nil
}

// spoken words an error of go-redis like those of a lock.
func spoken(command string, err error) error {
	if said, ok := errors.AsType[redis.Error](err); ok {
		return public(actor.ReplyFault(command, said.Error()))
	}
	return err
}

// addresses fills in where the holders are connected from, if the server
// tells. Legacy holders all bear one name: who is who cannot be told, only
// that they are these.
func addresses(ctx context.Context, rdb *redis.Client, name string, list []Holder) {
	clients, err := rdb.ClientList(ctx).Result()
	if err != nil {
		return
	}
	at := map[string]string{}
	legacy := 0
	for line := range strings.Lines(clients) {
		fields := clientFields(line)
		id, ok := wire.ParseConnName(name, fields["name"])
		if old := wire.LegacyConnName(name); !ok && old != "" && fields["name"] == old && fields["sub"] != "0" {
			id, ok = legacyID(legacy), true
			legacy++
		}
		if ok {
			at[id] = fields["addr"]
		}
	}
	for i := range list {
		list[i].Addr = at[list[i].ID]
	}
}

// clientFields reads a line of CLIENT LIST.
func clientFields(line string) map[string]string {
	fields := map[string]string{}
	for field := range strings.FieldsSeq(line) {
		key, value, _ := strings.Cut(field, "=")
		fields[key] = value
	}
	return fields
}

func legacyID(n int) string { return fmt.Sprintf("legacy-%d", n) }

// Package prober asks the participants of a presence lock who they are, without
// taking part: for Client.Probe.
package prober

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
	"github.com/tetherlock/tether/internal/endpoint"
	"github.com/tetherlock/tether/protocol"
	"github.com/tetherlock/tether/wire"
)

const (
	// probeLimit is how long participants may take to answer.
	probeLimit = time.Second
	// recountEvery is the time between two counts while answers are missing.
	recountEvery = 20 * time.Millisecond
)

// Probe pings the lock's channel until everybody who got the ping has answered,
// or how many have not is final.
func Probe(ctx context.Context, rdb *redis.Client, name string) ([]protocol.Record, int, error) {
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
	response := wire.ResponseChannel(name, endpoint.NewID())
	answers := rdb.Subscribe(ctx, response)
	defer func() { _ = answers.Close() }() // its error changes nothing
	if _, err := answers.Receive(ctx); err != nil {
		return nil, 0, fault("SUBSCRIBE", err)
	}
	n, err := probeScript.Run(ctx, rdb, nil, name, wire.EncodePing(protocol.Ping{Response: response})).Int()
	if err != nil {
		return nil, 0, fault("EVAL", err)
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
				r.ID = LegacyID(legacy)
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

// leave unsubscribes and waits for the confirmation: a connection that is subscribed
// to something may be taken for the silent participant.
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

// fault turns an error reply into a lock's fault.
func fault(command string, err error) error {
	if reply, ok := errors.AsType[redis.Error](err); ok {
		return actor.ReplyFault(command, reply.Error())
	}
	return err
}

// Connections lists who may be subscribed to a lock's channel, if the server
// tells.
func Connections(ctx context.Context, rdb *redis.Client, name string) []wire.Client {
	text, err := rdb.Do(ctx, "CLIENT", "LIST", "TYPE", "pubsub").Text()
	if err != nil {
		return nil
	}
	return wire.ParseClients(name, text)
}

// LegacyID is the id of the nth legacy participant.
func LegacyID(n int) string { return fmt.Sprintf("legacy-%d", n) }

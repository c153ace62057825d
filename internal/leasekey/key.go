// Package leasekey is the key of a lease in Redis, reached through the caller's own
// client: its scripts, what belongs to it, and the channel on which releases are
// told.
package leasekey

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/tetherlock/tether/actor"
)

// commandLimit bounds one command, with the client's retries.
const commandLimit = 10 * time.Second

// Key is the key of one lease.
type Key struct {
	rdb     redis.UniversalClient
	name    string
	ttl     time.Duration
	fence   string // the key of the tokens' counter, empty for none
	channel string // where releases are told
}

// New returns the key of a lease. Fenced draws a token with each grant.
func New(rdb redis.UniversalClient, name string, ttl time.Duration, fenced bool) *Key {
	k := &Key{rdb: rdb, name: name, ttl: ttl, channel: releaseChannel(name)}
	if fenced {
		k.fence = fenceKey(name)
	}
	return k
}

// The scripts of a lease. The first key is the lease's, and its value the holder id.
// Key, value and comparison are those of redis-py's Lock.
var (
	// Take sets the key if it is free. It also succeeds when the holder itself
	// has set it, because the reply to an earlier command may have been lost.
	// With a second key it draws a fencing token there: the counter plus one,
	// or the server's clock in microseconds if that is more. So tokens grow even
	// when the counter is lost.
	Take = redis.NewScript(`local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
	return {0, holder, redis.call('PTTL', KEYS[1])}
end
local token = '0'
if KEYS[2] then
	local now = redis.call('TIME')
	local floor = now[1] * 1000000 + now[2]
	if redis.call('INCR', KEYS[2]) < floor then
		redis.call('SET', KEYS[2], string.format('%.0f', floor))
	end
	token = redis.call('GET', KEYS[2])
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {1, token, 0}`)

	Renew = redis.NewScript(`if redis.call('GET', KEYS[1]) ~= ARGV[1] then
	return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`)

	Check = redis.NewScript(`return redis.call('GET', KEYS[1]) == ARGV[1] and 1 or 0`)

	// Drop deletes the own key and tells the waiters. Where PUBLISH is refused
	// the waiters find out by their poll.
	Drop = redis.NewScript(`if redis.call('GET', KEYS[1]) ~= ARGV[1] then
	return 0
end
redis.call('DEL', KEYS[1])
redis.pcall('PUBLISH', ARGV[2], 'released')
return 1`)
)

// Run runs a command. The caller's client retries it within the limit. A command
// that is on the network already is bounded by the client's own time-outs.
func (k *Key) Run(ctx context.Context, e actor.Run) (actor.LeaseReply, error) {
	ctx, cancel := context.WithTimeout(ctx, min(k.ttl, commandLimit))
	defer cancel()
	keys := []string{k.name}
	var reply actor.LeaseReply
	var err error
	switch e.Op {
	case actor.TakeKey:
		reply, err = k.take(ctx, keys, e.ID)
	case actor.RenewKey:
		reply.OK, err = Renew.Run(ctx, k.rdb, keys, e.ID, k.ttl.Milliseconds()).Bool()
	case actor.CheckKey:
		reply.OK, err = Check.Run(ctx, k.rdb, keys, e.ID).Bool()
	case actor.DropKey:
		reply.OK, err = Drop.Run(ctx, k.rdb, keys, e.ID, k.channel).Bool()
	}
	if e.Op != actor.TakeKey && redis.HasErrorPrefix(err, "WRONGTYPE") {
		return actor.LeaseReply{}, nil // another program has put something else there
	}
	return reply, fault(err)
}

func (k *Key) take(ctx context.Context, keys []string, id string) (reply actor.LeaseReply, err error) {
	if k.fence != "" {
		keys = append(keys, k.fence)
	}
	said, err := Take.Run(ctx, k.rdb, keys, id, k.ttl.Milliseconds()).Slice()
	if err != nil {
		return reply, err
	}
	if len(said) != 3 {
		return reply, fmt.Errorf("a reply of %d elements", len(said))
	}
	text, _ := said[1].(string)
	if said[0] != int64(1) {
		ttl, _ := said[2].(int64)
		return actor.LeaseReply{Holder: printable(text), TTL: time.Duration(ttl) * time.Millisecond}, nil
	}
	_, err = fmt.Sscan(text, &reply.Token)
	reply.OK = err == nil
	return reply, err
}

// maxPrintable bounds what is shown of a value, which may be anything.
const maxPrintable = 128

// printable is a value of the key as it can stand in a line of text. That of
// another program need not be text, nor short.
func printable(value string) string {
	cut := ""
	if len(value) > maxPrintable {
		value, cut = value[:maxPrintable], "…"
	}
	odd := func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == utf8.RuneError }
	if value == "" || strings.ContainsFunc(value, odd) {
		value = strconv.Quote(value)
	}
	return value + cut
}

// fault tells an error of the server from one of the connection, which
// passes. A slot that moves through a cluster passes too. A closed client does
// not.
func fault(err error) error {
	said, ok := errors.AsType[redis.Error](err)
	switch {
	case errors.Is(err, redis.ErrClosed):
		return &actor.Fault{Kind: actor.Rejected, Err: err}
	case !ok:
		return err
	case redis.HasErrorPrefix(err, "MOVED"), redis.HasErrorPrefix(err, "ASK"):
		return &actor.Fault{Kind: actor.Transient, Command: scripted, Message: said.Error()}
	}
	f := actor.ReplyFault(scripted, said.Error())
	f.Command = scripted // not what the scripts of presence locks run
	return f
}

// scripted is the command of a lease.
const scripted = "EVAL"

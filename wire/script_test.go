package wire

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/internal/redistest"
	"github.com/tetherlock/tether/protocol"
)

// conn is a connection to a real server.
type conn struct {
	t testing.TB
	net.Conn
	r      *Reader
	pushes []Value // received between replies
}

func dial(t testing.TB, s *redistest.Server) *conn {
	nc, err := net.Dial("tcp", s.Addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	require.NoError(t, nc.SetDeadline(time.Now().Add(30*time.Second)))
	c := &conn{t: t, Conn: nc, r: NewReader(nc)}
	require.Equal(t, Map, c.ask(AppendHello(nil, nil, "")).Kind)
	return c
}

// ask sends a command and returns its reply.
func (c *conn) ask(command []byte) Value {
	_, err := c.Write(command)
	require.NoError(c.t, err)
	for {
		v, err := c.r.Read()
		require.NoError(c.t, err)
		if v.Kind != Push {
			return v
		}
		c.pushes = append(c.pushes, v)
	}
}

func (c *conn) do(args ...string) Value { return c.ask(AppendCommand(nil, args...)) }

// subscribe sends SUBSCRIBE, UNSUBSCRIBE or PSUBSCRIBE and waits for all
// confirmations.
func (c *conn) subscribe(command string, names ...string) {
	_, err := c.Write(AppendCommand(nil, append([]string{command}, names...)...))
	require.NoError(c.t, err)
	for confirmed := 0; confirmed < len(names); {
		v, err := c.r.Read()
		require.NoError(c.t, err)
		require.Equal(c.t, Push, v.Kind)
		if v.Elems[0].Text() == strings.ToLower(command) {
			confirmed++
		} else {
			c.pushes = append(c.pushes, v)
		}
	}
}

// messages returns the messages received since the last call, each a channel and
// a payload.
func (c *conn) messages() [][2]string {
	require.Equal(c.t, "PONG", c.do("PING").Text())
	var messages [][2]string
	for _, v := range c.pushes {
		require.Equal(c.t, "message", v.Elems[0].Text())
		messages = append(messages, [2]string{v.Elems[1].Text(), v.Elems[2].Text()})
	}
	c.pushes = nil
	return messages
}

// scriptForms are the two ways to run a script, by name: with its text, and with
// its hash, which the server knows once it has received the text.
var scriptForms = map[string]bool{"text": true, "hash": false}

func TestUnknownHashes(t *testing.T) {
	c := dial(t, redistest.Start(t))
	for _, command := range [][]byte{
		AppendProbe(nil, "c", "ping", false), AppendFence(nil, "c", "", false), AppendWake(nil, "c", nil, false),
	} {
		require.Contains(t, c.ask(command).Text(), "NOSCRIPT")
	}
}

func TestProbeScript(t *testing.T) {
	s := redistest.Start(t)
	c, peer, monitor := dial(t, s), dial(t, s), dial(t, s)
	c.subscribe("SUBSCRIBE", "c")
	peer.subscribe("SUBSCRIBE", "c")
	monitor.subscribe("PSUBSCRIBE", "*")
	for _, text := range []bool{true, false} {
		require.Equal(t, number(2), c.ask(AppendProbe(nil, "c", "ping", text)))
		for _, subscriber := range []*conn{c, peer} {
			require.Equal(t, [][2]string{{"c", "ping"}}, subscriber.messages())
		}
	}
}

// micros returns the server's time in microseconds.
func (c *conn) micros() int64 {
	v := c.do("TIME")
	n, err := strconv.ParseInt(fmt.Sprintf("%s%06s", v.Elems[0].Text(), v.Elems[1].Text()), 10, 64)
	require.NoError(c.t, err)
	return n
}

// token returns the token of a reply, and checks the count in it.
func (c *conn) token(count int64, v Value) int64 {
	require.Equal(c.t, Array, v.Kind, v.Text())
	require.Len(c.t, v.Elems, 2)
	require.Equal(c.t, number(count), v.Elems[0])
	require.Equal(c.t, BulkString, v.Elems[1].Kind)
	n, ok := integer([]byte(v.Elems[1].Str))
	require.True(c.t, ok, v.Elems[1].Str)
	return n
}

func TestFenceScript(t *testing.T) {
	s := redistest.Start(t)
	c, peer := dial(t, s), dial(t, s)
	// Load the script, so that the server knows the hash.
	require.Equal(t, array(number(0), Value{}), c.ask(AppendFence(nil, "c", "", true)))

	for kind, text := range scriptForms {
		t.Run(kind, func(t *testing.T) {
			ch := "c " + kind
			key := FenceKey(ch)
			fence := func(ping string) Value { return c.ask(AppendFence(nil, ch, ping, text)) }

			// No subscriber: no token is drawn.
			require.Equal(t, array(number(0), Value{}), fence(""))
			require.Equal(t, Null, c.do("GET", key).Kind)

			// One subscriber: the first token is the time, and is stored.
			c.subscribe("SUBSCRIBE", ch)
			before := c.micros()
			token := c.token(1, fence(""))
			require.GreaterOrEqual(t, token, before)
			require.LessOrEqual(t, token, c.micros())
			require.Equal(t, strconv.FormatInt(token, 10), c.do("GET", key).Text())
			require.Greater(t, c.token(1, fence("")), token)
			require.Empty(t, c.messages(), "without a ping nothing is published")

			// Two subscribers: a token is drawn only with a ping.
			peer.subscribe("SUBSCRIBE", ch)
			stored := c.do("GET", key)
			require.Equal(t, array(number(2), Value{}), fence(""))
			require.Equal(t, stored, c.do("GET", key))
			require.Greater(t, c.token(2, fence("ping")), token)
			require.Equal(t, [][2]string{{ch, "ping"}}, c.messages())
			require.Equal(t, [][2]string{{ch, "ping"}}, peer.messages())

			// A counter behind the clock, as portalocker's is, catches up. One
			// ahead of it goes on by one.
			require.Equal(t, "OK", c.do("SET", key, "41").Text())
			require.GreaterOrEqual(t, c.token(2, fence("ping")), before)
			ahead := c.micros() + int64(time.Hour/time.Microsecond)
			require.Equal(t, "OK", c.do("SET", key, strconv.FormatInt(ahead, 10)).Text())
			require.Equal(t, ahead+1, c.token(2, fence("ping")))
			require.Equal(t, number(ahead+2), c.do("INCR", key))
			require.Equal(t, ahead+3, c.token(2, fence("ping")))

			// The token is exact above 2^53, where Lua's numbers are not.
			const big = 1<<53 + 1
			require.Equal(t, "OK", c.do("SET", key, strconv.Itoa(big)).Text())
			require.Equal(t, int64(big+1), c.token(2, fence("ping")))
			require.Equal(t, int64(big+2), c.token(2, fence("ping")))
			require.Equal(t, number(-1), c.do("TTL", key))
			require.Len(t, peer.messages(), 5)
			require.Len(t, c.messages(), 5)

			peer.subscribe("UNSUBSCRIBE", ch)
			c.subscribe("UNSUBSCRIBE", ch)
		})
	}
}

// If no token can be drawn, nothing is published: the caller gives up and leaves,
// so answers would be sent to nobody.
func TestFenceScriptOnAnotherKindOfKey(t *testing.T) {
	c := dial(t, redistest.Start(t))
	c.subscribe("SUBSCRIBE", "c")
	for _, text := range []bool{true, false} {
		for _, k := range []struct {
			name    string
			set     []string
			message string
		}{
			{"a list", []string{"RPUSH", FenceKey("c"), "x"}, "WRONGTYPE Operation against a key holding the wrong kind of value"},
			{"no number", []string{"SET", FenceKey("c"), "x"}, "ERR value is not an integer or out of range"},
			{"a fraction", []string{"SET", FenceKey("c"), "1.5"}, "ERR value is not an integer or out of range"},
			{"the end of numbers", []string{"SET", FenceKey("c"), "9223372036854775807"}, "ERR increment or decrement would overflow"},
		} {
			t.Run(k.name, func(t *testing.T) {
				c.do("DEL", FenceKey("c"))
				require.False(t, c.do(k.set...).IsError())
				for _, ping := range []string{"", "ping"} {
					v := c.ask(AppendFence(nil, "c", ping, text))
					require.True(t, v.IsError())
					require.Equal(t, k.message, v.Text())
				}
				require.Empty(t, c.messages())
			})
		}
	}
}

// The scripts work for a user with permission for the channels and the fence key
// only.
func TestScriptsOfAUserWithFewRights(t *testing.T) {
	c := dial(t, redistest.Start(t))
	require.Equal(t, "OK", c.do("ACL", "SETUSER", "few", "on", ">p", "resetchannels", "&c", "&c-*", "%RW~c-fence",
		"+hello", "+eval", "+pubsub", "+publish", "+incr", "+set", "+get", "+time").Text())
	require.Equal(t, Map, c.ask(AppendHello(nil, &Login{User: "few", Password: "p"}, "")).Kind)
	c.token(0, c.ask(AppendFence(nil, "c", "ping", true)))
	require.Equal(t, number(0), c.ask(AppendProbe(nil, "c", "ping", true)))
	require.Equal(t, number(0), c.ask(AppendWake(nil, "c", queueOf(3), true)))
	require.Contains(t, c.ask(AppendFence(nil, "d", "ping", true)).Text(), "NOPERM")
}

// expectedWakes computes in Go what the script must publish: the wake channel
// and the payload of each sleeper woken.
func expectedWakes(channel string, queue protocol.Queue, sleeps func(id string) bool) [][2]string {
	for len(queue) > 0 {
		group := 1
		for queue[0].Want == protocol.Shared && group < len(queue) && queue[group].Want == protocol.Shared {
			group++
		}
		var woken [][2]string
		for _, w := range queue[:group] {
			if sleeps(w.ID) {
				woken = append(woken, [2]string{WakeChannel(channel, w.ID), wakeWithQueue(queue[group:])})
			}
		}
		if queue = queue[group:]; len(woken) > 0 {
			return woken
		}
	}
	return nil
}

// queueFrom returns a queue of waiters that want x (exclusive) or s (shared).
func queueFrom(wants string) protocol.Queue {
	queue := queueOf(len(wants))
	for i, want := range wants {
		queue[i].Want = map[rune]protocol.Mode{'x': protocol.Exclusive, 's': protocol.Shared}[want]
	}
	return queue
}

func TestWakeScript(t *testing.T) {
	s := redistest.Start(t)
	c, sleeper, monitor := dial(t, s), dial(t, s), dial(t, s)
	// PUBLISH counts this subscriber of a pattern as a receiver of every wake.
	monitor.subscribe("PSUBSCRIBE", "*")
	require.Equal(t, number(0), c.ask(AppendWake(nil, "c", nil, true)))

	long := strings.Repeat("x", 254)
	for _, k := range []struct {
		wants, asleep string // asleep has a 1 for each waiter that sleeps
		woken         []int
	}{
		{"", "", nil},
		{"x", "0", nil},
		{"s", "0", nil},
		{"x", "1", []int{0}},
		{"s", "1", []int{0}},
		{"xx", "11", []int{0}},
		{"xx", "01", []int{1}},
		{"xs", "11", []int{0}},
		{"xss", "011", []int{1, 2}},
		{"ss", "11", []int{0, 1}},
		{"ssx", "111", []int{0, 1}},
		{"ssx", "011", []int{1}},
		{"ssx", "001", []int{2}},
		{"ssxs", "0001", []int{3}},
		{"ssxss", "11111", []int{0, 1}},
		{"sxsx", "0111", []int{1}},
		{"sxsxss", "000011", []int{4, 5}},
		{"ssxxsx", "000000", nil},
		{long + "ss", strings.Repeat("0", 254) + "11", []int{254, 255}},
		{long + "xx", strings.Repeat("0", 255) + "1", []int{255}},
		{strings.Repeat("s", 256), strings.Repeat("01", 128), nil},
	} {
		for kind, text := range scriptForms {
			for _, channel := range []string{"c", "größe \n", "\xff\xfe"} {
				queue := queueFrom(k.wants)
				asleep := map[string]bool{}
				var names []string
				for i, yes := range k.asleep {
					if yes == '1' {
						asleep[queue[i].ID] = true
						names = append(names, WakeChannel(channel, queue[i].ID))
					}
				}
				if len(names) > 0 {
					sleeper.subscribe("SUBSCRIBE", names...)
				}
				want := expectedWakes(channel, queue, func(id string) bool { return asleep[id] })
				if k.woken != nil {
					require.Len(t, want, len(k.woken))
					for i, at := range k.woken {
						require.Equal(t, WakeChannel(channel, queue[at].ID), want[i][0])
					}
				}
				got := c.ask(AppendWake(nil, channel, queue, text))
				require.Equal(t, number(int64(len(want))), got, "%s %s %s", k.wants, k.asleep, kind)
				require.Equal(t, want, sleeper.messages())
				if len(names) > 0 {
					sleeper.subscribe("UNSUBSCRIBE", names...)
				}
			}
		}
	}
}

func TestWakeScriptOfRandomQueues(t *testing.T) {
	s := redistest.Start(t)
	c, sleeper := dial(t, s), dial(t, s)
	rng := random(t)
	for range 200 {
		queue, asleep := randomSleepers(rng)
		var names []string
		for _, w := range queue {
			if asleep[w.ID] {
				names = append(names, WakeChannel("c", w.ID))
			}
		}
		sleeper.subscribe("SUBSCRIBE", append(names, "c")...)
		want := expectedWakes("c", queue, func(id string) bool { return asleep[id] })
		require.Equal(t, number(int64(len(want))), c.ask(AppendWake(nil, "c", queue, true)))
		heard := sleeper.messages()
		require.Equal(t, want, heard)
		for _, message := range heard {
			_, ok := DecodeWake(message[1])
			require.True(t, ok)
		}
		sleeper.subscribe("UNSUBSCRIBE", append(names, "c")...)
	}
}

func randomSleepers(rng *rand.Rand) (protocol.Queue, map[string]bool) {
	var queue protocol.Queue
	for range rng.IntN(20) {
		queue = append(queue, randomQueue(rng)...)
	}
	asleep := map[string]bool{}
	for _, w := range queue {
		asleep[w.ID] = rng.IntN(8) == 0
	}
	return queue, asleep
}

// A queue longer than the luggage: only the luggage is tried.
func TestWakeScriptOfALongQueue(t *testing.T) {
	s := redistest.Start(t)
	c, sleeper := dial(t, s), dial(t, s)
	queue := queueFrom(strings.Repeat("x", protocol.MaxQueue))
	sleeper.subscribe("SUBSCRIBE", WakeChannel("c", queue[1].ID), WakeChannel("c", queue[300].ID))
	require.Equal(t, number(1), c.ask(AppendWake(nil, "c", queue, true)))
	require.Equal(t, [][2]string{{WakeChannel("c", queue[1].ID), wakeWithQueue(queue[2:protocol.MaxLuggage])}}, sleeper.messages())
}

func TestOtherCommandsOnAServer(t *testing.T) {
	s := redistest.Start(t)
	c, reader, holder := dial(t, s), dial(t, s), dial(t, s)
	queue := protocol.Queue{{ID: idA, Want: protocol.Shared}, {ID: idB, Want: protocol.Exclusive}}
	for _, channel := range []string{"c", "\xff\xfe"} {
		reader.subscribe("SUBSCRIBE", WakeChannel(channel, idB), WaitersChannel(channel))
		count := func(command []byte) (counts []int64) {
			v := c.ask(command)
			for i := 1; i < len(v.Elems); i += 2 {
				counts = append(counts, v.Elems[i].Int)
			}
			return counts
		}
		require.Equal(t, []int64{0}, count(AppendCount(nil, channel)))
		require.Equal(t, []int64{0, 1}, count(AppendPoll(nil, channel)))
		require.Equal(t, []int64{0, 1}, count(AppendCountWaiters(nil, channel, queue)))
		require.Empty(t, count(AppendCountWaiters(nil, channel, nil)))

		require.Equal(t, number(1), c.ask(AppendWakeReaders(nil, channel)))
		require.Equal(t, [][2]string{{WaitersChannel(channel), EncodeWakeReaders()}}, reader.messages())

		require.Equal(t, Map, holder.ask(AppendHello(nil, nil, ConnName(channel, idA))).Kind)
		holder.subscribe("SUBSCRIBE", channel)
		clients := ParseClients(channel, c.ask(AppendList(nil)).Text())
		require.Len(t, clients, 2, "the reader has no name, so it may be subscribed to any channel")
		require.Equal(t, Client{Num: clients[1].Num, HolderID: idA, Name: ConnName(channel, idA),
			Addr: holder.LocalAddr().String(), Subs: 1}, clients[1])
		require.Equal(t, number(1), c.ask(AppendKill(nil, clients[1].Num)))
		require.Equal(t, []int64{0}, count(AppendCount(nil, channel)))
		require.Equal(t, number(0), c.ask(AppendKill(nil, clients[1].Num)), "already killed")
		holder = dial(t, s)
		reader.subscribe("UNSUBSCRIBE", WakeChannel(channel, idB), WaitersChannel(channel))
	}
	require.Equal(t, "OK", c.ask(AppendSelect(nil, 3)).Text())
	require.True(t, c.ask(AppendSelect(nil, 1_000)).IsError())
}

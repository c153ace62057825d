package actor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tetherlock/tether/protocol"
	"github.com/tetherlock/tether/wire"
)

// The channels of a world, and who subscribes to what else.
const (
	theChannel = "C"
	theWaiters = "WAIT"
)

func wakeChannel(id string) string { return "W" + id }

// increment is portalocker's INCR of the fencing counter.
const increment Op = 200

// posted is a command that the server has yet to read.
type posted struct {
	command Command
	at      time.Time
	counted int // of a probe in two steps: what its first step has counted
}

// got is a frame that a participant has yet to read.
type got struct {
	frame  Input
	at     time.Time
	serial int // of the server's command that caused it
	from   int // participant that caused it
}

// conn is one connection: what the server has yet to read, and what its
// participant has yet to read, both in order.
type conn struct {
	num      int64
	id       string // holder id
	name     string
	node     int
	owner    int // participant, nobody for an idle one
	up       bool
	ending   bool // closed by the participant, but there is more to read
	subs     []string
	joined   int // serial of the subscription to the lock's channel
	in       []posted
	out      []got
	parked   bool // idle, in the hands of a client
	pool     int
	stranger bool // subscribed to something else
}

const nobody = -1

func (c *conn) on(channel string) bool { return c.up && slices.Contains(c.subs, channel) }

// redis is a Redis with one master. After a failover the old one lives on as
// a replica, with the connections that it has.
type redis struct {
	conns   []*conn
	nums    int64
	serial  int // commands run so far
	known   [increment]bool
	fence   int64
	master  int
	demoted []int     // serial at which a node ceased to be the master
	held    time.Time // until then writes wait
	denies  bool      // it may refuse a command
	apart   bool      // a probe counts and pings in two steps
}

func (w *model) dialTo(owner int, id, name string) *conn {
	w.nums++
	c := &conn{num: w.nums, id: id, name: name, node: w.master, owner: owner, up: true}
	w.conns = append(w.conns, c)
	return c
}

// write puts commands on a connection. Those of one write are not one step.
func (w *model) write(c *conn, commands ...Command) {
	if !c.up || c.ending {
		return
	}
	for _, command := range commands {
		// It is on its way now, whatever becomes of the sender's queue.
		command.Queue = slices.Clone(command.Queue)
		if p := command.Ping; p != nil {
			command.Ping = &protocol.Ping{Response: p.Response, ID: p.ID, Want: p.Want, First: p.First, Queue: slices.Clone(p.Queue)}
		}
		c.in = append(c.in, posted{command: command, at: w.now, counted: -1})
	}
}

// cut ends a connection at the server. What was sent before is still read.
func (w *model) cut(c *conn) {
	if c.up {
		c.up, c.subs, c.in = false, nil, nil
		w.push(c, Disconnected{Err: errKilled}, nobody)
	}
}

var errKilled = errors.New("killed")

// hangUp closes a connection from the participant's side.
func (w *model) hangUp(c *conn, readFirst bool) {
	c.owner = nobody
	if readFirst && len(c.in) > 0 {
		c.ending = true
		return
	}
	c.up, c.subs, c.in = false, nil, nil
}

// addNeighbour connects a holder of another lock whose name begins like this
// one's.
func (w *model) addNeighbour() {
	id := strings.Repeat("ab", 16)
	c := w.dialTo(nobody, id, wire.ConnName(theChannel+"-lock-b", id))
	c.stranger, c.subs = true, []string{theChannel + "-lock-b"}
}

func (w *model) push(c *conn, frame Input, from int) {
	c.out = append(c.out, got{frame: frame, at: w.now, serial: w.serial, from: from})
}

// writes says whether a pause of writes holds a command.
func writes(op Op) bool {
	switch op {
	case CountAndDraw, Probe, ProbeAndDraw, SelfPing, Answer, Wake, WakeReaders, increment:
		return true
	default:
		return false
	}
}

// ready says whether the server can run the next command of a connection.
func (w *model) ready(c *conn) bool {
	return c.up && len(c.in) > 0 && !(w.now.Before(w.held) && writes(c.in[0].command.Op))
}

// serve runs the next command of a connection.
func (w *model) serve(c *conn) {
	w.serial++
	s := c.in[0]
	if s.command.Op == Probe && w.apart && s.counted < 0 {
		c.in[0].counted = len(w.listeners(c.node, theChannel))
		w.note("server counts %d for the probe of %s", c.in[0].counted, short(c.id))
		return
	}
	c.in = c.in[1:]
	if w.logging {
		w.note("server: %s runs %s", w.title(c), clean(s.command))
	}
	w.run(c, s)
	if c.ending && len(c.in) == 0 {
		c.up, c.subs = false, nil
	}
}

func (w *model) run(c *conn, s posted) {
	k := s.command
	if w.refuses(c, k) {
		return
	}
	switch k.Op {
	case Login, Hello:
		w.greet(c, k)
	case Subscribe:
		if k.Channel == theChannel && !c.on(theChannel) {
			c.joined = w.serial
		}
		if !c.on(k.Channel) {
			c.subs = append(c.subs, k.Channel)
		}
		w.push(c, Subscribed{k.Channel}, c.owner)
	case Unsubscribe:
		c.subs = slices.DeleteFunc(slices.Clone(c.subs), func(s string) bool { return s == k.Channel })
		w.push(c, Unsubscribed{k.Channel}, c.owner)
	case Count:
		w.push(c, Counted{N: len(w.listeners(c.node, theChannel))}, c.owner)
	case Poll:
		w.push(c, Polled{N: len(w.listeners(c.node, theChannel)), Sleepers: len(w.listeners(c.node, theWaiters))}, c.owner)
	case CountWaiters:
		w.push(c, WaitersCounted{Counts: w.listening(c, k.Queue)}, c.owner)
	case List:
		w.push(c, Listed{Connections: w.list(c.node, k.Text)}, c.owner)
	case Kill:
		w.push(c, Killed{N: w.kill(c, k.Num)}, c.owner)
	case CountAndDraw, Probe, ProbeAndDraw, Wake:
		w.script(c, s)
	case SelfPing, Answer, WakeReaders:
		w.publish(c, k)
		w.push(c, Done{}, c.owner)
	case increment:
		w.fence++
		w.push(c, Counted{Token: w.fence}, c.owner)
	default:
		w.push(c, Done{}, c.owner)
	}
}

// refuses runs a command into an error, if that is to happen.
func (w *model) refuses(c *conn, k Command) bool {
	message := ""
	switch {
	case k.Op == CountAndDraw || k.Op == Probe || k.Op == ProbeAndDraw || k.Op == Wake:
		script := k.Op
		if script == ProbeAndDraw {
			script = CountAndDraw // it is one script
		}
		w.known[script] = w.known[script] || k.Text
		if !w.known[script] {
			message = "NOSCRIPT No matching script."
		} else if c.node != w.master && (k.Op == ProbeAndDraw || k.Op == CountAndDraw && len(w.listeners(c.node, theChannel)) == 1) {
			message = "READONLY You can't write against a read only replica."
		}
	case w.denies && (k.Op == Subscribe || k.Op == List || k.Op == Kill) && c.owner >= 0 && w.locks[c.owner] != nil && w.chance(20):
		message = "NOPERM this user has no permissions"
	}
	if message != "" {
		w.push(c, Failed{Command: k.Op, Text: k.Text, Message: message}, c.owner)
	}
	return message != ""
}

func (w *model) greet(c *conn, k Command) {
	switch k.Naming {
	case LockName:
		c.name = wire.ConnName(theChannel, c.id)
	case IdleName:
		c.name = wire.IdleName
	case KeepName:
	}
	if k.Op == Login {
		w.push(c, Done{}, c.owner)
		return
	}
	role := "master"
	if c.node != w.master {
		role = "replica"
	}
	w.push(c, Greeted{Role: role, Mode: "standalone"}, c.owner)
}

// script runs what is one step at the server.
func (w *model) script(c *conn, s posted) {
	k := s.command
	n := len(w.listeners(c.node, theChannel))
	switch k.Op {
	case CountAndDraw:
		var token int64
		if n == 1 {
			token = w.draw()
		}
		w.push(c, Counted{N: n, Token: token}, c.owner)
	case Probe:
		if s.counted >= 0 {
			n = s.counted
		}
		w.publish(c, k)
		w.push(c, Probed{N: n}, c.owner)
	case ProbeAndDraw:
		token := w.draw()
		w.publish(c, k)
		w.push(c, Probed{N: n, Token: token}, c.owner)
	case Wake:
		w.push(c, Waked{N: w.wake(c, k.Queue)}, c.owner)
	default:
	}
}

// draw gives a fencing token out. The server's clock is ahead of every counter:
// no command takes less than a microsecond.
func (w *model) draw() int64 {
	w.fence = max(w.fence+1, w.now.UnixMicro()+int64(w.serial))
	return w.fence
}

// wake publishes down a queue until somebody receives it. Readers at the head
// go together.
func (w *model) wake(c *conn, queue protocol.Queue) int {
	for i := 0; i < len(queue); {
		j := i + 1
		for queue[i].Want == protocol.Shared && j < len(queue) && queue[j].Want == protocol.Shared {
			j++
		}
		n := 0
		for _, waiter := range queue[i:j] {
			for _, l := range w.listeners(c.node, wakeChannel(waiter.ID)) {
				w.push(l, Woken{Wake: protocol.Wake{Queue: slices.Clone(queue[j:])}}, c.owner)
				n++
			}
		}
		if n > 0 {
			return n
		}
		i = j
	}
	return 0
}

// publish delivers a message to whoever is subscribed.
func (w *model) publish(c *conn, k Command) {
	switch k.Op {
	case Probe, ProbeAndDraw, SelfPing:
		to := w.listeners(c.node, theChannel)
		for _, l := range to {
			w.push(l, Pinged{Ping: *k.Ping}, c.owner)
		}
		if c.owner >= 0 && w.ports[c.owner] != nil {
			w.ports[c.owner].asked(to)
		}
	case Answer:
		for _, l := range w.listeners(c.node, k.Channel) {
			w.push(l, Answered{Response: k.Channel, Record: *k.Record, Queue: k.Queue}, c.owner)
		}
	case WakeReaders:
		for _, l := range w.listeners(c.node, theWaiters) {
			w.push(l, Woken{Wake: protocol.Wake{Readers: true}}, c.owner)
		}
	default:
	}
}

// listeners are the connections to a node that are subscribed to a channel.
func (w *model) listeners(node int, channel string) []*conn {
	var list []*conn
	for _, c := range w.conns {
		if c.node == node && c.on(channel) {
			list = append(list, c)
		}
	}
	return list
}

func (w *model) listening(c *conn, queue protocol.Queue) []int {
	counts := make([]int, len(queue))
	for i, waiter := range queue {
		counts[i] = len(w.listeners(c.node, wakeChannel(waiter.ID)))
	}
	return counts
}

// list is what CLIENT LIST tells of the subscribers, or of everybody.
func (w *model) list(node int, everybody bool) []Connection {
	var text strings.Builder
	for _, c := range w.conns {
		if c.up && c.node == node && (everybody || len(c.subs) > 0) {
			fmt.Fprintf(&text, "id=%d addr=addr name=%s sub=%d\n", c.num, c.name, max(len(c.subs), 1))
		}
	}
	var list []Connection
	for _, c := range wire.ParseClients(theChannel, text.String()) {
		list = append(list, Connection{Num: c.Num, ID: c.HolderID, Legacy: c.Legacy, Addr: c.Addr})
	}
	return list
}

func (w *model) kill(by *conn, num int64) int {
	for _, c := range w.conns {
		if c.up && c.node == by.node && c.num == num {
			w.judgeKill(by, c)
			w.cut(c)
			return 1
		}
	}
	return 0
}

// failover makes a replica of the master. Its connections stay.
func (w *model) failover() {
	w.demoted = append(w.demoted, w.serial)
	w.master++
	w.fence = w.fence / 2 // it has lost the last writes
	w.known = [increment]bool{}
}

// sweep forgets the connections that nobody has anything to do with.
func (w *model) sweep() {
	w.conns = slices.DeleteFunc(w.conns, func(c *conn) bool { return !c.up && c.owner == nobody && !c.parked && !c.stranger })
}

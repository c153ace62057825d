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

// The channels of a model. Response channels are called R and P, a wake channel W.
const (
	lockChannel    = "C"
	waitersChannel = "WAIT"
)

func wakeChannel(id string) string { return "W" + id }

// incrementFence is portalocker's INCR of the fencing counter.
const incrementFence Op = 200

// request is a command that the server has not read yet.
type request struct {
	command    Command
	at         time.Time
	firstCount int // with splitProbe: the count of the first step, -1 before it
}

// delivery is a frame that a process has not read yet.
type delivery struct {
	frame  Input
	at     time.Time
	serial int // of the command that caused it
	from   int // process that caused it, or nobody
}

// conn is one connection, with a queue in either direction.
type conn struct {
	num          int64
	id           string // holder id
	name         string
	node         int
	owner        int // process number, or nobody
	up           bool
	closing      bool // closed by its process; the server still reads its requests
	subs         []string
	joinedSerial int // serial of the subscription to the lock's channel
	requests     []request
	deliveries   []delivery
	parked       bool // in the connection pool
	pool         int
	foreign      bool // of a client that does not use the lock
}

// nobody is the owner of a connection without a process.
const nobody = -1

func (c *conn) subscribedTo(channel string) bool { return c.up && slices.Contains(c.subs, channel) }

// redis is a Redis with one master. After a failover the old master becomes a
// replica and keeps its connections.
type redis struct {
	conns             []*conn
	lastNum           int64 // of a connection
	serial            int   // of the last command that the server has run
	loadedScripts     [incrementFence]bool
	fenceCounter      int64
	master            int       // node number
	demotedSerials    []int     // for each old master, the serial at its demotion
	writesPausedUntil time.Time // CLIENT PAUSE WRITE
	deniesCommands    bool      // commands may fail with NOPERM
	splitProbe        bool      // a mutation: a probe counts and pings in two steps
}

func (m *model) openConn(owner int, id, name string) *conn {
	m.lastNum++
	c := &conn{num: m.lastNum, id: id, name: name, node: m.master, owner: owner, up: true}
	m.conns = append(m.conns, c)
	return c
}

// send writes commands to a connection. The server may run other connections'
// commands between them.
func (m *model) send(c *conn, commands ...Command) {
	if !c.up || c.closing {
		return
	}
	for _, command := range commands {
		// A copy: the sender may change its queue after this.
		command.Queue = slices.Clone(command.Queue)
		if p := command.Ping; p != nil {
			command.Ping = &protocol.Ping{Response: p.Response, ID: p.ID, Want: p.Want, First: p.First, Queue: slices.Clone(p.Queue)}
		}
		c.requests = append(c.requests, request{command: command, at: m.now, firstCount: -1})
	}
}

// disconnect ends a connection at the server. The process still reads the frames
// that were sent before.
func (m *model) disconnect(c *conn) {
	if c.up {
		c.up, c.subs, c.requests = false, nil, nil
		m.push(c, Disconnected{Err: errKilled}, nobody)
	}
}

var errKilled = errors.New("killed")

// closeConn closes a connection from the side of its process. With readFirst the
// server still reads the requests that were sent before.
func (m *model) closeConn(c *conn, readFirst bool) {
	c.owner = nobody
	if readFirst && len(c.requests) > 0 {
		c.closing = true
		return
	}
	c.up, c.subs, c.requests = false, nil, nil
}

// addForeignHolder connects the holder of another lock, whose connection name
// begins like those of this lock. Reaping by prefix would kill it.
func (m *model) addForeignHolder() {
	id := strings.Repeat("ab", 16)
	c := m.openConn(nobody, id, wire.ConnName(lockChannel+"-lock-b", id))
	c.foreign, c.subs = true, []string{lockChannel + "-lock-b"}
}

// push sends a push or a reply to the process of a connection.
func (m *model) push(c *conn, frame Input, from int) {
	c.deliveries = append(c.deliveries, delivery{frame: frame, at: m.now, serial: m.serial, from: from})
}

// isWrite reports whether CLIENT PAUSE WRITE holds a command.
func isWrite(op Op) bool {
	switch op {
	case CountAndDraw, Probe, ProbeAndDraw, SelfPing, Answer, Wake, WakeReaders, incrementFence:
		return true
	default:
		return false
	}
}

// canServe reports whether the server can run the next command of a connection.
func (m *model) canServe(c *conn) bool {
	return c.up && len(c.requests) > 0 && !(m.now.Before(m.writesPausedUntil) && isWrite(c.requests[0].command.Op))
}

// serve runs the next command of a connection.
func (m *model) serve(c *conn) {
	m.serial++
	s := c.requests[0]
	if s.command.Op == Probe && m.splitProbe && s.firstCount < 0 {
		c.requests[0].firstCount = len(m.subscribers(c.node, lockChannel))
		m.logf("server counts %d for the probe of %s", c.requests[0].firstCount, shortID(c.id))
		return
	}
	c.requests = c.requests[1:]
	if m.logging {
		m.logf("server: %s runs %s", m.describeConn(c), formatValue(s.command))
	}
	m.execute(c, s)
	if c.closing && len(c.requests) == 0 {
		c.up, c.subs = false, nil
	}
}

// execute runs a command and sends its reply.
func (m *model) execute(c *conn, s request) {
	k := s.command
	if m.rejects(c, k) {
		return
	}
	switch k.Op {
	case Login, Hello:
		m.hello(c, k)
	case Subscribe:
		if k.Channel == lockChannel && !c.subscribedTo(lockChannel) {
			c.joinedSerial = m.serial
		}
		if !c.subscribedTo(k.Channel) {
			c.subs = append(c.subs, k.Channel)
		}
		m.push(c, Subscribed{k.Channel}, c.owner)
	case Unsubscribe:
		c.subs = slices.DeleteFunc(slices.Clone(c.subs), func(s string) bool { return s == k.Channel })
		m.push(c, Unsubscribed{k.Channel}, c.owner)
	case Count:
		m.push(c, Counted{N: len(m.subscribers(c.node, lockChannel))}, c.owner)
	case Poll:
		m.push(c, Polled{N: len(m.subscribers(c.node, lockChannel)), Sleepers: len(m.subscribers(c.node, waitersChannel))}, c.owner)
	case CountWaiters:
		m.push(c, WaitersCounted{Counts: m.countWaiters(c, k.Queue)}, c.owner)
	case List:
		m.push(c, Listed{Connections: m.clientList(c.node, k.Text)}, c.owner)
	case Kill:
		m.push(c, Killed{N: m.clientKill(c, k.Num)}, c.owner)
	case CountAndDraw, Probe, ProbeAndDraw, Wake:
		m.runScript(c, s)
	case SelfPing, Answer, WakeReaders:
		m.publish(c, k)
		m.push(c, Done{}, c.owner)
	case incrementFence:
		m.fenceCounter++
		m.push(c, Counted{Token: m.fenceCounter}, c.owner)
	default:
		m.push(c, Done{}, c.owner)
	}
}

// rejects replies to a command with an error if it fails.
func (m *model) rejects(c *conn, k Command) bool {
	message := ""
	switch {
	case k.Op == CountAndDraw || k.Op == Probe || k.Op == ProbeAndDraw || k.Op == Wake:
		script := k.Op
		if script == ProbeAndDraw {
			script = CountAndDraw // both run the same script
		}
		m.loadedScripts[script] = m.loadedScripts[script] || k.Text
		if !m.loadedScripts[script] {
			message = "NOSCRIPT No matching script."
		} else if c.node != m.master && (k.Op == ProbeAndDraw || k.Op == CountAndDraw && len(m.subscribers(c.node, lockChannel)) == 1) {
			message = "READONLY You can't write against a read only replica."
		}
	case m.deniesCommands && (k.Op == Subscribe || k.Op == List || k.Op == Kill) && c.owner >= 0 && m.locks[c.owner] != nil && m.chance(20):
		message = "NOPERM this user has no permissions"
	}
	if message != "" {
		m.push(c, Failed{Command: k.Op, Text: k.Text, Message: message}, c.owner)
	}
	return message != ""
}

// hello runs HELLO, which sets the name of the connection and tells the role.
func (m *model) hello(c *conn, k Command) {
	switch k.Naming {
	case LockName:
		c.name = wire.ConnName(lockChannel, c.id)
	case IdleName:
		c.name = wire.IdleName
	case KeepName:
	}
	if k.Op == Login {
		m.push(c, Done{}, c.owner)
		return
	}
	role := "master"
	if c.node != m.master {
		role = "replica"
	}
	m.push(c, Greeted{Role: role, Mode: "standalone"}, c.owner)
}

// runScript runs a script, which is atomic at the server.
func (m *model) runScript(c *conn, s request) {
	k := s.command
	n := len(m.subscribers(c.node, lockChannel))
	switch k.Op {
	case CountAndDraw:
		var token int64
		if n == 1 {
			token = m.drawToken()
		}
		m.push(c, Counted{N: n, Token: token}, c.owner)
	case Probe:
		if s.firstCount >= 0 {
			n = s.firstCount
		}
		m.publish(c, k)
		m.push(c, Probed{N: n}, c.owner)
	case ProbeAndDraw:
		token := m.drawToken()
		m.publish(c, k)
		m.push(c, Probed{N: n, Token: token}, c.owner)
	case Wake:
		m.push(c, Waked{N: m.wakeQueue(c, k.Queue)}, c.owner)
	default:
	}
}

// drawToken draws a fencing token. The server's clock is ahead of every counter,
// because no command takes less than a microsecond.
func (m *model) drawToken() int64 {
	m.fenceCounter = max(m.fenceCounter+1, m.now.UnixMicro()+int64(m.serial))
	return m.fenceCounter
}

// wakeQueue publishes a wake to the waiters of a queue in order, until one of them
// receives it. Readers at the head are woken together. It returns the number of
// receivers.
func (m *model) wakeQueue(c *conn, queue protocol.Queue) int {
	for i := 0; i < len(queue); {
		j := i + 1
		for queue[i].Want == protocol.Shared && j < len(queue) && queue[j].Want == protocol.Shared {
			j++
		}
		n := 0
		for _, waiter := range queue[i:j] {
			for _, l := range m.subscribers(c.node, wakeChannel(waiter.ID)) {
				m.push(l, Woken{Wake: protocol.Wake{Queue: slices.Clone(queue[j:])}}, c.owner)
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

// publish sends a message to the subscribers of its channel.
func (m *model) publish(c *conn, k Command) {
	switch k.Op {
	case Probe, ProbeAndDraw, SelfPing:
		to := m.subscribers(c.node, lockChannel)
		for _, l := range to {
			m.push(l, Pinged{Ping: *k.Ping}, c.owner)
		}
		if c.owner >= 0 && m.peers[c.owner] != nil {
			m.peers[c.owner].pingDelivered(to)
		}
	case Answer:
		for _, l := range m.subscribers(c.node, k.Channel) {
			m.push(l, Answered{Response: k.Channel, Record: *k.Record, Queue: k.Queue}, c.owner)
		}
	case WakeReaders:
		for _, l := range m.subscribers(c.node, waitersChannel) {
			m.push(l, Woken{Wake: protocol.Wake{Readers: true}}, c.owner)
		}
	default:
	}
}

// subscribers returns the connections to a node that are subscribed to a channel.
func (m *model) subscribers(node int, channel string) []*conn {
	var list []*conn
	for _, c := range m.conns {
		if c.node == node && c.subscribedTo(channel) {
			list = append(list, c)
		}
	}
	return list
}

// countWaiters counts the subscribers of the wake channel of each waiter.
func (m *model) countWaiters(c *conn, queue protocol.Queue) []int {
	counts := make([]int, len(queue))
	for i, waiter := range queue {
		counts[i] = len(m.subscribers(c.node, wakeChannel(waiter.ID)))
	}
	return counts
}

// clientList is the reply to CLIENT LIST, of the subscribers or of all clients.
func (m *model) clientList(node int, all bool) []Connection {
	var text strings.Builder
	for _, c := range m.conns {
		if c.up && c.node == node && (all || len(c.subs) > 0) {
			fmt.Fprintf(&text, "id=%d addr=addr name=%s sub=%d\n", c.num, c.name, max(len(c.subs), 1))
		}
	}
	var list []Connection
	for _, c := range wire.ParseClients(lockChannel, text.String()) {
		list = append(list, Connection{Num: c.Num, ID: c.HolderID, Legacy: c.Legacy, Addr: c.Addr})
	}
	return list
}

// clientKill runs CLIENT KILL and returns the number of connections it has ended.
func (m *model) clientKill(by *conn, num int64) int {
	for _, c := range m.conns {
		if c.up && c.node == by.node && c.num == num {
			m.checkKill(by, c)
			m.disconnect(c)
			return 1
		}
	}
	return 0
}

// failover demotes the master and promotes a new node. The old node keeps its
// connections.
func (m *model) failover() {
	m.demotedSerials = append(m.demotedSerials, m.serial)
	m.master++
	m.fenceCounter = m.fenceCounter / 2 // the new master has not got the last writes
	m.loadedScripts = [incrementFence]bool{}
}

// forgetClosed removes the connections that have ended and belong to nobody.
func (m *model) forgetClosed() {
	m.conns = slices.DeleteFunc(m.conns, func(c *conn) bool { return !c.up && c.owner == nobody && !c.parked && !c.foreign })
}

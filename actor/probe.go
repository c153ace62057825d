package actor

import (
	"fmt"
	"slices"
	"time"

	"github.com/tetherlock/tether/protocol"
)

// probe is one question to the channel: the count of an attempt's beginning,
// or a ping and its answers.
type probe struct {
	response string // channel of the answers; empty for a count
	sent     time.Time
	n        int       // who is to answer; below zero until that is known
	limit    time.Time // whoever has not answered by then is silent
	recount  time.Time // zero while a count is out
	budget   time.Time // of a confirm
	greeted  bool      // the node was a master behind the question
	skip     int       // greetings to come that stand before the question
	self     bool      // the own ping has come back
	records  []protocol.Record
	legacy   int
}

func (p phase) probing() bool { return p == electing || p == confirming }

// ask pings the channel and counts who gets the ping, in one script: as two
// steps, somebody who joins in between could stand in for a holder who leaves.
func (m *Machine) ask(p phase) {
	budget := m.probe.budget
	if p == confirming && m.phase == electing {
		budget = m.now.Add(unavailable)
	}
	m.phase = p
	m.probe = probe{response: m.cfg.Response(), sent: m.now, n: -1, budget: budget}
	m.serve.trips++
	m.send(append(m.unsubscribes(m.cfg.Channel),
		Command{Op: Subscribe, Channel: m.probe.response},
		Command{Op: Probe, Channel: m.probe.response},
		Command{Op: Hello})...)
}

// pinged answers everybody, whatever the lock is doing: who stays silent is
// killed by its peers.
func (m *Machine) pinged(response string) {
	if response == m.probe.response {
		m.probe.self = true
		m.progress()
		return
	}
	if m.link.find(m.cfg.Channel) != nil {
		m.send(Command{Op: Answer, Channel: response, Record: m.record()})
	}
}

// record is what the lock says of itself.
func (m *Machine) record() protocol.Record {
	r := protocol.Record{ID: m.link.id, Mode: m.mode, Election: protocol.NotElected}
	if m.chief {
		r.Election = protocol.Elected
	}
	if m.phase == holding {
		r.Held = m.now.Sub(m.hold.since).Milliseconds()
	}
	return r
}

func (m *Machine) answered(in Answered) {
	if in.Response != m.probe.response || !m.phase.probing() {
		return
	}
	r := in.Record
	if r.Legacy {
		// Without identity, every reply counts as one participant.
		m.probe.legacy++
		r.ID = fmt.Sprintf("legacy-%d", m.probe.legacy-1)
	}
	if r.ID == m.link.id {
		return // not from here: the own record is never published to oneself
	}
	if i := slices.IndexFunc(m.probe.records, func(o protocol.Record) bool { return o.ID == r.ID }); i >= 0 {
		m.probe.records[i] = r
	} else {
		m.probe.records = append(m.probe.records, r)
	}
	m.progress()
}

func (m *Machine) probed(n int) {
	if !m.phase.probing() || m.probe.n >= 0 {
		return
	}
	if n < 1 {
		m.fail(uncounted(Probe))
		return
	}
	m.probe.n = n
	m.probe.limit = m.now.Add(unavailable)
	m.probe.recount = m.now.Add(recount)
	m.progress()
}

func (m *Machine) greeted(g Greeted) {
	f := greetingFault(g)
	switch {
	case m.phase == holding:
		m.checked(f)
	case m.phase != joining && !m.phase.probing():
	case m.probe.skip > 0:
		m.probe.skip--
	case f != nil:
		m.fail(f)
	default:
		m.probe.greeted = true
		m.progress()
	}
}

func (m *Machine) counted(n int) {
	switch m.phase {
	case joining:
		if !m.link.on(m.cfg.Channel) {
			// A count in front of the subscription may have left us out.
			m.probe.skip++
			m.send(Command{Op: Count}, Command{Op: Hello})
			return
		}
		m.probe.n = n
		if n == 1 {
			// From here on the stream brings only pings of those who came
			// later, and they must see that the lock is taken.
			m.mode = protocol.Exclusive
		}
		m.progress()
	case electing, confirming:
		m.recounted(n)
	case sleeping:
		m.looked(n)
	case resting, dialing, elected, doubting, leaving, holding:
	}
}

// recounted looks whether somebody who got the ping has left.
func (m *Machine) recounted(n int) {
	m.probe.recount = m.now.Add(recount)
	switch {
	case n >= m.probe.n:
	case m.phase == confirming && !m.now.Before(m.probe.budget):
		m.demote(nil)
	default:
		m.ask(m.phase)
	}
}

// progress looks whether a question is answered.
func (m *Machine) progress() {
	p := &m.probe
	switch {
	case m.phase == joining:
		m.joined()
	case !m.phase.probing() || !p.greeted || !p.self || p.n < 0 || !m.link.on(p.response):
	case 1+len(p.records) < p.n:
	case m.phase == electing:
		m.elect(p.records)
	default:
		m.confirm(p.records)
	}
}

func (m *Machine) elect(others []protocol.Record) {
	m.see(others)
	held := len(m.serve.holders) > 0
	switch v := protocol.Elect(m.link.id, m.chief, others); v {
	case protocol.Promote:
		m.mode = protocol.Exclusive
		m.win()
		m.ask(confirming)
	case protocol.Wait:
		if held && m.calls[0].Try {
			m.refuseHeld()
			return
		}
		m.win()
		m.phase = elected
		pause := m.quick()
		if held {
			pause = m.jittered(poll)
			m.notify(Waiting{Holders: m.serve.holders})
		}
		m.serve.wake = m.now.Add(pause)
	default:
		m.lost(v == protocol.Held)
	}
}

// see keeps who is in the way, for errors and events.
func (m *Machine) see(others []protocol.Record) {
	m.serve.holders = slices.Clone(protocol.Blocking(protocol.Exclusive, others))
	m.serve.silent = 0
}

func (m *Machine) win() {
	if !m.chief {
		m.chief = true
		m.notify(WonElection{})
	}
}

// lost leaves the channel to whoever goes first, and comes back: later when
// that one holds the lock or has won it, soon when it may still fail.
func (m *Machine) lost(taken bool) {
	held := len(m.serve.holders) > 0
	switch {
	case held && m.calls[0].Try:
		m.refuseHeld()
	case m.calls[0].Try, !taken:
		m.depart(departure{pause: m.quick()})
	default:
		m.notify(Waiting{Holders: m.serve.holders})
		m.depart(departure{pause: m.jittered(poll), look: true})
	}
}

// refuseHeld ends a try at the sight of a holder.
func (m *Machine) refuseHeld() {
	r := m.refusal(Contended, nil)
	m.depart(departure{refusal: &r})
}

func (m *Machine) confirm(others []protocol.Record) {
	switch protocol.Confirm(m.link.id, others) {
	case protocol.Granted:
		m.grant()
	case protocol.Again:
		m.phase = doubting
		m.serve.wake = m.now.Add(m.quick())
		if !m.serve.wake.Before(m.probe.budget) {
			m.demote(others)
		}
	default:
		m.demote(others)
	}
}

// demote gives a promotion up that could not be confirmed.
func (m *Machine) demote(others []protocol.Record) {
	m.see(others)
	m.notify(Demoted{})
	m.lost(len(m.serve.holders) > 0)
}

// silent ends a probe whose answers did not all come. That says nothing about
// who holds, so nothing is concluded from it.
func (m *Machine) silent() {
	missing := m.probe.n - len(m.probe.records)
	if m.probe.self {
		missing--
	}
	m.see(m.probe.records)
	switch {
	case m.phase == confirming:
		m.demote(m.probe.records)
	case m.chief || m.calls[0].Try:
		m.ask(electing)
	default:
		m.notify(Waiting{Holders: m.serve.holders, Silent: missing})
		m.depart(departure{pause: m.jittered(poll), look: true})
	}
	m.serve.silent = missing
}

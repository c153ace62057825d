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
	response    string // channel of the answers; empty for a count
	ping        protocol.Ping
	sent        time.Time
	n           int       // who is to answer; below zero until that is known
	token       int64     // drawn with the question
	lastAnswer  time.Time // when the reply or the last new answer came
	recount     time.Time // zero while a count is out
	budget      time.Time // of a confirm
	greeted     bool      // the node was a master behind the question
	staleHellos int       // greetings to come that stand before the question
	ownPing     bool      // the own ping has come back
	records     []protocol.Record
	legacy      int
}

func (p phase) probing() bool { return p == electing || p == confirming }

// contending says whether the lock is on the channel without a hold.
func (p phase) contending() bool {
	return p.probing() || p == joining || p == elected || p == reconfirming
}

// ask pings the channel and counts who gets the ping, in one script: as two
// steps, somebody who joins in between could stand in for a holder who leaves.
// Other commands may go before.
func (m *Machine) sendProbe(p phase, before ...Command) {
	budget := m.probe.budget
	if p == confirming && m.phase == electing {
		budget = m.now.Add(m.cfg.Unavailable)
	}
	m.phase = p
	m.current.roundTrips++
	m.probe = probe{response: m.cfg.Response(), sent: m.now, n: -1, budget: budget}
	m.probe.ping = m.newPing(m.probe.response)
	list := m.unsubscribes(make([]Command, 0, 6), func(channel string) bool {
		return m.standing(channel) || slices.Contains(m.reaper.responses, channel)
	})
	if m.probe.ping.Want != 0 && m.link.find(m.link.wake) == nil {
		// Whoever reads the ping may wake its sender at any moment.
		list = append(list, Command{Op: Subscribe, Channel: m.link.wake})
	}
	list = append(list, Command{Op: Subscribe, Channel: m.probe.response})
	list = append(list, before...)
	m.send(append(list, m.probeCommand(false), Command{Op: Hello})...)
}

// pinging is the command that pings and counts, by the script's text if the
// server has forgotten it. A fenced lock draws a token with the probe that
// decides: later, somebody else's grant could come between.
func (m *Machine) probeCommand(text bool) Command {
	op := Probe
	if m.cfg.Fenced && m.phase == confirming {
		op = ProbeAndDraw
	}
	ping := m.probe.ping
	return Command{Op: op, Ping: &ping, Text: text}
}

// pinged answers everybody, whatever the lock is doing: who stays silent is
// killed by its peers.
func (m *Machine) pinged(p protocol.Ping) {
	switch {
	case p.Response == m.probe.response && m.probe.response != "":
		m.probe.ownPing = true
		m.progress()
	case p.Response == m.hold.self.response && m.hold.self.response != "":
		m.send(Command{Op: Answer, Channel: p.Response, Record: new(m.record(0))})
	case p.ID == m.link.id || m.link.find(m.cfg.Channel) == nil:
	default:
		m.answerPing(p)
	}
}

// reply answers somebody else's ping.
func (m *Machine) answerPing(p protocol.Ping) {
	if m.reaper.pings > 0 && p.ID != "" {
		m.reaper.noteAnswer(protocol.Record{ID: p.ID}) // who asks is not silent
	}
	m.hold.unknownWaiters = m.hold.unknownWaiters || p.ID == ""
	place := m.enqueue(p)
	m.send(Command{Op: Answer, Channel: p.Response, Record: new(m.record(place)), Queue: m.queueToHandOn()})
	switch {
	case m.phase == leaving && m.leave.mustPassQueue && p.Want != 0:
		// It may have decided to sleep by what was true a moment ago, and
		// nobody else would wake it.
		m.passQueue(append(protocol.Queue{{ID: p.ID, Want: p.Want}}, p.Queue...))
	case m.phase == elected:
		soonest := m.probe.sent.Add(m.cfg.Poll / 10)
		if !m.now.Before(soonest) {
			m.sendProbe(electing)
			return
		}
		if soonest.Before(m.current.wake) {
			m.current.wake = soonest
		}
	}
}

// record is what the lock says of itself to somebody whose place in its queue
// this is.
func (m *Machine) record(place int) protocol.Record {
	r := protocol.Record{
		ID: m.link.id, Mode: m.mode, Election: protocol.NotElected, Joining: m.joining,
		Label: m.cfg.Label, Place: place,
	}
	if m.isElected {
		r.Election = protocol.Elected
	}
	if m.cfg.Fenced {
		r.Fenced, r.DB = true, m.cfg.DB
	}
	if m.phase == holding {
		r.Held = m.now.Sub(m.hold.since).Milliseconds()
	}
	return r
}

func (m *Machine) answered(in Answered) {
	r := in.Record
	if m.phase == holding && in.Response == m.hold.self.response && r.ID == m.link.id && !r.Legacy {
		m.echoed()
		return
	}
	if !m.phase.probing() || r.ID == m.link.id {
		return // the own record is never published to oneself
	}
	if m.reaper.pings > 0 {
		m.reaper.noteAnswer(r)
	}
	if in.Response != m.probe.response {
		return // of an earlier question: its sender may have become anything since
	}
	m.appendQueue(in.Queue)
	if r.Legacy {
		// Without identity, every reply counts as one participant.
		m.probe.legacy++
		r.ID = fmt.Sprintf("legacy-%d", m.probe.legacy-1)
	}
	if i := slices.IndexFunc(m.probe.records, func(o protocol.Record) bool { return o.ID == r.ID }); i >= 0 {
		m.probe.records[i] = r
	} else {
		m.probe.records = append(m.probe.records, r)
		m.probe.lastAnswer = m.now
	}
	m.progress()
}

// outdone says whether some answers of many are enough. Where hundreds ask at
// once and each stays until hundreds have answered, nobody is ever done; whoever
// knows that it has lost makes room. Of a few, all are heard: callers are to know
// who is in the way.
func (m *Machine) lostToSome() bool {
	if m.phase != electing || !m.inCrowd() {
		return false
	}
	switch m.verdict(m.probe.records) {
	case protocol.Held, protocol.Defer:
		return true
	default:
		return false
	}
}

func (m *Machine) probed(in Probed) {
	if !m.phase.probing() || m.probe.n >= 0 {
		return
	}
	if in.N < 1 {
		m.fail(uncounted(Probe))
		return
	}
	m.probe.n, m.probe.token = in.N, in.Token
	m.probe.lastAnswer, m.link.roundTrip = m.now, m.now.Sub(m.probe.sent)
	m.recountSoon()
	m.reapPingSent()
	m.progress()
}

func (m *Machine) greeted(g Greeted) {
	f := greetingFault(g)
	switch {
	case m.phase == holding:
		m.checked(f)
	case m.phase != joining && !m.phase.probing():
	case m.probe.staleHellos > 0:
		m.probe.staleHellos--
	case f != nil:
		m.fail(f)
	default:
		m.probe.greeted = true
		m.progress()
	}
}

func (m *Machine) counted(in Counted) {
	switch m.phase {
	case joining:
		if !m.link.on(m.cfg.Channel) {
			// A count in front of the subscription may have left us out.
			m.probe.staleHellos++
			m.send(m.count(), Command{Op: Hello})
			return
		}
		m.probe.n, m.probe.token = in.N, in.Token
		if in.N == 1 {
			m.claimHold()
		}
		m.progress()
	case electing, confirming:
		m.recounted(in.N)
	case resting, dialing, elected, reconfirming, leaving, sleeping, holding:
	}
}

// recountSoon sets the next count. Among many it comes later: all of them
// count, and answer all of them.
func (m *Machine) recountSoon() {
	m.probe.recount = m.now.Add(max(recount, time.Duration(m.probe.n)*time.Millisecond))
}

// recounted looks whether somebody who got the ping has left.
func (m *Machine) recounted(n int) {
	m.recountSoon()
	switch {
	case n >= m.probe.n:
	case m.phase == confirming && !m.now.Before(m.probe.budget):
		m.demote(nil)
	default:
		m.sendProbe(m.phase)
	}
}

// progress looks whether a question is answered.
func (m *Machine) progress() {
	p := &m.probe
	switch {
	case m.phase == joining:
		m.joined()
	case !m.phase.probing() || !p.greeted || !p.ownPing || p.n < 0 || !m.link.on(p.response):
	case 1+len(p.records) < p.n && !m.lostToSome():
	case m.phase == electing:
		m.elect(p.records)
	default:
		m.confirm(p.records)
	}
}

func (m *Machine) elect(others []protocol.Record) {
	m.reaper, m.current.failures = reaper{}, 0
	m.noteHolders(others)
	if err := m.mismatch(others); err != nil {
		m.fail(err)
		return
	}
	held := len(m.current.holders) > 0
	switch v := m.verdict(others); v {
	case protocol.Granted:
		m.grant()
	case protocol.Promote:
		m.mode = protocol.Exclusive
		m.becomeElected()
		m.sendProbe(confirming)
	case protocol.Wait:
		if held && m.calls[0].Try {
			m.refuseHeld()
			return
		}
		m.becomeElected()
		m.phase = elected
		pause := m.quickPause()
		if held {
			pause = m.jittered(m.cfg.Poll)
			m.notify(Waiting{Holders: m.current.holders, Place: m.current.place})
		}
		m.current.wake = m.now.Add(pause)
		if m.current.retryAtOnce {
			m.current.retryAtOnce = false
			m.sendProbe(electing)
		}
	default:
		m.backOff(v == protocol.Held)
	}
}

func (m *Machine) verdict(others []protocol.Record) protocol.Verdict {
	if m.cfg.Shared {
		return protocol.Join(m.link.id, others)
	}
	return protocol.Elect(m.link.id, m.isElected, others)
}

// see keeps who is in the way, for errors and events, and whether they know of
// this lock.
func (m *Machine) noteHolders(others []protocol.Record) {
	s := &m.current
	s.holders = slices.Clone(protocol.Blocking(m.want(), others))
	s.silence, s.place = silence{}, 0
	for _, r := range s.holders {
		s.place = max(s.place, r.Place)
	}
	for _, r := range others {
		if r.Place > 0 && r.Election == protocol.Elected {
			s.place = max(s.place, r.Place)
		}
	}
	s.queueDelivered = s.queueDelivered || s.place > 0 && m.probe.ping.First
}

func (m *Machine) becomeElected() {
	if !m.isElected {
		m.isElected = true
		m.notify(WonElection{})
	}
}

// lost leaves the channel to whoever goes first, and comes back: later when
// that one holds the lock or has won it, soon when it may still fail.
func (m *Machine) backOff(taken bool) {
	held := len(m.current.holders) > 0
	switch {
	case held && m.calls[0].Try:
		m.refuseHeld()
	case m.calls[0].Try, !taken:
		// One of many need not ask again: all that are there know of it now.
		m.depart(departure{pause: m.leavePause(), pollFirst: m.inCrowd()})
	default:
		m.notify(Waiting{Holders: m.current.holders, Place: m.current.place})
		m.depart(departure{pause: m.pollPause(1), pollFirst: true})
	}
}

// retry is the pause behind a question that others left open. One of them may be
// a 4.0 or 4.1 peer, which counts, and pings a tenth of a second later: if we
// came and went in between, it would wait for our answer for a second, pending
// and in everybody's way, and begin anew to the same end.
func (m *Machine) retryPause() time.Duration {
	for _, r := range m.probe.records {
		if r.Mode == protocol.Pending && r.Election == protocol.Unstated {
			return m.jittered(oldPause)
		}
	}
	return m.quickPause()
}

// refuseHeld ends a try at the sight of a holder.
func (m *Machine) refuseHeld() {
	r := m.refusal(Contended, nil)
	m.depart(departure{refusal: &r})
}

func (m *Machine) confirm(others []protocol.Record) {
	if err := m.mismatch(others); err != nil {
		m.fail(err)
		return
	}
	switch protocol.Confirm(m.link.id, others) {
	case protocol.Granted:
		m.grant()
	case protocol.Again:
		m.phase = reconfirming
		m.current.wake = m.now.Add(m.retryPause())
		if !m.current.wake.Before(m.probe.budget) {
			m.demote(others)
		}
	default:
		m.demote(others)
	}
}

// demote gives a promotion up that could not be confirmed.
func (m *Machine) demote(others []protocol.Record) {
	m.noteHolders(others)
	m.notify(Demoted{})
	m.backOff(len(m.current.holders) > 0)
}

// unheard ends a probe whose answers did not all come. That says nothing about
// who holds, so nothing is concluded from it.
func (m *Machine) inconclusive(why ReapState) {
	missing := m.missingAnswers()
	m.noteHolders(m.probe.records)
	m.noteSilent(why)
	// Where the next search may find what this one could not, it comes soon.
	// Otherwise a look in between shows when they have gone.
	soon := why == ListLate || why == Undecided
	switch {
	case m.phase == confirming:
		silence := m.current.silence
		m.demote(m.probe.records)
		m.current.silence = silence
	case m.calls[0].Try:
		m.giveUp(m.refusal(Inconclusive, m.current.lastErr), departLimit)
	case m.isElected:
		m.reaper = reaper{}
		m.phase = elected
		polls := time.Duration(pollsPerProbe)
		if soon {
			polls = 1
		}
		m.current.wake = m.now.Add(polls * m.jittered(m.cfg.Poll))
		m.notify(Waiting{Holders: m.current.holders, Silent: missing, Place: m.current.place})
	default:
		m.notify(Waiting{Holders: m.current.holders, Silent: missing, Place: m.current.place})
		m.depart(departure{pause: m.pollPause(1), pollFirst: !soon})
	}
}

// noteSilent keeps who does not answer the present probe, for errors, and what
// was tried about it.
func (m *Machine) noteSilent(what ReapState) {
	asked := m.probe.sent
	if what == Searching && !m.reaper.firstPing.IsZero() {
		asked = m.reaper.firstPing
	}
	m.current.silence = silence{m.missingAnswers(), m.reaper.silent(), what, m.reaper.err, asked}
}

// missing counts who got the ping and has not answered it.
func (m *Machine) missingAnswers() int {
	missing := m.probe.n - len(m.probe.records)
	if m.probe.ownPing {
		missing--
	}
	return max(0, missing)
}

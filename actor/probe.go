package actor

import (
	"fmt"
	"slices"
	"time"

	"github.com/tetherlock/tether/protocol"
)

// The answer rule: a participant answers every ping that it receives, whatever
// it is doing, also while it leaves. Peers take one that does not answer for
// crashed, and end its connection.
//
// The probe rule: a probe is conclusive when as many distinct records are in as
// participants got the ping. One that joins later does not matter: it will ping,
// and see this lock's record. A probe that is not conclusive is started anew or
// given up. It never means that the lock is free.

// probe is the count at the beginning of an attempt, or a ping and its answers.
type probe struct {
	response    string // channel of the answers; empty for a count
	ping        protocol.Ping
	sent        time.Time
	n           int       // subscribers that were counted or pinged, this one included; -1 before the reply
	token       int64     // fencing token drawn with the count or ping, 0 for none
	lastAnswer  time.Time // when the reply or the last new answer came
	recount     time.Time // when the next recount is due; zero while one is out
	budget      time.Time // when a confirmation is given up
	greeted     bool      // the HELLO behind the count or ping has reported a master
	staleHellos int       // replies to HELLOs that are to come and stand before it
	ownPing     bool      // the own ping has come back
	records     []protocol.Record
	legacy      int // answers without a holder id
}

// probing reports whether a probe is out.
func (p phase) probing() bool { return p == electing || p == confirming }

// contending reports whether the lock is on the channel without a hold.
func (p phase) contending() bool {
	return p.probing() || p == joining || p == elected || p == reconfirming
}

// sendProbe pings the channel and counts who gets the ping, in one script. In
// two steps, the answer of a participant that joins in between could stand in for
// that of a holder. before are commands that go out before the ping.
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
		return m.outlivesProbe(channel) || slices.Contains(m.reaper.responses, channel)
	})
	if m.probe.ping.Want != 0 && m.link.find(m.link.wake) == nil {
		// A participant that has read the ping may wake its sender at any moment.
		list = append(list, Command{Op: Subscribe, Channel: m.wakeChannel()})
	}
	list = append(list, Command{Op: Subscribe, Channel: m.probe.response})
	list = append(list, before...)
	m.send(append(list, m.probeCommand(false), Command{Op: Hello})...)
}

// probeCommand is the command that pings and counts. With text the script is
// sent by its text. A fenced lock draws its token with the probe that decides: if
// it drew later, another grant with a lower token could come in between.
func (m *Machine) probeCommand(text bool) Command {
	op := Probe
	if m.cfg.Fenced && m.phase == confirming {
		op = ProbeAndDraw
	}
	ping := m.probe.ping
	return Command{Op: op, Ping: &ping, Text: text}
}

// pinged takes any ping on the channel: the own probe's, the own self check's, or
// another participant's.
func (m *Machine) pinged(p protocol.Ping) {
	switch {
	case p.Response == m.probe.response && m.probe.response != "":
		m.probe.ownPing = true
		m.progress()
	case p.Response == m.selfCheck.response && m.selfCheck.response != "":
		m.send(Command{Op: Answer, Channel: p.Response, Record: new(m.record(0))})
	case p.ID == m.link.id || m.link.find(m.cfg.Channel) == nil:
	default:
		m.answerPing(p)
	}
}

// answerPing answers another participant's ping, and queues its sender.
func (m *Machine) answerPing(p protocol.Ping) {
	if m.reaper.pings > 0 && p.ID != "" {
		m.reaper.noteAnswer(protocol.Record{ID: p.ID}, m.now) // its sender is alive
	}
	m.hold.unknownWaiters = m.hold.unknownWaiters || p.ID == ""
	place := m.enqueue(p)
	m.send(Command{Op: Answer, Channel: p.Response, Record: new(m.record(place)), Queue: m.queueToHandOn()})
	switch {
	case m.phase == leaving && m.leave.mustPassQueue && p.Want != 0:
		// The Wake of this departure is sent already. The sender may go to
		// sleep because of an answer from before, and nobody would wake it.
		m.passQueue(append(protocol.Queue{{ID: p.ID, Want: p.Want}}, p.Queue...))
	case m.phase == elected:
		// Somebody else has come: probe again soon. Pings may be frequent, so
		// at most every tenth of the poll interval.
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

// record is the own record. place is the place of its receiver in the queue.
func (m *Machine) record(place int) protocol.Record {
	r := protocol.Record{
		ID: m.link.id, Mode: m.mode, Election: protocol.NotElected, Joining: m.joining,
		Label: m.cfg.Label, Place: place, Session: m.cfg.Session,
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

// answered takes an answer to a ping of a probe or of a self check.
func (m *Machine) answered(in Answered) {
	r := in.Record
	if m.phase == holding && in.Response == m.selfCheck.response && r.ID == m.link.id && !r.Legacy {
		m.selfPingAnswered()
		return
	}
	if !m.phase.probing() || r.ID == m.link.id {
		return // the own record is never published to oneself
	}
	if m.reaper.pings > 0 {
		m.reaper.noteAnswer(r, m.now)
	}
	if in.Response != m.probe.response {
		return // of an earlier probe: the record may have changed since
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

// lostToSome reports whether the answers so far are enough, because one of many
// contenders has lost by them already. When hundreds probe at once and each
// stays until hundreds have answered, none of them gets done. Without a crowd
// all answers are waited for: a caller is told about every holder.
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

// probed takes the count of a probe: how many answers there are to be.
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

// greeted takes the role of the node, which decides about a hold or the count or
// probe before it.
func (m *Machine) greeted(g Greeted) {
	f := greetingFault(g)
	switch {
	case m.phase == holding:
		m.checkReplied(f)
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

// counted takes the first count of an attempt, or a recount.
func (m *Machine) counted(in Counted) {
	switch m.phase {
	case joining:
		if !m.link.isSubscribed(m.cfg.Channel) {
			// The subscription is not confirmed yet, so the count may have been
			// taken before it, without this lock. It counts again.
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

// recountSoon sets the time of the next recount. With many participants it is
// later, as each of them recounts and has many pings to answer.
func (m *Machine) recountSoon() {
	m.probe.recount = m.now.Add(max(recountInterval, time.Duration(m.probe.n)*time.Millisecond))
}

// recounted compares a recount with the probe's count. If somebody who got the
// ping has left, its answer will not come, and the probe is started anew.
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

// progress acts on a probe once it is conclusive, or on the first round trip once
// it is complete.
func (m *Machine) progress() {
	p := &m.probe
	switch {
	case m.phase == joining:
		m.joined()
	case !m.phase.probing() || !p.greeted || !p.ownPing || p.n < 0 || !m.link.isSubscribed(p.response):
	case 1+len(p.records) < p.n && !m.lostToSome():
	case m.phase == electing:
		m.elect(p.records)
	default:
		m.confirm(p.records)
	}
}

// elect acts on a conclusive probe in phase electing.
func (m *Machine) elect(others []protocol.Record) {
	m.reaper, m.current.failures = reaper{}, 0
	m.noteHolders(others)
	if err := m.databaseMismatch(others); err != nil {
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

// noteHolders notes who is in the way, for errors and events, and whether one of
// them has queued this lock and got its luggage.
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

// backOff leaves the channel and comes back. With taken, somebody holds the lock
// or has won the election: the lock sleeps and polls. Otherwise the other
// contender may still fail, and if all went to sleep the lock would stand free
// for a whole poll interval: it attempts again after a few round trips. So does
// a try, which has no time to sleep.
func (m *Machine) backOff(taken bool) {
	held := len(m.current.holders) > 0
	switch {
	case held && m.calls[0].Try:
		m.refuseHeld()
	case m.calls[0].Try, !taken:
		// In a crowd it polls before it attempts again: all of them have queued
		// it by now.
		m.depart(departure{pause: m.leavePause(), pollFirst: m.inCrowd()})
	default:
		m.notify(Waiting{Holders: m.current.holders, Place: m.current.place})
		m.depart(departure{pause: m.pollPause(1), pollFirst: true})
	}
}

// retryPause is the pause of a lock that met no holder, only other contenders.
// One of them may be a peer of portalocker 4.0 or 4.1. Such a peer counts first
// and pings 100 ms later. If we came and left within that time, it would wait for
// our answer for a second, pending, so that nobody is granted meanwhile, and then
// begin anew with the same result. So this lock stays away longer.
func (m *Machine) retryPause() time.Duration {
	for _, r := range m.probe.records {
		if r.Mode == protocol.Pending && r.Election == protocol.Unstated {
			return m.jittered(oldPeerPause)
		}
	}
	return m.quickPause()
}

// refuseHeld refuses a try that met a holder.
func (m *Machine) refuseHeld() {
	r := m.refusal(Contended, nil)
	m.depart(departure{refusal: &r})
}

// confirm acts on a conclusive probe in phase confirming.
func (m *Machine) confirm(others []protocol.Record) {
	if err := m.databaseMismatch(others); err != nil {
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

// demote gives up a promotion that was not confirmed.
func (m *Machine) demote(others []protocol.Record) {
	m.noteHolders(others)
	m.notify(Demoted{})
	m.backOff(len(m.current.holders) > 0)
}

// inconclusive ends a probe whose answers did not all come; why is what was tried
// about that. It never leads to a grant: any of the silent participants may hold. An
// elected lock stays on the channel, a promoted one demotes, a try is refused, and
// any other sleeps.
func (m *Machine) inconclusive(why ReapState) {
	missing := m.missingAnswers()
	m.noteHolders(m.probe.records)
	m.noteSilent(why)
	// The next search may find what this one could not: it comes soon. Otherwise
	// polls show when the silent participants have gone.
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

// noteSilent notes the participants that do not answer the present probe, and what
// was tried about them. A new search, behind one in which the server refused a
// command, will hardly end anybody: the refusal stays noted.
func (m *Machine) noteSilent(what ReapState) {
	if m.current.reapErr != nil && (what == Searching || what == NotSearched) {
		what = ReapRefused
	}
	asked := m.probe.sent
	if what == Searching && !m.reaper.firstPing.IsZero() {
		asked = m.reaper.firstPing
	}
	m.current.silence = silence{m.missingAnswers(), m.reaper.silent(), what, m.current.reapErr, asked}
}

// missingAnswers counts the participants that got the ping and have not answered
// it.
func (m *Machine) missingAnswers() int {
	missing := m.probe.n - len(m.probe.records)
	if m.probe.ownPing {
		missing--
	}
	return max(0, missing)
}

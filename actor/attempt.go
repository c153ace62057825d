package actor

import (
	"fmt"
	"slices"
	"time"

	"github.com/tetherlock/tether/protocol"
)

const (
	backoffMin = 25 * time.Millisecond
	backoffMax = time.Second
	// A contender that lost to another tries again after a few round trips.
	quickRoundTrips = 4
	quickMin        = time.Millisecond
	quickMax        = 50 * time.Millisecond
	// oldPause is the same beside a peer of 4.0 or 4.1.
	oldPeerPause = 150 * time.Millisecond
	// manyCount is what Machine.many is, except in small worlds.
	defaultCrowdSize = 16
	// crowdPause is how long each of them stays away for each other one.
	crowdPause = 2 * time.Millisecond
)

// withdraw takes every claim out of the own record.
func (m *Machine) withdrawClaims() {
	m.mode, m.joining, m.isElected = protocol.Pending, false, false
	if m.cfg.Shared {
		m.mode, m.joining = protocol.Shared, true
	}
	m.probe, m.reaper = probe{}, reaper{}
}

// claim puts the hold into the own record. From the deciding count or probe on
// the stream brings only pings of those who came later, and they must see that
// the lock is taken.
func (m *Machine) claimHold() {
	m.mode, m.joining = m.want(), false
}

// attempt begins one attempt to get the lock.
func (m *Machine) attempt() { m.attemptWith(false) }

// attemptWith begins an attempt, on a fresh socket if that is wanted.
func (m *Machine) attemptWith(fresh bool) {
	m.notifyCall(m.calls[0].Call, Attempting{})
	m.current.roundTrips, m.current.retryAtOnce = 0, false
	if m.link.up {
		m.link.reused, m.link.answered = true, false
		m.join()
		return
	}
	m.phase = dialing
	m.link.dial++
	m.do(Dial{Dial: m.link.dial, Fresh: fresh})
}

// dialed takes the socket.
func (m *Machine) dialed(in Dialed) {
	m.link = link{up: true, id: in.ID, wake: m.cfg.WakeChannel(in.ID), reused: !in.Fresh, dial: m.link.dial, roundTrip: m.link.roundTrip}
	m.join()
}

// join subscribes, counts and asks for the role in one write. The HELLO stands
// behind the count: before it, a pause could hold the count until the node is
// demoted, and the old role would vouch for it. The name comes with it, behind
// the SUBSCRIBE: only who is on the channel may bear it.
func (m *Machine) join() {
	m.phase = joining
	m.withdrawClaims()
	m.probe = probe{sent: m.now, n: -1}
	m.current.roundTrips++
	hello := Command{Op: Hello, Naming: LockName}
	list := make([]Command, 0, 5)
	if !m.link.reused {
		list = append(list, Command{Op: Login, Naming: LockName})
		hello.Naming = KeepName
	}
	if m.cfg.Fenced && m.cfg.DB != 0 {
		list = append(list, Command{Op: Select})
	}
	list = append(list, Command{Op: Subscribe, Channel: m.cfg.Channel}, m.count())
	m.send(append(list, hello)...)
}

// count is the first question of an attempt.
func (m *Machine) count() Command {
	if m.cfg.Fenced {
		return Command{Op: CountAndDraw}
	}
	return Command{Op: Count}
}

// joined looks whether the first round trip is complete.
func (m *Machine) joined() {
	if !m.link.isSubscribed(m.cfg.Channel) || m.probe.n < 0 || !m.probe.greeted {
		return
	}
	m.link.roundTrip = m.now.Sub(m.probe.sent)
	m.current.lastErr = nil
	switch m.probe.n {
	case 0:
		m.fail(uncounted(Count))
	case 1:
		m.grant()
	default:
		if m.yieldsToCrowd() {
			m.current.crowdBackoffs++
			m.depart(departure{pause: m.leavePause()})
			return
		}
		m.sendProbe(electing)
	}
}

// crowded says whether a writer is better off to come back in a moment. When a
// thousand come at once, and each asks everybody, a million answers keep the
// server busy; when they come one after the other, it is a few each. But there
// may be as many readers, which stay: it puts up with twice as many each time.
func (m *Machine) yieldsToCrowd() bool {
	return m.inCrowd() && m.probe.n > m.crowdSize<<m.current.crowdBackoffs && !m.cfg.Shared
}

// amongMany says whether a lock that may as well wait meets a crowd. One that was
// woken may not: others count on it.
func (m *Machine) inCrowd() bool {
	return m.probe.n > m.crowdSize && !m.calls[0].Try && !m.current.carriesWake
}

// fail ends an attempt with an error. Its socket is closed.
func (m *Machine) fail(err error) {
	doubtful := m.link.maybeDead()
	m.drop()
	if doubtful {
		m.attempt() // a try would fail although the server is well
		return
	}
	if unauthorized(err) && m.cfg.Renewable && !m.current.renewed {
		m.current.renewed = true
		m.attempt()
		return
	}
	if !m.current.carriesWake {
		m.queue = nil
	}
	m.current.lastErr = err
	m.current.failures++
	if terminal(err) || m.calls[0].Try {
		m.notify(AttemptFailed{Err: err})
		m.refuse(Refusal{Reason: AttemptError, Cause: err})
		return
	}
	pause := m.jittered(min(backoffMin<<min(m.current.failures-1, 10), backoffMax))
	m.notify(AttemptFailed{Err: err, Retry: pause})
	m.sleep(pause, false)
}

// jittered scales a duration to between one half and one and a half of it, so
// that those who started together do not go on together.
func (m *Machine) jittered(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.5 + m.cfg.Jitter()))
}

// quick is the pause of a contender whom no holder blocks.
func (m *Machine) quickPause() time.Duration {
	return m.jittered(min(max(quickRoundTrips*m.link.roundTrip, quickMin), quickMax))
}

// absence is how long a contender stays away that leaves the channel to others.
// Many make it longer, so that only a few are there at a time.
func (m *Machine) leavePause() time.Duration {
	if m.probe.n > m.crowdSize {
		return max(m.retryPause(), m.jittered(time.Duration(m.probe.n)*crowdPause))
	}
	return m.retryPause()
}

// grant answers the served call, or all of them if they share.
func (m *Machine) grant() {
	if m.cfg.Fenced && m.probe.token == 0 {
		m.fail(&Fault{Kind: Unsupported, Command: CountAndDraw.String(), Message: "the server drew no fencing token"})
		return
	}
	m.claimHold()
	m.link.queued = false
	m.phase, m.state = holding, Held
	m.hold = hold{calls: m.hold.calls[:0], id: m.link.id, since: m.now, token: m.probe.token, nextCheck: m.now.Add(m.cfg.Health)}
	if m.cfg.SelfCheck > 0 {
		m.hold.selfCheck.next = m.now.Add(m.cfg.SelfCheck)
	}
	serve := m.current
	list := m.unsubscribes(nil, func(channel string) bool { return channel == m.cfg.Channel || channel == m.link.wake })
	if m.cfg.Shared && serve.slept && !serve.carriesWake && !serve.readersWoken {
		// Nobody has woken it, so nobody has woken the others either.
		list = append(list, Command{Op: WakeReaders})
	}
	if len(list) > 0 {
		m.send(list...)
	}
	m.current, m.probe, m.reaper = currentCall{}, probe{}, reaper{}
	m.admit(serve.roundTrips, m.now.Sub(serve.began))
	for m.cfg.Shared && len(m.calls) > 0 {
		m.admit(serve.roundTrips, m.now.Sub(serve.began))
	}
}

// admit gives the first call its hold.
func (m *Machine) admit(trips int, waited time.Duration) {
	call := m.calls.remove(0)
	m.hold.calls = append(m.hold.calls, call)
	m.notifyCall(call, Granted{ID: m.hold.id, Token: m.hold.token, RoundTrips: trips, Waited: waited})
	m.do(Grant{Call: call, ID: m.hold.id, Token: m.hold.token})
}

// mismatch finds a participant that draws fencing tokens elsewhere. Pub/sub
// knows no databases, so both take part in one lock, but the tokens of the two
// counters say nothing about each other.
func (m *Machine) databaseMismatch(others []protocol.Record) error {
	i := slices.IndexFunc(others, func(r protocol.Record) bool { return m.cfg.Fenced && r.Fenced && r.DB != m.cfg.DB })
	if i < 0 {
		return nil
	}
	return &Fault{Kind: Contradicted, Message: fmt.Sprintf(
		"the fencing tokens of this lock are drawn in database %d by %s, and in database %d here", others[i].DB, others[i].ID, m.cfg.DB)}
}

package actor

import (
	"fmt"
	"slices"
	"time"

	"github.com/tetherlock/tether/protocol"
)

const (
	// backoffMin and backoffMax bound the pause behind a failed attempt. It
	// doubles with each failure in a row.
	backoffMin = 25 * time.Millisecond
	backoffMax = time.Second
	// quickRoundTrips is the pause of a contender that lost to another, in
	// round trips; quickMin and quickMax bound it.
	quickRoundTrips = 4
	quickMin        = time.Millisecond
	quickMax        = 50 * time.Millisecond
	// oldPeerPause is the same beside a peer of portalocker 4.0 or 4.1.
	oldPeerPause = 150 * time.Millisecond
	// defaultCrowdSize is Machine.crowdSize, except in some tests.
	defaultCrowdSize = 16
	// crowdPause is how long a contender stays away for each member of a
	// crowd.
	crowdPause = 2 * time.Millisecond
)

// withdrawClaims makes the own record one that claims nothing: a pending
// writer's or a joining reader's. The probe under way is forgotten.
func (m *Machine) withdrawClaims() {
	m.mode, m.joining, m.isElected = protocol.Pending, false, false
	if m.cfg.Shared {
		m.mode, m.joining = protocol.Shared, true
	}
	m.probe, m.reaper = probe{}, reaper{}
}

// claimHold makes the own record a holder's. It is called when the reply to the
// deciding count or probe is read. Pings behind that reply come from
// participants that the reply does not include, and they must see that the lock
// is taken.
func (m *Machine) claimHold() {
	m.mode, m.joining = m.want(), false
}

// attempt begins one attempt to get the lock.
func (m *Machine) attempt() { m.attemptWith(false) }

// attemptWith begins an attempt. With fresh a missing socket is dialled anew,
// and no idle one is taken.
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

func (m *Machine) dialed(in Dialed) {
	m.link = link{up: true, id: in.ID, reused: !in.Fresh, dial: m.link.dial, roundTrip: m.link.roundTrip}
	m.join()
}

// join subscribes, counts and asks for the node's role in one write. The HELLO
// stands behind the count. In front of it, it would not do: CLIENT PAUSE can
// hold the count back until the node is demoted, and the role would be the old
// one. On a reused socket this HELLO sets the connection's name too, behind the
// SUBSCRIBE: peers end connections with the lock's name that do not answer, so
// only a participant may bear it. A fresh socket gets the name with its login.
func (m *Machine) join() {
	m.phase = joining
	m.withdrawClaims()
	m.probe = probe{sent: m.now, n: -1}
	m.current.roundTrips++
	hello := Command{Op: Hello, Naming: LockName}
	list := make([]Command, 0, 5)
	switch {
	case m.cfg.Session:
		hello.Naming = KeepName
	case !m.link.reused:
		list = append(list, Command{Op: Login, Naming: LockName})
		hello.Naming = KeepName
	}
	if m.cfg.Fenced && m.cfg.DB != 0 {
		list = append(list, Command{Op: Select})
	}
	list = append(list, Command{Op: Subscribe, Channel: m.cfg.Channel}, m.count())
	m.send(append(list, hello)...)
}

// count is the command that counts the subscribers in the first round trip.
func (m *Machine) count() Command {
	if m.cfg.Fenced {
		return Command{Op: CountAndDraw}
	}
	return Command{Op: Count}
}

// joined acts on the first round trip, once all of it is in: the subscription,
// the count and the role.
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

// yieldsToCrowd reports whether a writer leaves instead of probing, and comes
// back later. When a thousand contenders probe at once the server carries a
// million answers; when they come one after the other, it is a few each. But the
// subscribers may be as many readers, which stay: so the size that makes a
// writer leave doubles each time.
func (m *Machine) yieldsToCrowd() bool {
	return m.inCrowd() && m.probe.n > int(m.crowdSize)<<m.current.crowdBackoffs && !m.cfg.Shared
}

// inCrowd reports whether the lock meets a crowd and may give way to it. A try
// may not, it has no time. A woken contender may not: the queue that it carries
// waits for it.
func (m *Machine) inCrowd() bool {
	return m.probe.n > int(m.crowdSize) && !m.calls[0].Try && !m.current.carriesWake
}

// fail ends an attempt with an error and closes its socket. The next attempt
// follows after a backoff, unless the call is a try or the error is terminal.
func (m *Machine) fail(err error) {
	maybeDead := m.link.maybeDead()
	m.drop()
	if maybeDead {
		m.attempt() // the server may be well; a try must not fail because of an old socket
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

// jittered scales a duration by a random factor of 0.5 to 1.5. Contenders that
// started together come apart by it.
func (m *Machine) jittered(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.5 + m.cfg.Jitter()))
}

// quickPause is the pause of a contender that met no holder, only other
// contenders.
func (m *Machine) quickPause() time.Duration {
	return m.jittered(min(max(quickRoundTrips*m.link.roundTrip, quickMin), quickMax))
}

// leavePause is how long a contender stays away that gives way to other
// contenders. In a crowd it is longer, so that only a few are on the channel at
// a time.
func (m *Machine) leavePause() time.Duration {
	if m.probe.n > int(m.crowdSize) {
		return max(m.retryPause(), m.jittered(time.Duration(m.probe.n)*crowdPause))
	}
	return m.retryPause()
}

// grant grants the lock to the served call, or to all calls if they share.
//
// The grant rule:
//
//   - A writer is granted only if, at one instant with its own record already
//     exclusive, it is alone, or everybody subscribed at that instant has
//     answered, and nobody claims exclusive and nobody claims shared.
//     [protocol.Confirm] adds what peers of other versions make necessary.
//   - A reader is granted only if it is alone, or everybody subscribed at that
//     instant has answered shared; see [protocol.Join].
//   - A HELLO behind the deciding count or probe, in the same write, has
//     reported a master that runs standalone.
//
// Why that is enough: take two grants, A before B, with A still subscribed at
// B's instant. B's count includes A. A answers B's ping after it has decided on
// its own grant, so it answers with a claim, and B is not granted. Ids and the
// election do not enter into it; they are about progress.
//
// Own records count without being published. An inconclusive probe never means
// free.
func (m *Machine) grant() {
	if m.cfg.Fenced && m.probe.token == 0 {
		m.fail(&Fault{Kind: Unsupported, Command: CountAndDraw.String(), Message: "the server drew no fencing token"})
		return
	}
	m.claimHold()
	m.link.queued = false
	m.phase, m.state = holding, Held
	m.setHold(hold{calls: m.hold.calls[:0], id: m.link.id, since: m.now, token: m.probe.token})
	if !m.cfg.Session {
		m.hold.nextCheck = m.now.Add(m.cfg.Health)
	}
	if m.cfg.SelfCheck > 0 {
		m.selfCheck.next = m.now.Add(m.cfg.SelfCheck)
	}
	call := m.current
	list := m.unsubscribes(nil, func(channel string) bool { return channel == m.cfg.Channel || channel == m.link.wake })
	if m.cfg.Shared && call.slept && !call.carriesWake && !call.readersWoken {
		// This reader found the lock by a poll. Nobody has woken the other
		// sleeping readers.
		list = append(list, Command{Op: WakeReaders})
	}
	if len(list) > 0 {
		m.send(list...)
	}
	m.current, m.probe, m.reaper = currentCall{}, probe{}, reaper{}
	m.admit(call.roundTrips, m.now.Sub(call.began))
	for m.cfg.Shared && len(m.calls) > 0 {
		m.admit(call.roundTrips, m.now.Sub(call.began))
	}
}

// admit grants the hold to the first call.
func (m *Machine) admit(roundTrips int, waited time.Duration) {
	call := m.calls.remove(0)
	m.hold.calls = append(m.hold.calls, call)
	m.notifyCall(call, Granted{ID: m.hold.id, Token: m.hold.token, RoundTrips: roundTrips, Waited: waited})
	m.do(Grant{Call: call, ID: m.hold.id, Token: m.hold.token})
}

// databaseMismatch is the fault of a participant that draws fencing tokens from
// another database, nil if there is none. Pub/sub knows no databases, so both
// take part in one lock, but tokens of two counters cannot be compared.
func (m *Machine) databaseMismatch(others []protocol.Record) error {
	i := slices.IndexFunc(others, func(r protocol.Record) bool { return m.cfg.Fenced && r.Fenced && r.DB != m.cfg.DB })
	if i < 0 {
		return nil
	}
	return &Fault{Kind: Contradicted, Message: fmt.Sprintf(
		"the fencing tokens of this lock are drawn in database %d by %s, and in database %d here", others[i].DB, others[i].ID, m.cfg.DB)}
}

package actor

import (
	"errors"
	"time"

	"github.com/tetherlock/tether/protocol"
)

// randomAction picks a process and lets its callers act, or injects a fault.
func (m *model) randomAction() bool {
	num := m.rand.IntN(len(m.locks))
	if m.process(num).frozen {
		if !m.chance(m.thawOdds) {
			return false
		}
		m.thaw(num)
		return true
	}
	if p := m.peers[num]; p != nil {
		return m.randomPeerAction(p)
	}
	l := m.locks[num]
	if l.stopped {
		l.restart()
	}
	if len(l.holds) > 0 && m.chance(m.releaseOdds) {
		l.readGrant()
		return l.release()
	}
	n := m.rand.IntN(16)
	switch {
	case m.noCrashes || m.profile == callsOnly:
		return m.randomCall(l, []int{0, 1, 2, 3, 4, 5, 7}[n%7])
	case m.profile == freezesAndCuts && m.chance(2):
		n = []int{10, 11, 13}[m.rand.IntN(3)]
	case m.profile == writePauses && m.chance(2):
		return m.pauseWrites()
	}
	if n < 10 {
		return m.randomCall(l, n)
	}
	return m.injectFault(l, n)
}

// faultProfile is what a random run has most of. Uniform faults seldom combine: a
// second freeze within one probe needs a run in which freezes are frequent.
type faultProfile int

const (
	mixedFaults    faultProfile = iota
	callsOnly                   // acquires, releases and cancels, without faults
	freezesAndCuts              // processes freeze, and connections are cut
	writePauses                 // the server pauses writes
)

// pauseWrites begins a CLIENT PAUSE WRITE, but not soon after another one. Two
// pauses could hold the answers to both pings of a reaper, and it would kill a
// healthy participant.
func (m *model) pauseWrites() bool {
	if m.now.Before(m.writesPausedUntil.Add(3 * time.Second)) {
		return false
	}
	m.writesPausedUntil = m.now.Add(time.Duration(m.rand.IntN(3000)) * time.Millisecond)
	m.logf("writes are paused until %v", m.writesPausedUntil.Sub(epoch))
	return true
}

// randomCall is an action of a lock's callers. n selects it.
func (m *model) randomCall(l *lock, n int) bool {
	switch {
	case n < 3:
		if len(l.pending) > 3 || l.machine.cfg.Once && len(l.pending)+len(l.holds)+len(l.releasing) > 0 {
			return false
		}
		l.acquire(m.chance(3))
		return true
	case n < 6:
		return l.release()
	case n == 6:
		return l.readGrant()
	case n == 7:
		return m.randomCancel(l)
	case n == 8 && len(l.holds) > 0:
		m.callCount++
		l.ownedChecks = append(l.ownedChecks, m.callCount)
		l.feed(CheckOwned{Hold: l.holds[0].call, Call: m.callCount})
		return true
	case n == 9 && !m.noCrashes && m.chance(8):
		l.feed([]Input{Close{}, Unreferenced{}}[m.rand.IntN(2)])
		return true
	default:
		return false
	}
}

// randomCancel ends the context of a release, of a pending acquire, or of an
// acquire that was granted already.
func (m *model) randomCancel(l *lock) bool {
	switch {
	case len(l.releasing) > 0 && m.chance(2) && !m.noCrashes:
		l.feed(Abandon{Hold: l.releasing[0], Cause: errContextEnded})
	case len(l.pending) > 0:
		l.feed(Cancel{Call: l.pending[m.rand.IntN(len(l.pending))], Cause: errContextEnded})
	case len(l.holds) > 0:
		l.feed(Cancel{Call: l.holds[0].call, Cause: errContextEnded})
	default:
		return false
	}
	return true
}

// injectFault injects a fault at a lock or at the server. n selects it.
func (m *model) injectFault(l *lock, n int) bool {
	switch {
	case n == 10 && l.conn != nil && m.chance(4):
		m.logf("kill %s", m.describeConn(l.conn))
		m.disconnect(l.conn)
	case n == 11 && l.conn != nil && m.chance(4):
		l.halfOpen()
	case n == 12 && l.dial != 0 && m.chance(4):
		dial := l.dial
		l.dial = 0
		l.feed(DialFailed{Dial: dial, Err: errors.New("refused")})
	case n == 12:
		return m.injectServerFault()
	case n == 13 && m.chance(2):
		m.freeze(l.num)
	case n == 14 && m.chance(4):
		m.injectJunk()
	case n == 15 && l.conn != nil && l.conn.node != m.master:
		l.feed(MasterMoved{Err: errors.New("moved")})
	case n == 15 && l.conn != nil && m.chance(4):
		l.feed(Rotated{})
	default:
		return false
	}
	return true
}

// randomPeerAction lets a peer's caller act, or injects a fault at the peer.
func (m *model) randomPeerAction(p *peer) bool {
	switch n := m.rand.IntN(12); {
	case n < 4 && p.stage == peerIdle:
		p.acquire()
	case n < 8 && (p.stage == peerHolding || p.stage != peerIdle && m.chance(8)):
		p.release()
	case m.profile == callsOnly:
		return false
	case n == 8 && p.subConn != nil && m.chance(4):
		m.logf("kill %s", m.describeConn(p.subConn))
		m.disconnect(p.subConn)
	case n > 8 && m.chance(2):
		m.freeze(p.num)
	default:
		return false
	}
	return true
}

// freeze stops a process, as SIGSTOP does. Its connections stay open, and what
// arrives waits.
func (m *model) freeze(num int) {
	m.logf("freeze %d", num)
	m.process(num).frozen = true
}

func (m *model) thaw(num int) {
	m.logf("thaw %d", num)
	p := m.process(num)
	p.frozen, p.thawedAt, p.thawedSerial = false, m.now, m.serial
}

// injectServerFault injects a fault at the server.
func (m *model) injectServerFault() bool {
	switch n := m.rand.IntN(8); {
	case n == 0:
		m.logf("SCRIPT FLUSH")
		m.loadedScripts = [incrementFence]bool{}
	case n == 1 && m.chance(4):
		m.logf("FLUSHALL")
		m.fenceCounter = 0
	case n == 2:
		return m.pauseWrites()
	case n == 3 && m.noPeers() && m.chance(8):
		// Not with peers: portalocker has four connections, and after a
		// failover some of them would lead to the old master and some to the
		// new one. Its users must avoid that.
		m.logf("failover")
		m.failover()
	case n > 3 && len(m.conns) > 0:
		c := m.conns[m.rand.IntN(len(m.conns))]
		if !c.parked || !c.up {
			return false
		}
		m.logf("kill %s", m.describeConn(c))
		m.disconnect(c)
	default:
		return false
	}
	return true
}

// injectJunk publishes what foreign clients might: valid messages with made-up
// content, at the wrong moment.
func (m *model) injectJunk() {
	foreign := protocol.Waiter{ID: "foreign", Want: protocol.Exclusive}
	for _, c := range m.conns {
		for _, channel := range c.subs {
			if !m.chance(4) {
				continue
			}
			switch {
			case channel == lockChannel:
				m.push(c, Pinged{protocol.Ping{Response: "junk", ID: "foreign", Want: protocol.Exclusive, First: m.chance(2)}}, nobody)
			case channel == waitersChannel:
				m.push(c, Woken{protocol.Wake{Readers: true}}, nobody)
			case channel == wakeChannel(c.id):
				m.push(c, Woken{protocol.Wake{Queue: protocol.Queue{foreign}}}, nobody)
			default:
				m.push(c, Answered{Response: channel, Record: protocol.Record{Mode: protocol.Exclusive, Legacy: true}}, nobody)
			}
		}
	}
}

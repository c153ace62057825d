package actor

import "time"

// checkInvariants checks mutual exclusion: of two holds that exclude each other,
// the server counts at most one. An exception is a hold that portalocker took
// without an answer of everybody who had received its ping: portalocker documents
// that gap.
func (m *model) checkInvariants() {
	for i, l := range m.locks {
		if l == nil || !l.holdsOnServer() {
			continue
		}
		for _, o := range m.locks[i+1:] {
			if o != nil && o.holdsOnServer() && o.conn.node == l.conn.node && !(l.machine.cfg.Shared && o.machine.cfg.Shared) {
				m.fail("locks %d and %d hold together", l.num, o.num)
			}
		}
		for _, p := range m.peers {
			if p != nil && p.holdsOnServer() && p.subConn.node == l.conn.node && !(l.machine.cfg.Shared && p.shared) && l.violatesExclusion(p) {
				m.fail("lock %d holds together with peer %d", l.num, p.num)
			}
		}
	}
}

// violatesExclusion reports whether a peer's hold beside this lock's hold is the
// lock's fault. It is if the peer's probe was conclusive, or if the lock decided
// after the peer had taken its hold. A peer that has resubscribed after a kill
// goes on with its old hold: then only a decision after the resubscription
// counts.
func (l *lock) violatesExclusion(p *peer) bool {
	if p.resubscribed {
		return l.decidingSerial > p.subConn.joinedSerial
	}
	return p.conclusive || l.decidingSerial > max(p.heldSince, p.subConn.joinedSerial)
}

// checkKill checks that a lock kills only participants that do not answer.
func (m *model) checkKill(by, victim *conn) {
	if by.owner == nobody || m.locks[by.owner] == nil {
		return
	}
	m.kills++
	switch {
	case victim == by:
		m.fail("lock %d kills itself", by.owner)
	case victim.foreign:
		m.fail("lock %d kills %s, which is none of the channel's participants", by.owner, victim.name)
	case victim.owner == nobody: // its process has closed it, and the server has yet to notice
	case m.unboundedDelay || m.maxDelay == 0: // without a bound nobody can tell slow from dead
	case m.process(victim.owner).frozen, m.process(victim.owner).thawedSerial > victim.joinedSerial:
	case m.now.Sub(m.process(victim.owner).thawedAt) < time.Second: // it thawed between the last list and the kill
	default:
		m.fail("lock %d kills %s, which is healthy", by.owner, m.describeConn(victim))
	}
}

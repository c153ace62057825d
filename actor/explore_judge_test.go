package actor

import "time"

// judge looks for two holds that exclude each other while the server counts
// both. A hold that a portalocker took although it had not heard everybody who
// got its ping is its own documented gap.
func (w *model) judge() {
	for i, l := range w.locks {
		if l == nil || !l.alive() {
			continue
		}
		for _, o := range w.locks[i+1:] {
			if o != nil && o.alive() && o.conn.node == l.conn.node && !(l.m.cfg.Shared && o.m.cfg.Shared) {
				w.fail("locks %d and %d hold together", l.num, o.num)
			}
		}
		for _, p := range w.ports {
			if p != nil && p.alive() && p.sub.node == l.conn.node && !(l.m.cfg.Shared && p.shared) && l.blames(p) {
				w.fail("lock %d holds together with portalocker %d", l.num, p.num)
			}
		}
	}
}

// blames says whether a hold beside this one is this machine's fault.
func (l *lock) blames(p *port) bool {
	if p.revived {
		return l.decided > p.sub.joined
	}
	return p.exact || l.decided > max(p.since, p.sub.joined)
}

// judgeKill holds the machines to killing only those who do not answer.
func (w *model) judgeKill(by, victim *conn) {
	if by.owner == nobody || w.locks[by.owner] == nil {
		return
	}
	w.reaped++
	switch {
	case victim == by:
		w.fail("lock %d kills itself", by.owner)
	case victim.stranger:
		w.fail("lock %d kills %s, which is none of the channel's participants", by.owner, victim.name)
	case victim.owner == nobody: // it was closed, and the server has yet to notice
	case w.late || w.lag == 0:
	case w.bodyOf(victim.owner).frozen, w.bodyOf(victim.owner).iced > victim.joined:
	case w.now.Sub(w.bodyOf(victim.owner).thawed) < time.Second: // between the last list and the kill
	default:
		w.fail("lock %d kills %s, which is healthy", by.owner, w.title(victim))
	}
}

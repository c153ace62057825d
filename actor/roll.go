package actor

import (
	"slices"
	"time"

	"github.com/tetherlock/tether/protocol"
)

// roll is the search for those who are counted and do not answer. It takes two
// pings, each behind a list of the connections, and a list at the end. Who is
// there at every look and has answered none of the pings is taken for crashed
// or frozen, and its connection is ended.
//
// A list before each ping: who joined after a ping never got it, and who left
// before it need not answer.
type roll struct {
	calls     int // pings so far
	responses []string
	began     time.Time // when the first of them had gone out; zero until then
	last      time.Time // when the last of them had
	asked     time.Time // when the last list was wanted; zero when it is there
	listed    bool      // a list has come
	present   []Connection
	answered  []string // ids
	legacy    bool     // somebody answered without one
	denied    error    // why there is no list, or why nobody could be ended
	killing   []Connection
	spent     bool // it is over, and one more probe will show what it did
}

// heard notes an answer to any of the pings.
func (r *roll) heard(record protocol.Record) {
	if record.Legacy {
		r.legacy = true
		return
	}
	r.answered = append(r.answered, record.ID)
}

// suspect says whether a connection is one of a participant that is to be
// ended. Of legacy participants nobody knows which one has answered.
func (r *roll) suspect(c Connection) bool {
	if c.Legacy {
		return !r.legacy
	}
	return c.ID != "" && !slices.Contains(r.answered, c.ID)
}

// mute are those that do not answer: participants if there are any, and else
// whoever is subscribed to something.
func (r *roll) mute() []Connection {
	var known, others []Connection
	for _, c := range r.present {
		switch {
		case r.suspect(c):
			known = append(known, c)
		case c.ID == "" && !c.Legacy:
			others = append(others, c)
		}
	}
	if len(known) > 0 {
		return known
	}
	return others
}

const (
	// slowTrips is how many round trips a participant may take to answer, if
	// that is more than it may take anyway.
	slowTrips = 8
	// slowTimeouts bounds that, in times that it may take anyway.
	slowTimeouts = 3
)

// unavailable is how long a participant may take to answer. When the server
// takes its time for us, it does so for others: a hundred readers that come at
// once have ten thousand answers to give, and more pings make them only more.
func (m *Machine) unavailable() time.Duration {
	return max(m.cfg.Unavailable, min(slowTrips*m.link.trip, slowTimeouts*m.cfg.Unavailable))
}

// rolled notes when a ping of the roll has gone out.
func (m *Machine) rolled() {
	r := &m.roll
	if r.calls == 0 || r.spent {
		return
	}
	if r.began.IsZero() {
		r.began = m.now
	}
	if r.responses[len(r.responses)-1] == m.probe.response {
		r.last = m.now
	}
}

// silentAt is when those whose answers are missing count as silent. Time runs
// from the replies: while a server pauses writes it holds pings and answers
// back, and runs a kill. And it runs anew from each answer, for as long as they
// trickle in.
func (m *Machine) silentAt() time.Time {
	r, heard, patience := &m.roll, m.probe.heard, m.unavailable()
	half, moment := patience/2, patience/10
	switch {
	case m.phase == confirming || r.spent:
		return heard.Add(patience)
	case r.calls == 0:
		return heard.Add(moment)
	case r.calls == 1:
		return later(r.began.Add(half), heard.Add(moment))
	default:
		return later(r.began.Add(patience), later(r.last, heard).Add(half))
	}
}

// overdue takes a probe that has not been answered in time.
func (m *Machine) overdue() {
	r := &m.roll
	switch {
	case m.phase == confirming, r.spent:
		m.unheard()
	case r.calls < 2:
		m.callRoll()
	case r.denied != nil:
		m.unheard()
	default:
		r.asked, m.probe.recount = m.now, time.Time{}
		m.send(Command{Op: List})
	}
}

// callRoll lists and pings.
func (m *Machine) callRoll() {
	r := &m.roll
	r.calls++
	if r.denied != nil {
		m.ask(electing)
	} else {
		r.asked = m.now
		m.ask(electing, Command{Op: List})
	}
	m.roll.responses = append(m.roll.responses, m.probe.response)
}

// listed takes a list. Only who was on all of them stays under suspicion.
func (m *Machine) listed(in Listed) {
	r := &m.roll
	if m.phase != electing || r.asked.IsZero() {
		return
	}
	last, age := r.calls == 2 && m.probe.n >= 0, m.now.Sub(r.asked)
	r.asked = time.Time{}
	there := slices.DeleteFunc(in.Connections, func(c Connection) bool { return c.ID == m.link.id })
	if r.listed {
		there = slices.DeleteFunc(there, func(c Connection) bool { return !slices.Contains(r.present, c) })
	}
	r.present, r.listed = there, true
	switch {
	case !last:
	case age > m.unavailable()/2:
		// Frozen itself meanwhile, it would kill who has woken up since, and
		// whose answers stand behind this list.
		m.unheard()
	default:
		m.reap()
	}
}

// reap ends the connections of those who are silent, and asks once more.
func (m *Machine) reap() {
	r := &m.roll
	r.spent = true
	var kills []Command
	for _, c := range r.present {
		if r.suspect(c) {
			r.killing = append(r.killing, c)
			kills = append(kills, Command{Op: Kill, Num: c.Num})
		}
	}
	if len(kills) == 0 {
		m.unheard()
		return
	}
	m.ask(electing, kills...)
}

// killed takes the end of a kill.
func (m *Machine) killed(n int) {
	if len(m.roll.killing) == 0 {
		return
	}
	c := m.roll.killing[0]
	m.roll.killing = m.roll.killing[1:]
	if n > 0 {
		m.notify(Reaped{c})
		m.roll.present = slices.DeleteFunc(m.roll.present, func(o Connection) bool { return o == c })
	}
}

// deny takes the refusal of a list or a kill.
func (m *Machine) deny(command Op, f *Fault) {
	if m.roll.denied == nil {
		m.notify(ReapDenied{Err: f})
	}
	m.roll.denied = f
	if command == Kill && len(m.roll.killing) > 0 {
		m.roll.killing = m.roll.killing[1:]
		return
	}
	ending := !m.roll.asked.IsZero() && m.roll.calls == 2 && m.probe.n >= 0
	m.roll.asked = time.Time{}
	if ending && m.phase == electing {
		m.unheard()
	}
}

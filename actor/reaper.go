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
type reaper struct {
	firstProbe     time.Time // when the first probe had gone out
	pings          int       // pings so far
	responses      []string
	firstPing      time.Time // when the first of them had gone out; zero until then
	lastPing       time.Time // when the last of them had
	listSent       time.Time // when the last list was wanted; zero when it is there
	listed         bool      // a list has come
	candidates     []Connection
	answered       []string // ids
	legacyAnswered bool     // somebody answered without one
	err            error    // why there is no list, or why nobody could be ended
	killing        []Connection
	done           bool // it is over, and one more probe will show what it did
}

// heard notes an answer to any of the pings.
func (r *reaper) noteAnswer(record protocol.Record) {
	if record.Legacy {
		r.legacyAnswered = true
		return
	}
	r.answered = append(r.answered, record.ID)
}

// suspect says whether a connection is one of a participant that is to be
// ended. Of legacy participants nobody knows which one has answered.
func (r *reaper) isSilent(c Connection) bool {
	if c.Legacy {
		return !r.legacyAnswered
	}
	return c.ID != "" && !slices.Contains(r.answered, c.ID)
}

// mute are those that do not answer: participants if there are any, and else
// whoever is subscribed to something.
func (r *reaper) silent() []Connection {
	var known, others []Connection
	for _, c := range r.candidates {
		switch {
		case r.isSilent(c):
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
	return max(m.cfg.Unavailable, min(slowTrips*m.link.roundTrip, slowTimeouts*m.cfg.Unavailable))
}

// rolled notes when a ping of the roll has gone out.
func (m *Machine) reapPingSent() {
	r := &m.reaper
	if r.firstProbe.IsZero() {
		r.firstProbe = m.now
	}
	if r.pings == 0 || r.done {
		return
	}
	if r.firstPing.IsZero() {
		r.firstPing = m.now
	}
	if r.responses[len(r.responses)-1] == m.probe.response {
		r.lastPing = m.now
	}
}

// silentAt is when those whose answers are missing count as silent. Time runs
// from the replies: while a server pauses writes it holds pings and answers
// back, and runs a kill. And it runs anew from each answer, for as long as they
// trickle in, but not forever: where others come and go, each of them brings a
// new probe with new answers, and a frozen holder would never be ended.
func (m *Machine) silentAt() time.Time {
	r, heard, patience := &m.reaper, m.probe.lastAnswer, m.unavailable()
	half, moment := patience/2, patience/10
	switch {
	case m.phase == confirming, r.done && !m.searchesAgain():
		return heard.Add(patience)
	case r.done:
		return heard.Add(moment)
	case r.pings == 0:
		return earlier(heard.Add(moment), r.firstProbe.Add(patience))
	case r.pings == 1:
		return later(r.firstPing.Add(half), earlier(heard.Add(moment), r.firstPing.Add(patience)))
	default:
		trickle := earlier(heard.Add(half), r.firstPing.Add(slowTimeouts*patience))
		return later(later(r.firstPing.Add(patience), r.lastPing.Add(half)), trickle)
	}
}

// searchesAgain says whether another search may follow one that has ended
// somebody: meanwhile somebody else may have frozen. A try makes one.
func (m *Machine) searchesAgain() bool { return m.reaper.err == nil && !m.calls[0].Try }

// overdue takes a probe that has not been answered in time.
func (m *Machine) overdue() {
	r := &m.reaper
	switch {
	case m.phase == confirming:
		m.inconclusive(NotSearched)
	case r.pings < 2:
		m.pingSilent()
	case r.err != nil:
		m.inconclusive(ReapRefused)
	case r.done && m.searchesAgain():
		*r = reaper{firstProbe: m.now}
		m.pingSilent()
	case r.done:
		m.inconclusive(NotSearched)
	default:
		r.listSent, m.probe.recount = m.now, time.Time{}
		m.send(Command{Op: List})
	}
}

// callRoll lists and pings.
func (m *Machine) pingSilent() {
	m.noteSilent(Searching)
	r := &m.reaper
	r.pings++
	if r.err != nil {
		m.sendProbe(electing)
	} else {
		r.listSent = m.now
		m.sendProbe(electing, Command{Op: List})
	}
	m.reaper.responses = append(m.reaper.responses, m.probe.response)
}

// listed takes a list. Only who was on all of them stays under suspicion.
func (m *Machine) listed(in Listed) {
	r := &m.reaper
	if m.phase != electing || r.listSent.IsZero() {
		return
	}
	last, age := r.pings == 2 && m.probe.n >= 0, m.now.Sub(r.listSent)
	r.listSent = time.Time{}
	present := slices.DeleteFunc(in.Connections, func(c Connection) bool { return c.ID == m.link.id })
	there := present
	if r.listed {
		there = slices.DeleteFunc(slices.Clone(present), func(c Connection) bool { return !slices.Contains(r.candidates, c) })
	}
	r.candidates, r.listed = there, true
	switch {
	case !last:
	case age > m.unavailable()/2:
		// Frozen itself meanwhile, it would kill who has woken up since, and
		// whose answers stand behind this list.
		m.inconclusive(ListLate)
	default:
		m.reap(present)
	}
}

// reap ends the connections of those who are silent, and asks once more. Present
// are all connections of now.
func (m *Machine) reap(present []Connection) {
	r := &m.reaper
	r.done = true
	var kills []Command
	for _, c := range r.candidates {
		if r.isSilent(c) {
			r.killing = append(r.killing, c)
			kills = append(kills, Command{Op: Kill, Num: c.Num})
		}
	}
	switch {
	case len(kills) > 0:
		m.noteSilent(ReapDone)
		m.current.silence.count, m.current.silence.conns = len(kills), slices.Clone(r.killing)
		m.sendProbe(electing, kills...)
	case m.knowsUnheard(present):
		m.inconclusive(Undecided)
	default:
		m.inconclusive(NotFound)
	}
}

// knowsUnheard says whether one of several connections is a participant's whose
// answer to the last ping is missing. It has answered an earlier one, or come
// in the middle, so this search must spare it; the next one need not.
func (m *Machine) knowsUnheard(present []Connection) bool {
	return slices.ContainsFunc(present, func(c Connection) bool {
		return c.ID != "" && !slices.ContainsFunc(m.probe.records, func(r protocol.Record) bool { return r.ID == c.ID })
	})
}

// killed takes the end of a kill.
func (m *Machine) killed(n int) {
	if len(m.reaper.killing) == 0 {
		return
	}
	c := m.reaper.killing[0]
	m.reaper.killing = m.reaper.killing[1:]
	if n > 0 {
		m.notify(Reaped{c})
		m.reaper.candidates = slices.DeleteFunc(m.reaper.candidates, func(o Connection) bool { return o == c })
	}
}

// deny takes the refusal of a list or a kill.
func (m *Machine) reapFailed(command Op, f *Fault) {
	if m.reaper.err == nil {
		m.notify(ReapDenied{Err: f})
	}
	m.reaper.err = f
	if command == Kill && len(m.reaper.killing) > 0 {
		m.reaper.killing = m.reaper.killing[1:]
		m.current.silence.tried, m.current.silence.reapErr = ReapRefused, f
		return
	}
	ending := !m.reaper.listSent.IsZero() && m.reaper.pings == 2 && m.probe.n >= 0
	m.reaper.listSent = time.Time{}
	if ending && m.phase == electing {
		m.inconclusive(ReapRefused)
	}
}

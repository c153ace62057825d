package actor

import (
	"slices"
	"time"

	"github.com/tetherlock/tether/protocol"
)

// reaper is the search for participants that are counted and do not answer. It
// begins when records stay out in phase electing.
//
// The reaping rule: a connection is ended, by its client id, if it bears the
// exact name of a participant of this channel, is subscribed in every list, and
// has answered none of the pings. There are two pings, each with a CLIENT LIST
// before it in the same write, and a list at the end.
//
//   - Why a list before each ping: a participant that joined after a ping never
//     got it, and one that left before it need not answer.
//   - Why times run from the replies, and not from when the pings were sent:
//     under CLIENT PAUSE WRITE a ping waits at the server, while a kill runs.
//   - Why a legacy name is spared once any legacy answer came: all of those
//     participants have one name, and answers without a holder id.
//   - Never ended: oneself, and participants of other channels.
//
// Without permission for CLIENT LIST or KILL nobody is ended. The error is part
// of the refusal, and nothing fails because of it.
type reaper struct {
	firstProbe     time.Time    // when the reply to the first probe of the search came
	pings          int          // pings so far, at most 2
	responses      []string     // their response channels
	firstPing      time.Time    // when the reply to the first ping came; zero before
	lastPing       time.Time    // when the reply to the last one came
	newAnswer      time.Time    // when a candidate answered for the first time
	listSent       time.Time    // when the last list was sent; zero when its reply is in
	listed         bool         // a list has come
	candidates     []Connection // those that are in all lists so far
	answered       []string     // holder ids
	legacyAnswered bool         // an answer without a holder id has come
	err            error        // why there is no list, or why somebody could not be ended
	killing        []Connection // Kills without a reply yet, in order
	done           bool         // the kills are sent, one more probe shows what they did
}

// noteAnswer notes an answer to any of the pings.
func (r *reaper) noteAnswer(record protocol.Record, now time.Time) {
	switch {
	case record.Legacy && !r.legacyAnswered:
		r.legacyAnswered, r.newAnswer = true, now
	case record.Legacy:
	case !slices.Contains(r.answered, record.ID):
		r.answered = append(r.answered, record.ID)
		if !r.listed || slices.ContainsFunc(r.candidates, func(c Connection) bool { return c.ID == record.ID }) {
			r.newAnswer = now
		}
	}
}

// isSilent reports whether a connection is that of a participant that has not
// answered. Which of the legacy participants has answered is not known, so one
// answer is taken for all of them.
func (r *reaper) isSilent(c Connection) bool {
	if c.Legacy {
		return !r.legacyAnswered
	}
	return c.ID != "" && !slices.Contains(r.answered, c.ID)
}

// silent are the connections that do not answer: the participants among them, or,
// if there are none, the subscribers whose names do not tell what they are.
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
	// slowRoundTrips is how long a participant may take to answer, in round
	// trips, if that is more than the unavailable timeout.
	slowRoundTrips = 8
	// slowTimeouts bounds that, in unavailable timeouts.
	slowTimeouts = 3
)

// unavailable is the unavailable timeout, longer on a slow server. If it is slow
// for this lock, it is for others: a hundred readers that come at once send ten
// thousand answers, and more pings only add to them.
func (m *Machine) unavailable() time.Duration {
	return max(m.cfg.Unavailable, min(slowRoundTrips*m.link.roundTrip, slowTimeouts*m.cfg.Unavailable))
}

// reapPingSent notes that the reply to a probe is in, if its ping is one of the
// reaper's.
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

// silentAt is when participants whose answers are missing count as silent, for
// the next step of the reaper: a first ping after a tenth of the unavailable
// timeout, a second at half of it, the list at its end. A confirming probe, and
// the one behind the kills, have the whole timeout. Time runs from the replies to
// the pings, see reaper.
//
// The first answer of each candidate puts the list off: a hundred readers that come
// at once answer for longer than the timeout. Other answers do not. Where
// participants come and go, each that leaves brings a new probe with new answers,
// and a frozen holder would never be ended.
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
		return later(r.firstPing.Add(patience), later(r.lastPing, r.newAnswer).Add(half))
	}
}

// searchesAgain reports whether another search follows one that has ended somebody:
// another participant may have frozen meanwhile. A try searches once.
func (m *Machine) searchesAgain() bool { return m.reaper.err == nil && !m.calls[0].Try }

// overdue does the next step for a probe whose answers are overdue: ping again,
// list, or give up.
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

// pingSilent lists the connections and pings, in one write. Without permission to
// list, it only pings.
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

// listed takes a list. Only a connection that is in all lists stays a candidate.
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
		// This process itself may have been frozen since it sent the list. A
		// peer may have woken up with it, and its answer may stand behind this
		// reply.
		m.inconclusive(ListLate)
	default:
		m.reap(present)
	}
}

// reap ends the connections of silent participants and probes once more, behind
// the kills. Present are all connections in the last list.
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
	case m.knowsSilent(present):
		m.inconclusive(Undecided)
	default:
		m.inconclusive(NotFound)
	}
}

// knowsSilent reports whether one of the connections is that of a participant whose
// answer to the last ping is missing. It has answered an earlier ping, or joined
// behind it, so this search must spare it. The next search need not.
func (m *Machine) knowsSilent(present []Connection) bool {
	return slices.ContainsFunc(present, func(c Connection) bool {
		return c.ID != "" && !slices.ContainsFunc(m.probe.records, func(r protocol.Record) bool { return r.ID == c.ID })
	})
}

// killed takes the reply to the oldest Kill.
func (m *Machine) killed(n int) {
	if len(m.reaper.killing) == 0 {
		return
	}
	c := m.reaper.killing[0]
	m.reaper.killing = m.reaper.killing[1:]
	if n > 0 {
		m.current.reapErr = nil
		m.notify(Reaped{c})
		m.reaper.candidates = slices.DeleteFunc(m.reaper.candidates, func(o Connection) bool { return o == c })
	}
}

// reapFailed takes the error reply to a List or Kill.
func (m *Machine) reapFailed(command Op, f *Fault) {
	if m.reaper.err == nil {
		m.notify(ReapDenied{Err: f})
	}
	m.reaper.err, m.current.reapErr = f, f
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

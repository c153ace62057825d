package tether

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tetherlock/tether/actor"
)

// mostNamed is how many silent participants an error names.
const mostNamed = 3

// silentPeers is what is known about participants that do not answer.
type silentPeers struct {
	conns       []actor.Connection
	denied      error // why they could not be found, or ended
	tried       actor.ReapState
	since       time.Duration // they were asked so long ago
	unavailable time.Duration // and may take so long
}

// words describes a number of silent participants.
func (s silentPeers) words(count int) string {
	if count == 0 {
		return ""
	}
	verb := "does"
	if count > 1 {
		verb = "do"
	}
	text := participants(count) + " " + verb + " not answer" + s.who()
	if more := s.whatElse(); more != "" {
		text += " (" + more + ")"
	}
	if s.denied != nil {
		text += ", and cannot be found or disconnected: " + stripped(s.denied).Error()
	}
	return text
}

// whatElse tells what was tried, and when, as far as that helps to understand
// why it was not enough.
func (s silentPeers) whatElse() string {
	asked := fmt.Sprintf("asked %v ago", s.since.Round(time.Millisecond))
	switch s.tried {
	case actor.Searching:
		if s.nameless() {
			return asked
		}
		if s.since > s.unavailable {
			// Answers of others put the end off.
			return asked + ", the search for it is not over"
		}
		return asked + fmt.Sprintf(", disconnected after %v without an answer", s.unavailable)
	case actor.ReapDone:
		return "disconnected, not yet asked again"
	case actor.NotSearched, actor.ReapRefused, actor.NotFound, actor.Undecided, actor.ListLate:
	}
	var facts []string
	reason := unsettled[s.tried]
	if s.tried == actor.NotFound && len(s.conns) == 0 {
		reason = "not disconnected: no connection of it was found"
	}
	if reason != "" {
		facts = append(facts, reason)
	}
	if s.since > 2*s.unavailable || s.tried == actor.NotSearched && s.since > 0 {
		facts = append(facts, asked)
	}
	return strings.Join(facts, "; ")
}

// nameless says whether connections were found and none has a participant's name. Such
// a one is never disconnected.
func (s silentPeers) nameless() bool {
	named := func(c actor.Connection) bool { return connHolder(c).name() != "" }
	return len(s.conns) > 0 && !slices.ContainsFunc(s.conns, named)
}

// unsettled says why a search has disconnected nobody.
var unsettled = map[actor.ReapState]string{
	actor.Undecided: "not disconnected: it answered one of two pings, or came in between",
	actor.ListLate:  "not disconnected: the list of connections came too late",
}

func participants(n int) string {
	if n == 1 {
		return "1 participant"
	}
	return fmt.Sprintf("%d participants", n)
}

// who names the participants. A subscriber without a participant's name cannot be
// told from others: any connection that is subscribed to something may be it.
func (s silentPeers) who() string {
	var known, others []string
	for _, c := range s.conns {
		switch p := connHolder(c); {
		case p.name() != "":
			known = append(known, p.String())
		default:
			others = append(others, p.Addr)
		}
	}
	switch {
	case len(known) > 0:
		return ": " + some(known)
	case len(others) > mostNamed:
		return fmt.Sprintf(", subscribed under no name of this lock by one of %d connections", len(others))
	case len(others) > 0:
		return ", subscribed under no name of this lock, perhaps from " + strings.Join(others, " or ")
	}
	return ""
}

// some is the first few of a list, and the number of the rest.
func some(list []string) string {
	if more := len(list) - mostNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:mostNamed], ", "), more)
	}
	return strings.Join(list, ", ")
}

package tether

import (
	"fmt"
	"strings"

	"github.com/tetherlock/tether/actor"
)

// mostNamed is how many silent participants an error names.
const mostNamed = 3

// silentPeers is what is known about participants that do not answer.
type silentPeers struct {
	conns  []actor.Connection
	denied error // why they could not be found, or ended
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
	if s.denied != nil {
		text += ", and cannot be found or disconnected: " + stripped(s.denied).Error()
	}
	return text
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

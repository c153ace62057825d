package actor

import (
	"slices"
	"time"
)

// link is the machine's book about its socket: what is subscribed and what the
// server still owes.
type link struct {
	up    bool
	id    string // holder id; it belongs to the socket
	warm  bool   // it has served an earlier attempt
	heard bool   // the server has answered since the attempt began
	owed  int    // replies
	subs  []subscription
	dial  int // number of the last Dial
	until time.Time
	trip  time.Duration // of the last attempt's first round
}

type subscription struct {
	channel   string
	confirmed bool
	leaving   bool
}

// clean says whether the socket could be anybody's: every reply is in, every
// unsubscribe confirmed, nothing subscribed.
func (l *link) clean() bool { return l.up && l.owed == 0 && len(l.subs) == 0 }

// doubtful says whether the socket was idle and has shown no life since. It may
// have been dead for long, which says nothing about the server.
func (l *link) doubtful() bool { return l.warm && !l.heard }

func (l *link) find(channel string) *subscription {
	for i := range l.subs {
		if l.subs[i].channel == channel {
			return &l.subs[i]
		}
	}
	return nil
}

// on says whether the server has confirmed the subscription.
func (l *link) on(channel string) bool {
	s := l.find(channel)
	return s != nil && s.confirmed
}

// send adds commands to what this turn writes, and to what the server owes.
func (m *Machine) send(commands ...Command) {
	for _, c := range commands {
		switch c.Op {
		case Subscribe:
			m.link.subs = append(m.link.subs, subscription{channel: c.Channel})
		case Unsubscribe:
			m.link.find(c.Channel).leaving = true
		default:
			m.link.owed++
		}
	}
	m.do(Send{commands})
}

// unsubscribes lists the UNSUBSCRIBE commands for all that is subscribed,
// apart from one channel.
func (m *Machine) unsubscribes(except string) []Command {
	var list []Command
	for _, s := range m.link.subs {
		if !s.leaving && s.channel != except {
			list = append(list, Command{Op: Unsubscribe, Channel: s.channel})
		}
	}
	return list
}

// heard takes what comes from the socket.
func (m *Machine) heard(in Input) {
	switch in := in.(type) {
	case Dialed:
		m.link = link{up: true, id: in.ID, warm: !in.Fresh, dial: m.link.dial, trip: m.link.trip}
		m.join()
		return
	case DialFailed:
		m.fail(in.Err)
		return
	case Disconnected:
		m.disconnected(in.Err)
		return
	case MasterMoved:
		// The socket works, for now, and leads to the wrong place.
		m.disconnected(in.Err)
		return
	case Rotated:
		if m.link.up {
			m.send(Command{Op: Auth})
		}
		return
	}
	m.link.heard = true
	m.frame(in)
	if m.phase == leaving && m.link.clean() {
		m.left(nil)
	}
}

// frame takes one push or reply.
func (m *Machine) frame(in Input) {
	switch in := in.(type) {
	case Subscribed:
		if s := m.link.find(in.Channel); s != nil {
			s.confirmed = true
		}
		m.progress()
	case Unsubscribed:
		m.unsubscribed(in.Channel)
	case Pinged:
		m.pinged(in.Response)
	case Answered:
		m.answered(in)
	case Counted:
		m.link.owed--
		m.counted(in.N)
	case Probed:
		m.link.owed--
		m.probed(in.N)
	case Greeted:
		m.link.owed--
		m.greeted(in)
	case Done:
		m.link.owed--
	case Failed:
		m.failed(in)
	}
}

func (m *Machine) unsubscribed(channel string) {
	s := m.link.find(channel)
	if s == nil {
		return
	}
	expected := s.leaving
	m.link.subs = slices.DeleteFunc(m.link.subs, func(s subscription) bool { return s.channel == channel })
	if !expected {
		// Whatever took the subscription away took the lock with it.
		m.broken(&Fault{Kind: Transient, Command: Unsubscribe.String(), Message: "the server ended the subscription"})
	}
}

// failed takes an error reply.
func (m *Machine) failed(in Failed) {
	if !in.Command.pushed() {
		m.link.owed--
	}
	f := ReplyFault(in.Command.String(), in.Message)
	switch {
	case in.Command == Auth, in.Command == Answer:
		// The server goes on with the old login; whether it cuts the socket
		// is its business, and would show. An answer that it does not take
		// harms whoever has asked: anybody may ask for one on a channel where
		// this user may not publish, or while a script is busy.
		m.notify(Checked{Err: f})
	case f.isNoScript() && m.phase == leaving: // nobody wants to know any more
	case in.Command == Probe && f.isNoScript() && m.phase.probing():
		m.probe.skip++
		m.send(Command{Op: LoadProbe, Channel: m.probe.response}, Command{Op: Hello})
	case m.phase == leaving:
		m.drop()
		m.left(f)
	default:
		m.broken(f)
	}
}

// broken takes an error after which the socket cannot be trusted.
func (m *Machine) broken(err error) {
	switch m.phase {
	case resting:
		m.drop()
	case leaving:
		m.drop()
		m.left(nil)
	case holding:
		m.lose(err)
	case dialing, joining, electing, elected, confirming, doubting, sleeping:
		m.fail(err)
	}
}

// disconnected takes the end of the socket, which has closed itself.
func (m *Machine) disconnected(err error) {
	if m.phase == sleeping {
		// Nothing was under way; the next attempt dials.
		m.drop()
		m.serve.asked = time.Time{}
		return
	}
	m.broken(err)
}

// drop closes the socket and forgets everything that was bound to it.
func (m *Machine) drop() {
	if m.link.up {
		m.do(Drop{})
	}
	m.link = link{dial: m.link.dial, trip: m.link.trip}
	m.withdraw()
}

// putAway hands a clean socket on and closes any other.
func (m *Machine) putAway() {
	if !m.link.clean() {
		m.drop()
		return
	}
	m.do(Park{})
	m.link = link{dial: m.link.dial, trip: m.link.trip}
}

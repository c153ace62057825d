package actor

import (
	"slices"
	"time"

	"github.com/tetherlock/tether/protocol"
)

// link is the machine's book about its socket: what is subscribed and what the
// server still owes.
type link struct {
	up             bool
	id             string    // holder id; it belongs to the socket
	wake           string    // the channel on which it is woken
	reused         bool      // it has served an earlier attempt
	answered       bool      // the server has answered since the attempt began
	lastFrame      time.Time // when it has said anything
	pendingReplies int       // replies
	subs           []subscription
	wakes          []protocol.Queue // sent and not yet answered, first in, first out
	dial           int              // number of the last Dial
	idleUntil      time.Time
	roundTrip      time.Duration // of the last attempt's first round
	// placed says that the id was put at the tail of a queue when it left, and
	// that it listens for its wake.
	queued bool
	out    outbox
}

// outbox is the memory of what one step writes. The next step that writes uses
// it again.
type outbox struct {
	commands []Command
	sends    []Send
}

// maxOutbox is how many commands are worth keeping the memory of.
const maxOutbox = 8

func (o *outbox) send(commands []Command) *Send {
	from := len(o.commands)
	o.commands = append(o.commands, commands...)
	o.sends = append(o.sends, Send{slices.Clip(o.commands[from:])})
	return &o.sends[len(o.sends)-1]
}

func (o *outbox) empty() {
	if cap(o.commands) > maxOutbox {
		*o = outbox{}
	}
	o.commands, o.sends = o.commands[:0], o.sends[:0]
}

type subscription struct {
	channel   string
	confirmed bool
	leaving   bool
}

// clean says whether the socket could be anybody's: every reply is in, every
// unsubscribe confirmed, nothing subscribed.
func (l *link) clean() bool { return l.up && l.pendingReplies == 0 && len(l.subs) == 0 }

// settled says whether the server owes nothing, and every subscription stands.
func (l *link) allConfirmed() bool {
	return l.up && l.pendingReplies == 0 && !slices.ContainsFunc(l.subs, func(s subscription) bool { return s.leaving || !s.confirmed })
}

// doubtful says whether the socket was idle and has shown no life since. It may
// have been dead for long, which says nothing about the server.
func (l *link) maybeDead() bool { return l.reused && !l.answered }

func (l *link) find(channel string) *subscription {
	for i := range l.subs {
		if l.subs[i].channel == channel {
			return &l.subs[i]
		}
	}
	return nil
}

// on says whether the server has confirmed the subscription.
func (l *link) isSubscribed(channel string) bool {
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
			m.link.pendingReplies++
		}
	}
	if !slices.ContainsFunc(m.out, isSend) {
		m.link.out.empty() // what is left there is of an earlier step
	}
	m.do(m.link.out.send(commands))
}

func isSend(e Effect) bool {
	_, ok := e.(*Send)
	return ok
}

// standing says whether a channel stays subscribed from one question to the
// next.
func (m *Machine) outlivesProbe(channel string) bool {
	return channel == m.cfg.Channel || channel == m.link.wake || channel == m.cfg.Waiters
}

// unsubscribes adds to a list the UNSUBSCRIBE commands for all that is
// subscribed and not to be kept, the lock's channel at the end.
func (m *Machine) unsubscribes(list []Command, keep func(channel string) bool) []Command {
	last := false
	for _, s := range m.link.subs {
		switch {
		case s.leaving || keep(s.channel):
		case s.channel == m.cfg.Channel:
			last = true
		default:
			list = append(list, Command{Op: Unsubscribe, Channel: s.channel})
		}
	}
	if last {
		list = append(list, Command{Op: Unsubscribe, Channel: m.cfg.Channel})
	}
	return list
}

// heard takes what comes from the socket.
func (m *Machine) socketInput(in Input) {
	switch in := in.(type) {
	case Dialed:
		m.dialed(in)
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
	m.link.answered, m.link.lastFrame = true, m.now
	m.frame(in)
	if m.phase == leaving && m.link.allConfirmed() {
		m.departed(nil)
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
		m.pinged(in.Ping)
	case Answered:
		m.answered(in)
	case Woken:
		m.woken(in.Wake)
	case Failed:
		m.failed(in)
	default:
		m.link.pendingReplies--
		m.replied(in)
	}
}

// replied takes one reply.
func (m *Machine) replied(in Input) {
	switch in := in.(type) {
	case Counted:
		m.counted(in)
	case Polled:
		m.polled(in)
	case Probed:
		m.probed(in)
	case Greeted:
		m.greeted(in)
	case WaitersCounted:
		m.writersCounted(in.Counts)
	case Waked:
		if m.wakeAnswered(); in.N == 0 {
			m.link.queued = false // nobody waits
		}
	case Listed:
		m.listed(in)
	case Killed:
		m.killed(in.N)
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
		m.link.pendingReplies--
	}
	command := in.Command.String()
	if in.Text {
		command = "EVAL"
	}
	f := ReplyFault(command, in.Message)
	switch in.Command {
	case Auth, Answer, WakeReaders:
		// The server goes on with the old login; whether it cuts the socket
		// is its business, and would show. An answer that it does not take
		// harms whoever has asked: anybody may ask for one on a channel where
		// this user may not publish, or while a script is busy.
		m.notify(Checked{Err: f})
	case Wake:
		if q := m.wakeAnswered(); f.isNoScript() {
			m.wake(q, true)
			return
		}
		m.notify(Checked{Err: f})
	case List, Kill:
		m.reapFailed(in.Command, f)
	case CountAndDraw, Probe, ProbeAndDraw:
		m.scriptFailed(in.Command, f)
	default:
		m.rejected(f)
	}
}

// scriptFailed takes the error of a question. A server that has forgotten the
// script is asked again, unless nobody wants to know any more.
func (m *Machine) scriptFailed(command Op, f *Fault) {
	if command != Probe && f.Kind == Denied && f.Command == Answer.String() {
		f.Command = "INCR, GET, SET, TIME or PUBLISH in a script"
	}
	switch {
	case !f.isNoScript():
		m.rejected(f)
	case m.phase == joining && command == CountAndDraw:
		m.probe.staleHellos++
		m.send(Command{Op: CountAndDraw, Text: true}, Command{Op: Hello})
	case m.phase.probing() && command != CountAndDraw:
		m.probe.staleHellos++
		m.send(m.probeCommand(true), Command{Op: Hello})
	case m.phase != leaving:
		m.rejected(f)
	}
}

// rejected takes an error that the lock cannot go on with.
func (m *Machine) rejected(f *Fault) {
	if m.phase == leaving {
		m.drop()
		m.departed(f)
		return
	}
	m.broken(f)
}

// broken takes an error after which the socket cannot be trusted.
func (m *Machine) broken(err error) {
	switch m.phase {
	case resting:
		m.drop()
	case leaving:
		m.drop()
		m.departed(nil)
	case holding:
		m.lose(err)
	case dialing, joining, electing, elected, confirming, reconfirming, sleeping:
		m.fail(err)
	}
}

// disconnected takes the end of the socket, which has closed itself.
func (m *Machine) disconnected(err error) {
	if m.phase == sleeping {
		// Nothing was under way; the next attempt dials.
		m.drop()
		m.current.pollSent = time.Time{}
		return
	}
	m.broken(err)
}

// drop closes the socket and forgets everything that was bound to it.
func (m *Machine) drop() {
	if m.link.up {
		m.do(Drop{})
	}
	m.link = link{dial: m.link.dial, roundTrip: m.link.roundTrip}
	m.withdrawClaims()
}

// putAway hands a clean socket on and closes any other.
func (m *Machine) parkOrClose(last bool) {
	if !m.link.clean() {
		m.drop()
		return
	}
	m.do(Park{last})
	m.link = link{dial: m.link.dial, roundTrip: m.link.roundTrip}
}

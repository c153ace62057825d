package actor

import (
	"slices"
	"time"

	"github.com/tetherlock/tether/protocol"
)

// link is what the machine knows of its socket: what is subscribed and which
// replies are due.
type link struct {
	up       bool
	reused   bool // it has served an earlier attempt
	answered bool // a frame has come since the attempt began
	// queued says that a release has put the id at the tail of a queue, and
	// that the wake channel is subscribed.
	queued         bool
	pendingReplies int32
	id             string    // holder id; it belongs to the socket
	wake           string    // its wake channel, empty until it is subscribed
	waiters        string    // the waiters channel, likewise
	lastFrame      time.Time // when the last frame came
	subs           []subscription
	wakes          []protocol.Queue // queues of the Wakes without a reply yet, in order
	dial           int              // number of the last Dial
	idleUntil      time.Time        // in phase resting: when it is parked
	roundTrip      time.Duration    // the last one that was measured
}

// outbox is the memory of what one step writes, reused by the next step that
// writes.
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
	leaving   bool // UNSUBSCRIBE is sent
}

// wakeChannel is the channel on which the socket is woken. Most locks never wait for
// anybody, so its name is made when it is needed.
func (m *Machine) wakeChannel() string {
	if m.link.wake == "" {
		m.link.wake = m.cfg.WakeChannel(m.link.id)
	}
	return m.link.wake
}

// waitersChannel is the channel of all sleepers of the lock.
func (m *Machine) waitersChannel() string {
	if m.link.waiters == "" {
		m.link.waiters = m.cfg.Waiters()
	}
	return m.link.waiters
}

// clean reports whether another lock may use the socket: every reply is in,
// every UNSUBSCRIBE is confirmed, and nothing is subscribed.
func (l *link) clean() bool { return l.up && l.pendingReplies == 0 && len(l.subs) == 0 }

// allConfirmed reports whether every reply is in, and every SUBSCRIBE and
// UNSUBSCRIBE is confirmed.
func (l *link) allConfirmed() bool {
	return l.up && l.pendingReplies == 0 && !slices.ContainsFunc(l.subs, func(s subscription) bool { return s.leaving || !s.confirmed })
}

// maybeDead reports whether the socket was idle before this attempt and no frame
// has come since. It may have died long ago, which says nothing about the
// server.
func (l *link) maybeDead() bool { return l.reused && !l.answered }

func (l *link) find(channel string) *subscription {
	for i := range l.subs {
		if l.subs[i].channel == channel {
			return &l.subs[i]
		}
	}
	return nil
}

// isSubscribed reports whether the server has confirmed the subscription.
func (l *link) isSubscribed(channel string) bool {
	s := l.find(channel)
	return s != nil && s.confirmed
}

// send writes commands, and notes what the server is to answer.
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
		m.outbox.empty() // what is left there is of an earlier step
	}
	m.do(m.outbox.send(commands))
}

func isSend(e Effect) bool {
	_, ok := e.(*Send)
	return ok
}

// outlivesProbe reports whether a channel stays subscribed from one probe to the
// next. Response channels do not.
func (m *Machine) outlivesProbe(channel string) bool {
	return channel == m.cfg.Channel || channel == m.link.wake || channel == m.link.waiters
}

// unsubscribes adds an UNSUBSCRIBE to a list for each channel that is subscribed
// and not to be kept. The lock's channel comes last.
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

// socketInput takes an input from the socket.
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
		// The socket still works, but leads to the old master. Another lock
		// must not get it.
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
		m.waitersCounted(in.Counts)
	case Waked:
		if m.wakeAnswered(); in.N == 0 {
			m.link.queued = false // nobody was woken: no order to keep
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
		// Without the subscription there is no lock.
		m.broken(&Fault{Kind: Transient, Command: Unsubscribe.String(), Message: "the server ended the subscription"})
	}
}

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
		// None of these ends anything. Auth: the server goes on with the old
		// login, and if it closes the socket, that is noticed. Answer: anybody
		// can ask for one on a channel where this user may not publish, or
		// while a script is busy, so a refused one must not cost the hold.
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

// scriptFailed takes the error of a script that counts or pings. If the server
// does not have the script, it is sent again by its text, unless the lock is
// leaving and does not need the result.
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

// rejected takes an error that the lock cannot go on with. For a lock that is
// leaving it is the reason why that is not confirmed.
func (m *Machine) rejected(f *Fault) {
	if m.phase == leaving {
		m.drop()
		m.departed(f)
		return
	}
	m.broken(f)
}

// broken takes an error after which the socket is of no use. A hold is lost, an
// attempt has failed, and a lock that was leaving has left.
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

// disconnected takes the end of the socket. In a sleep it costs nothing: no
// attempt is under way, and the next one dials.
func (m *Machine) disconnected(err error) {
	if m.phase == sleeping {
		m.drop()
		m.current.pollSent = time.Time{}
		return
	}
	m.broken(err)
}

// drop closes the socket and forgets everything about it.
func (m *Machine) drop() {
	if m.link.up {
		m.do(Drop{})
	}
	m.link = link{dial: m.link.dial, roundTrip: m.link.roundTrip}
	m.withdrawClaims()
}

// parkOrClose gives a clean socket back to the connection pool and closes any
// other. With last, the lock is about to end.
func (m *Machine) parkOrClose(last bool) {
	if !m.link.clean() {
		m.drop()
		return
	}
	m.do(Park{last})
	m.link = link{dial: m.link.dial, roundTrip: m.link.roundTrip}
}

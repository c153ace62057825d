package actor

import (
	"context"
	"errors"
	"time"

	"github.com/tetherlock/tether/wire"
)

// Environment is what a lock's goroutine asks of its surroundings. All methods
// are called on that goroutine and must not block, unless they say otherwise.
// A lock that waits does not answer pings, and its peers end its connection.
type Environment interface {
	// Perform performs an effect for callers, and returns an input that comes
	// of it, or nil.
	Perform(e Effect) Input
	// Handle takes a message that is not an [Input], and the state of the lock.
	// It may call feed with inputs for the machine, before it returns.
	Handle(m any, s State, feed func(Input))
	// Ended is called when the goroutine ends, last.
	Ended()
}

// PresenceEnvironment is the [Environment] of a presence lock: where it gets
// its socket.
type PresenceEnvironment interface {
	Environment
	// Idle returns a clean idle socket, or nil. DiscardIdle closes all of them.
	Idle() *wire.Socket
	DiscardIdle()
	// Dial returns a new socket. It is called on a goroutine of its own and may
	// block, also beyond the end of the context.
	Dial(ctx context.Context) (*wire.Socket, error)
	// Park takes a clean socket back. last says that the lock is about to end.
	Park(s *wire.Socket, last bool)
	// Watch returns a channel that tells when new connections reach another master
	// than the socket at addr. It is nil where there is only one master. Unwatch
	// ends that.
	Watch(addr string) (moved <-chan error)
	Unwatch(moved <-chan error)
}

// LeaseEnvironment is the [Environment] of a lease: how it reaches its key.
type LeaseEnvironment interface {
	Environment
	// Run runs a command. It is called on a goroutine of its own and may block,
	// also beyond the end of the context.
	Run(ctx context.Context, command Run) (LeaseReply, error)
	// Listen sends to released, without blocking, when the key may have been
	// given back, until stop is called.
	Listen(released chan<- struct{}) (stop func())
}

// Loop is the handle of one lock's goroutine. Its methods but Start are safe for
// concurrent use.
type Loop struct {
	inbox  chan any
	done   chan struct{}
	runner *runner // nil from Start on
}

// NewLoop returns the loop of a presence lock. It runs from [Loop.Start] on.
func NewLoop(cfg Config, env PresenceEnvironment) *Loop {
	m := NewMachine(cfg)
	l := newLoop(env, m)
	r := l.runner
	r.cfg = &m.cfg
	return l
}

// NewLeaseLoop returns the loop of a lease. It runs from [Loop.Start] on.
func NewLeaseLoop(cfg LeaseConfig, env LeaseEnvironment) *Loop {
	l := newLoop(env, NewLease(cfg))
	l.runner.lease = &leaseRunner{env: env, outcomes: make(chan Ran), released: make(chan struct{}, 1)}
	return l
}

// Start starts the goroutine, which handles the message first before any other,
// unless it is nil. Its first connection is the idle socket, unless that is nil. Start
// must be called once.
func (l *Loop) Start(first any, idle *wire.Socket) {
	r := l.runner
	l.runner, r.idle = nil, idle
	go r.run(first)
}

func newLoop(env Environment, m machine) *Loop {
	l := &Loop{inbox: make(chan any), done: make(chan struct{})}
	l.runner = &runner{
		inbox: l.inbox, done: l.done, env: env, machine: m,
	}
	l.runner.feeder = l.runner.feed
	return l
}

// Send gives a message to the lock: an [Input], or anything for
// [Environment.Handle]. It blocks until the lock has received it, which is
// never long once the loop is started, and returns false when the lock has
// ended. A message that was received is answered.
func (l *Loop) Send(m any) bool {
	select {
	case l.inbox <- m:
		return true
	case <-l.done:
		return false
	}
}

// Done returns a channel that is closed when the lock has ended.
func (l *Loop) Done() <-chan struct{} { return l.done }

type dialResult struct {
	dial   int
	socket *wire.Socket
	err    error
}

// machine is a [Machine] or a [Lease].
type machine interface {
	Step(now time.Time, in Input) []Effect
	Deadline() time.Time
	State() State
	// Shed frees the memory that only a machine at work needs.
	Shed()
}

// runner is the state that the goroutine owns. It works in turns: it waits for
// one message, lets the machine take it, writes everything that this caused in
// one write, and sets the timer.
type runner struct {
	inbox   chan any
	done    chan struct{}
	env     Environment
	machine machine

	// Only of a presence lock.
	cfg      *Config      // the machine's
	idle     *wire.Socket // the first connection, nil for none
	socket   *wire.Socket // nil for none
	route    router
	lockName string // the connection's name on the channel, empty until needed
	buf      []byte // what this turn writes

	dialed     chan dialResult // nil if no dial is under way
	cancelDial context.CancelFunc
	moved      <-chan error // nil where there is only one master

	lease *leaseRunner // only of a lease

	timer         *time.Timer // nil until there is a deadline
	armed         time.Time   // what the timer is set to, zero for nothing
	now           time.Time   // of this turn
	startedAt     time.Time   // of the present goroutine, zero if it may end at once
	pendingInputs []Input     // results of effects, for the machine
	feeder        func(Input) // the method feed, made once
	moreFrames    bool        // frames or an error of the batch are not handled yet
	settled       bool        // there was no turn since shed
	feeding       bool
	ended         bool
}

func (r *runner) run(first any) {
	r.startedAt, r.settled = time.Now(), true
	if first != nil {
		r.takeMessage(first)
	}
	r.endTurn()
	r.serve()
}

// serve takes messages until the lock has ended. When a lock is likely to wait for
// long, serve goes on in a new goroutine, one behind the other.
//
// A turn grows the stack to 4 or 8 kB. The runtime shrinks a stack only when less than
// a quarter of it is in use, which is never so in a select: a lock that is held for
// hours would keep what its acquire needed. A new goroutine begins with 2 kB. To stay
// there, the frames of serve, waitPresence and waitLease must be small.
func (r *runner) serve() {
	for !r.ended {
		if r.waitsLong() {
			r.shed()
			go r.serve()
			return
		}
		if r.lease != nil {
			r.waitLease()
		} else {
			r.waitPresence()
		}
		r.endTurn()
	}
	r.end()
}

// end is the last thing that the loop does.
func (r *runner) end() {
	r.abandonDial()
	r.listen(false)
	if r.timer != nil {
		r.timer.Stop()
	}
	r.returnIdle()
	r.env.Ended()
	close(r.done)
}

const (
	// minServe is how long a goroutine serves at least. A lock that is taken and
	// released all the time starts ten goroutines a second for that.
	minServe = 100 * time.Millisecond
	// longWait is a deadline that is far away. A waiter's next poll comes sooner.
	longWait = time.Second
)

// waitsLong reports whether no message is expected soon, and the present goroutine has
// served for long enough.
func (r *runner) waitsLong() bool {
	if r.settled || r.dialed != nil || r.route.awaits() || !r.startedAt.IsZero() && r.now.Sub(r.startedAt) < minServe {
		return false
	}
	at := r.machine.Deadline()
	return at.IsZero() || at.Sub(r.now) >= longWait
}

// shed frees the memory that only turns need.
func (r *runner) shed() {
	r.startedAt, r.settled = r.now, true
	r.buf, r.pendingInputs, r.lockName = nil, nil, ""
	r.route.shed()
	r.machine.Shed()
}

// presence is the environment of a presence lock.
func (r *runner) presence() PresenceEnvironment { return r.env.(PresenceEnvironment) }

func (r *runner) endTurn() {
	r.flush()
	r.rearm()
}

// waitPresence takes one message for a presence lock.
func (r *runner) waitPresence() {
	frames, rotated := r.sources()
	select {
	case m := <-r.inbox:
		r.takeMessage(m)
	case b := <-frames:
		r.tick()
		r.read(b)
	case login := <-rotated:
		r.tick()
		r.rotate(login)
	case d := <-r.dialed:
		r.tick()
		r.dialDone(d)
	case err := <-r.moved:
		r.tick()
		r.feed(MasterMoved{Err: err})
	}
}

// waitLease takes one message for a lease.
func (r *runner) waitLease() {
	select {
	case m := <-r.inbox:
		r.takeMessage(m)
	case o := <-r.lease.outcomes:
		r.tick()
		r.feed(o)
	case <-r.lease.released:
		r.tick()
		r.feed(KeyReleased{})
	}
}

// timeUp is the message of the timer. One that comes too early does no harm.
type timeUp struct{}

// sendTimeUp is called by the timer, on a goroutine of its own. A timer that has a
// channel costs a held lock 250 bytes more, for the channel and for its place in the
// select.
func (r *runner) sendTimeUp() {
	select {
	case r.inbox <- timeUp{}:
	case <-r.done:
	}
}

// takeMessage takes a message of Send, or of the timer.
func (r *runner) takeMessage(m any) {
	r.tick()
	switch in := m.(type) {
	case Input:
		r.feed(in)
		return
	case timeUp:
		r.armed = time.Time{}
		r.feed(Tick{})
		return
	}
	r.env.Handle(m, r.machine.State(), r.feeder)
}

// maxClockDrift is how far the wall clock may run ahead of the monotonic clock
// between two turns. Corrections of the wall clock by NTP stay below it.
const maxClockDrift = 100 * time.Millisecond

// tick reads the clock, once per turn. Timers run by the monotonic clock, which
// stands still while the computer is suspended. The wall clock shows that, and
// a lease must know, because its key expires meanwhile. The hold of a presence
// lock has no expiry.
func (r *runner) tick() {
	before := r.now
	r.now, r.settled = time.Now(), false
	if r.lease == nil || before.IsZero() {
		return
	}
	if slept := r.now.Round(0).Sub(before.Round(0)) - r.now.Sub(before); slept > maxClockDrift {
		r.feed(Slept{For: slept})
	}
}

func (r *runner) sources() (<-chan wire.Batch, <-chan wire.Login) {
	if r.socket == nil {
		return nil, nil
	}
	return r.socket.Frames(), r.socket.Rotated
}

func (r *runner) read(b wire.Batch) {
	from := r.socket
	for i, v := range b.Frames {
		r.moreFrames = i+1 < len(b.Frames) || b.Err != nil
		r.frame(v)
		if r.socket != from {
			return // the other frames are of a socket that the lock has given up
		}
	}
	if b.Err != nil {
		r.disconnect(b.Err)
	}
}

func (r *runner) frame(v wire.Value) {
	link := &r.machine.(*Machine).link
	in, err := r.route.input(channels{r.cfg.Channel, link.waiters, link.wake}, v)
	switch {
	case err != nil:
		r.disconnect(err)
	case in != nil:
		r.feed(in)
	}
}

// rotate takes new credentials. A provider may repeat the old ones first.
func (r *runner) rotate(login wire.Login) {
	if login != r.socket.Login {
		r.socket.Login = login
		r.feed(Rotated{})
	}
}

func (r *runner) disconnect(err error) {
	r.drop()
	if _, ok := errors.AsType[*Fault](err); !ok {
		err = &Fault{Kind: Transient, Message: "connection lost", Err: err}
	}
	r.feed(Disconnected{Err: err})
}

func (r *runner) drop() {
	if r.socket != nil {
		r.socket.Close()
	}
	r.detach()
}

// detach forgets the socket and everything about it, without closing it.
func (r *runner) detach() {
	if r.socket == nil {
		return
	}
	if r.moved != nil {
		r.presence().Unwatch(r.moved)
		r.moved = nil
	}
	r.socket, r.moreFrames, r.buf, r.route, r.lockName = nil, false, r.buf[:0], router{}, ""
}

// dialDone takes the outcome of the dial under way.
func (r *runner) dialDone(d dialResult) {
	r.abandonDial()
	r.startedAt = time.Time{} // a new goroutine costs nothing beside a dial
	if d.err != nil {
		r.feed(DialFailed{Dial: d.dial, Err: d.err})
		return
	}
	r.attach(d.dial, d.socket)
}

func (r *runner) attach(dial int, s *wire.Socket) {
	r.socket = s
	r.moved = r.presence().Watch(s.RemoteAddr())
	r.feed(Dialed{Dial: dial, ID: s.ID, Fresh: s.Fresh()})
}

// feed gives the machine an input, performs its effects, and then gives it the
// inputs that came of these. A call from within an effect only queues its input:
// the machine must have returned, and the effects before it be performed.
func (r *runner) feed(in Input) {
	r.pendingInputs = append(r.pendingInputs, in)
	if r.feeding {
		return
	}
	r.feeding = true
	for i := 0; i < len(r.pendingInputs); i++ {
		for _, e := range r.machine.Step(r.now, r.pendingInputs[i]) {
			r.perform(e)
		}
	}
	r.pendingInputs, r.feeding = r.pendingInputs[:0], false
}

func (r *runner) perform(e Effect) {
	switch e := e.(type) {
	case *Send:
		for _, c := range e.Commands {
			r.buf = r.encode(r.buf, c)
			r.route.sent(c)
		}
	case Dial:
		r.startDial(e)
	case CancelDial:
		r.abandonDial()
	case Drop:
		r.drop()
	case Park:
		r.park(e.Last)
	case Stop:
		r.ended = true
	case Run:
		r.startRun(e)
	case Hear:
		r.listen(e.On)
	default:
		r.performForCallers(e)
	}
}

func (r *runner) performForCallers(e Effect) {
	if in := r.env.Perform(e); in != nil {
		r.feed(in)
	}
}

// park gives the socket back to the connection pool. If frames are left that no
// command asked for, or its end is known, it is closed.
func (r *runner) park(last bool) {
	if r.moreFrames {
		r.drop()
		return
	}
	s := r.socket
	r.detach()
	r.presence().Park(s, last)
}

// startDial takes an idle socket, or dials on a goroutine of its own: some
// diallers ignore their context, and the loop must not block.
func (r *runner) startDial(d Dial) {
	if d.Fresh {
		r.presence().DiscardIdle()
	} else if s := r.takeIdle(); s != nil {
		r.attach(d.Dial, s)
		return
	}
	r.abandonDial()
	ctx, cancel := context.WithCancel(context.Background())
	n, env, dialed := d.Dial, r.presence(), make(chan dialResult)
	r.dialed, r.cancelDial = dialed, cancel
	go func() {
		s, err := env.Dial(ctx)
		select {
		case dialed <- dialResult{n, s, err}:
		case <-ctx.Done(): // the dial was given up
			if s != nil {
				s.Close()
			}
		}
	}()
}

func (r *runner) takeIdle() *wire.Socket {
	if s := r.idle; s != nil {
		r.idle = nil
		return s
	}
	return r.presence().Idle()
}

// returnIdle returns the socket that the lock began with, if it ended before it
// needed one.
func (r *runner) returnIdle() {
	if r.idle != nil {
		r.presence().Park(r.idle, false)
	}
}

func (r *runner) abandonDial() {
	if r.cancelDial != nil {
		r.cancelDial()
	}
	r.dialed, r.cancelDial = nil, nil
}

// flush writes the commands of this turn. It goes on as long as a failed write
// makes the machine write again.
func (r *runner) flush() {
	for r.socket != nil && len(r.buf) > 0 {
		err := r.socket.Write(r.buf)
		r.buf = r.buf[:0]
		if err != nil {
			r.disconnect(err)
		}
	}
}

// rearm sets the timer to the machine's deadline. A timer that is set to an
// earlier time is left alone. Most deadlines are limits that never come, and a
// Tick with nothing due is cheaper than setting the timer in every turn.
func (r *runner) rearm() {
	at := r.machine.Deadline()
	if r.ended || at.IsZero() || !r.armed.IsZero() && !at.Before(r.armed) {
		return
	}
	r.armed = at
	if r.timer == nil {
		r.timer = time.AfterFunc(time.Until(at), r.sendTimeUp)
		return
	}
	r.timer.Reset(time.Until(at))
}

package actor

import (
	"context"
	"errors"
	"time"

	"github.com/tetherlock/tether/wire"
)

// Host is what a lock's goroutine asks of its surroundings. All methods but
// Dial and Run are called on that goroutine and must not block.
type Environment interface {
	// Perform performs an effect that is for callers. What comes of it is
	// returned, or nil.
	Perform(e Effect) Input
	// Handle takes a message that is no input of the machine, and the state
	// that the lock is in. What the machine is to know of it is fed.
	Handle(m any, s State, feed func(Input))
	// Ended is called last.
	Ended()
}

// Sockets is where a presence lock has its socket from.
type PresenceEnvironment interface {
	Environment
	// Idle returns a clean idle socket, or nil. Discard closes all that there
	// are.
	Idle() *wire.Socket
	DiscardIdle()
	// Dial returns a new socket. It is called beside the loop and may block
	// until the context ends, or longer.
	Dial(ctx context.Context) (*wire.Socket, error)
	// Park takes a clean socket back, the last one when the lock is about to
	// end.
	Park(s *wire.Socket, last bool)
	// Watch reports on moved, without blocking, when new connections reach
	// another master than the socket at addr. Unwatch ends that.
	Watch(addr string, moved chan<- error)
	Unwatch(moved chan<- error)
}

// Keys is where a lease has its key.
type LeaseEnvironment interface {
	Environment
	// Run runs a command. It is called beside the loop and may block until
	// the context ends, or longer.
	Run(ctx context.Context, command Run) (LeaseReply, error)
	// Hear reports releases on nudged, without blocking, until the returned
	// function is called.
	Listen(nudged chan<- struct{}) (stop func())
}

// Loop is the goroutine of one lock, seen from outside. Send may be called before
// Start, and waits for it.
type Loop struct {
	inbox  chan any
	done   chan struct{}
	runner *runner // nil from Start on
}

// NewLoop returns the goroutine of a presence lock, yet to be started.
func NewLoop(cfg Config, host PresenceEnvironment) *Loop {
	l := newLoop(host, NewMachine(cfg))
	r := l.runner
	r.cfg, r.presence, r.moved = cfg, host, make(chan error, 1)
	return l
}

// NewLeaseLoop returns the goroutine of a lease, yet to be started.
func NewLeaseLoop(cfg LeaseConfig, host LeaseEnvironment) *Loop {
	l := newLoop(host, NewLease(cfg))
	r := l.runner
	r.lease, r.outcomes, r.released = host, make(chan Ran), make(chan struct{}, 1)
	return l
}

// Start starts the goroutine. It takes a message first, unless that is nil.
func (l *Loop) Start(first any) {
	r := l.runner
	l.runner = nil
	go r.run(first)
}

func newLoop(host Environment, m machine) *Loop {
	l := &Loop{inbox: make(chan any), done: make(chan struct{})}
	l.runner = &runner{
		inbox: l.inbox, done: l.done, env: host, machine: m, timer: stopped(),
	}
	l.runner.feeder = l.runner.feed
	return l
}

// stopped returns a timer that is not running.
func stopped() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// Send hands a message to the lock: an [Input], or something for the host's
// Handle. It waits until the lock has taken it, which is never long, and
// returns false when the lock has ended. What was taken will be answered.
func (l *Loop) Send(m any) bool {
	select {
	case l.inbox <- m:
		return true
	case <-l.done:
		return false
	}
}

// Done is closed when the lock has ended.
func (l *Loop) Done() <-chan struct{} { return l.done }

type dialResult struct {
	dial   int
	socket *wire.Socket
	err    error
}

// machine is what a goroutine feeds: a [Machine] or a [Lease].
type machine interface {
	Step(now time.Time, in Input) []Effect
	Deadline() time.Time
	State() State
}

// runner is what the goroutine owns.
type runner struct {
	inbox   <-chan any
	done    chan struct{}
	env     Environment
	machine machine

	// Of a presence lock.
	cfg      Config
	presence PresenceEnvironment
	socket   *wire.Socket
	route    router
	channels channels
	// lockName is the name that the socket bears on the channel, once it was
	// needed.
	lockName string
	buf      []byte

	dialed     chan dialResult // nil if none is awaited
	cancelDial context.CancelFunc
	moved      chan error

	// Of a lease.
	lease         LeaseEnvironment
	outcomes      chan Ran
	released      chan struct{}
	stopListening func() // ends the listening for releases, nil if there is none

	timer         *time.Timer
	armed         time.Time
	now           time.Time
	pendingInputs []Input // results of effects
	moreFrames    bool    // the socket has delivered what has not been looked at yet
	feeding       bool
	feeder        func(Input) // feed
	ended         bool
}

func (r *runner) run(first any) {
	defer close(r.done)
	defer r.env.Ended()
	defer r.timer.Stop()
	defer r.listen(false)
	defer r.abandonDial()
	if first != nil {
		r.takeMessage(first)
	}
	for r.endTurn(); !r.ended; r.endTurn() {
		r.wait()
	}
}

// settle is the end of a turn.
func (r *runner) endTurn() {
	r.flush()
	r.rearm()
}

// wait takes one message.
func (r *runner) wait() {
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
	case o := <-r.outcomes:
		r.tick()
		r.feed(o)
	case <-r.released:
		r.tick()
		r.feed(KeyReleased{})
	case <-r.timer.C:
		r.tick()
		r.armed = time.Time{}
		r.feed(Tick{})
	}
}

// take takes a message of Send.
func (r *runner) takeMessage(m any) {
	r.tick()
	if in, ok := m.(Input); ok {
		r.feed(in)
		return
	}
	r.env.Handle(m, r.machine.State(), r.feeder)
}

// jump is how far the two clocks may run apart between two turns. Below it is
// what setting a clock by the network does.
const maxClockDrift = 100 * time.Millisecond

// tick reads the clock. Timers run by one that stands still while the machine
// is suspended; the other one tells.
func (r *runner) tick() {
	before := r.now
	r.now = time.Now()
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

// read takes the frames that came together. What they cause goes out in one
// write.
func (r *runner) read(b wire.Batch) {
	from := r.socket
	for i, v := range b.Frames {
		r.moreFrames = i+1 < len(b.Frames) || b.Err != nil
		r.frame(v)
		if r.socket != from {
			return // what follows is of a socket that is not the lock's any more
		}
	}
	if b.Err != nil {
		r.disconnect(b.Err)
	}
}

// frame takes one frame.
func (r *runner) frame(v wire.Value) {
	in, err := r.route.input(r.channels, v)
	switch {
	case err != nil:
		r.disconnect(err)
	case in != nil:
		r.feed(in)
	}
}

// rotate takes new credentials. A provider may begin by repeating the old.
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

// detach lets go of the socket, and of everything that is about it.
func (r *runner) detach() {
	if r.socket == nil {
		return
	}
	r.presence.Unwatch(r.moved)
	select {
	case <-r.moved:
	default:
	}
	r.socket, r.moreFrames, r.buf, r.route, r.lockName = nil, false, r.buf[:0], router{}, ""
}

// arrived takes the outcome of the dial that is awaited.
func (r *runner) dialDone(d dialResult) {
	r.abandonDial()
	if d.err != nil {
		r.feed(DialFailed{Dial: d.dial, Err: d.err})
		return
	}
	r.attach(d.dial, d.socket)
}

func (r *runner) attach(dial int, s *wire.Socket) {
	r.socket = s
	r.channels = channels{r.cfg.Channel, r.cfg.Waiters, r.cfg.WakeChannel(s.ID)}
	r.presence.Watch(s.RemoteAddr(), r.moved)
	r.feed(Dialed{Dial: dial, ID: s.ID, Fresh: s.Fresh()})
}

// feed gives the machine an input, and what comes of its effects, in order.
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

// tell performs an effect for callers.
func (r *runner) performForCallers(e Effect) {
	if in := r.env.Perform(e); in != nil {
		r.feed(in)
	}
}

// park hands the socket back, unless more has come on it than anybody waits
// for.
func (r *runner) park(last bool) {
	if r.moreFrames {
		r.drop()
		return
	}
	s := r.socket
	r.detach()
	r.presence.Park(s, last)
}

// startDial takes an idle socket or dials beside the loop: some diallers
// ignore their context.
func (r *runner) startDial(d Dial) {
	if d.Fresh {
		r.presence.DiscardIdle()
	} else if s := r.presence.Idle(); s != nil {
		r.attach(d.Dial, s)
		return
	}
	r.abandonDial()
	ctx, cancel := context.WithCancel(context.Background())
	n, host, dialed := d.Dial, r.presence, make(chan dialResult)
	r.dialed, r.cancelDial = dialed, cancel
	go func() {
		s, err := host.Dial(ctx)
		select {
		case dialed <- dialResult{n, s, err}:
		case <-ctx.Done(): // it comes too late
			if s != nil {
				s.Close()
			}
		}
	}()
}

func (r *runner) abandonDial() {
	if r.cancelDial != nil {
		r.cancelDial()
	}
	r.dialed, r.cancelDial = nil, nil
}

// flush writes what the turn has gathered.
func (r *runner) flush() {
	for r.socket != nil && len(r.buf) > 0 {
		err := r.socket.Write(r.buf)
		r.buf = r.buf[:0]
		if err != nil {
			r.disconnect(err)
		}
	}
}

// rearm sets the timer. One that is too early is left alone: a tick that finds
// nothing due is cheaper than a timer set anew at every turn, for deadlines
// that hardly ever come.
func (r *runner) rearm() {
	at := r.machine.Deadline()
	if r.ended || at.IsZero() || !r.armed.IsZero() && !at.Before(r.armed) {
		return
	}
	r.armed = at
	r.timer.Reset(time.Until(at))
}

package actor

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRandomLeases lets several leases of one key meet on a model of Redis:
// commands and replies that are late or lost, or arrive when nobody waits for them
// any longer, keys that expire or are deleted, calls that are cancelled, processes
// that are frozen. While one believes in its lease, nobody else's value stands in
// the key, and none is left when all is done.
func TestRandomLeases(t *testing.T) {
	steps, grants, losses := number(t, "TETHER_STEPS", 200_000), 0, 0
	for seed := uint64(1); steps > 0; seed++ {
		w := newLeaseWorld(t, seed)
		w.run(5_000)
		steps -= 5_000
		grants += w.grants
		losses += w.losses
	}
	t.Log(grants, "grants,", losses, "losses")
	require.Greater(t, grants, 100)
	require.Greater(t, losses, 10)
}

// letter is a command on its way to the server, or its reply on the way back.
type letter struct {
	to    *leasePeer
	at    time.Time
	run   Run
	reply *Ran // nil for a command
	mute  bool // a command whose reply nobody gets
}

type leasePeer struct {
	l       *Lease
	held    int // the call that holds, 0 for none
	open    map[int]bool
	leaving map[int]bool
	wakes   bool
	until   time.Time // when it wakes up, zero while it runs
}

type leaseWorld struct {
	t      *testing.T
	seed   uint64
	rand   *rand.Rand
	now    time.Time
	peers  []*leasePeer
	post   []letter
	value  string
	expiry time.Time
	token  int64
	last   int64 // of the last grant
	ids    int
	calls  int
	grants int
	losses int
	log    []string
	// deletes lets somebody from outside delete the key, which its holder
	// cannot know before its next renewal.
	deletes bool
	// strange is when a command has arrived last that nobody reckoned with any
	// more. What is left of it expires.
	strange time.Time
}

const worldTTL = 2 * time.Second

func newLeaseWorld(t *testing.T, seed uint64) *leaseWorld {
	w := &leaseWorld{t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	w.deletes = seed%4 == 0
	for range 2 + w.rand.IntN(3) {
		w.peers = append(w.peers, &leasePeer{open: map[int]bool{}, leaving: map[int]bool{}, l: NewLease(LeaseConfig{
			ID: func() string { w.ids++; return fmt.Sprint("k", w.ids) }, Jitter: w.rand.Float64,
			TTL: worldTTL, Renew: worldTTL / 3, Poll: 100 * time.Millisecond,
		})})
	}
	return w
}

func (w *leaseWorld) note(format string, args ...any) {
	w.log = append(w.log, w.now.Format("05.000 ")+fmt.Sprintf(format, args...))
	w.log = w.log[max(0, len(w.log)-200):]
}

func (w *leaseWorld) fail(format string, args ...any) {
	for _, line := range w.log {
		w.t.Log(line)
	}
	w.t.Fatalf("seed %d: %s", w.seed, fmt.Sprintf(format, args...))
}

func (w *leaseWorld) run(steps int) {
	for range steps {
		w.step(true)
	}
	for range 20_000 {
		if !slices.ContainsFunc(w.peers, func(p *leasePeer) bool { return len(p.open) > 0 || p.held != 0 || len(p.leaving) > 0 }) {
			break
		}
		w.step(false)
		for _, p := range w.peers {
			w.release(p)
		}
	}
	for i, p := range w.peers {
		if len(p.open) > 0 || p.held != 0 || len(p.leaving) > 0 {
			w.fail("%d is never done", i)
		}
	}
}

// step lets the next thing happen that is due, or meddles.
func (w *leaseWorld) step(faults bool) {
	if faults && w.rand.IntN(3) == 0 {
		w.meddle(w.peers[w.rand.IntN(len(w.peers))])
	} else {
		w.advance()
	}
	w.judge()
}

// advance goes to the next message or deadline.
func (w *leaseWorld) advance() {
	at, do := time.Time{}, func() {}
	consider := func(t time.Time, f func()) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at, do = t, f
		}
	}
	for i, l := range w.post {
		consider(l.at, func() {
			w.post = slices.Delete(w.post, i, i+1)
			w.deliver(l)
		})
	}
	for _, p := range w.peers {
		switch {
		case !p.until.IsZero():
			consider(p.until, func() {
				p.until = time.Time{}
				w.feed(p, Tick{})
			})
		default:
			consider(p.l.Deadline(), func() { w.feed(p, Tick{}) })
		}
	}
	if at.After(w.now) {
		w.now = at
	}
	do()
}

func (w *leaseWorld) meddle(p *leasePeer) {
	switch w.rand.IntN(16) {
	case 0, 1, 2, 3:
		w.calls++
		p.open[w.calls] = true
		w.feed(p, Acquire{Call: w.calls, Try: w.rand.IntN(3) == 0})
	case 4, 5, 6:
		w.release(p)
	case 7, 8:
		for call := range p.open {
			w.feed(p, Cancel{Call: call, Cause: errors.New("ended")})
			break
		}
	case 9:
		for call := range p.leaving {
			w.feed(p, Abandon{Hold: call, Cause: errors.New("ended")})
			break
		}
	case 10:
		if w.deletes && w.rand.IntN(20) == 0 {
			w.note("DEL")
			w.value = ""
		}
	case 11:
		if w.rand.IntN(10) == 0 { // frozen: messages wait, and the deadline passes
			p.until = w.now.Add(time.Duration(w.rand.IntN(int(2 * worldTTL))))
		}
	}
}

func (w *leaseWorld) release(p *leasePeer) {
	if p.held != 0 && p.until.IsZero() {
		call := p.held
		p.leaving[call] = true
		w.feed(p, Release{Hold: call})
	}
}

// soon is how long a message takes, mostly.
func (w *leaseWorld) soon() time.Time {
	d := time.Duration(w.rand.IntN(int(5 * time.Millisecond)))
	if w.rand.IntN(50) == 0 {
		d = time.Duration(w.rand.IntN(int(worldTTL)))
	}
	return w.now.Add(d)
}

func (w *leaseWorld) deliver(l letter) {
	if l.reply != nil {
		if !l.to.until.IsZero() {
			l.at = l.to.until.Add(time.Millisecond)
			w.post = append(w.post, l)
			return
		}
		w.feed(l.to, *l.reply)
		return
	}
	r := Ran{Num: l.run.Num}
	switch {
	case l.mute:
		w.strange = later(w.strange, w.now)
		w.serve(l.run)
		return
	case w.rand.IntN(30) == 0:
		r.Err = errors.New("lost on the way there")
	case w.rand.IntN(60) == 0:
		r.Err = errors.New("given up, and it arrives later")
		w.post = append(w.post, letter{to: l.to, at: w.now.Add(time.Duration(w.rand.IntN(int(worldTTL)))), run: l.run, mute: true})
	case w.rand.IntN(300) == 0:
		l.at = w.now.Add(leaseReplyLimit + time.Duration(w.rand.IntN(int(worldTTL))))
		w.post, w.strange = append(w.post, l), later(w.strange, l.at)
		return
	case w.rand.IntN(300) == 0:
		w.note("no reply, ever, to %d", l.run.Num)
		w.strange = later(w.strange, w.now)
		w.serve(l.run)
		return
	default:
		r.Reply = w.serve(l.run)
		if w.rand.IntN(30) == 0 {
			r.Err = errors.New("lost on the way back")
		}
	}
	w.post = append(w.post, letter{to: l.to, at: w.soon(), reply: &r})
}

// serve is the server.
func (w *leaseWorld) serve(r Run) LeaseReply {
	if w.value != "" && !w.now.Before(w.expiry) {
		w.value = ""
	}
	w.note("server: %s %s, key is %q", leaseOps[r.Op], r.ID, w.value)
	own := w.value == r.ID
	switch r.Op {
	case TakeKey:
		if w.value != "" && !own {
			return LeaseReply{Holder: w.value, TTL: w.expiry.Sub(w.now)}
		}
		w.value, w.expiry = r.ID, w.now.Add(worldTTL)
		w.token++
		return LeaseReply{OK: true, Token: w.token}
	case RenewKey:
		if own {
			w.expiry = w.now.Add(worldTTL)
		}
	case DropKey:
		if own {
			w.value = ""
			for _, p := range w.peers {
				if p.wakes && p.until.IsZero() {
					w.feed(p, KeyReleased{})
				}
			}
		}
	case CheckKey:
	}
	return LeaseReply{OK: own}
}

func (w *leaseWorld) feed(p *leasePeer, in Input) {
	i := slices.Index(w.peers, p)
	w.note("%d: %T %v", i, in, in)
	at := p.l.Deadline()
	for _, e := range slices.Clone(p.l.Step(w.now, in)) {
		w.note("%d:     %v", i, describe(e))
		w.perform(p, e)
	}
	if _, tick := in.(Tick); tick && !at.IsZero() && !at.After(w.now) && p.l.Deadline().Equal(at) {
		w.fail("a tick leaves the deadline where it was")
	}
}

func (w *leaseWorld) perform(p *leasePeer, e Effect) {
	switch e := e.(type) {
	case Run:
		w.post = append(w.post, letter{to: p, at: w.soon(), run: e})
	case Hear:
		p.wakes = e.On
	case Grant:
		if p.held != 0 || !p.open[e.Call.(int)] {
			w.fail("a grant that nobody asked for")
		}
		if e.Token <= w.last && !w.deletes {
			w.fail("token %d behind %d", e.Token, w.last)
		}
		w.last = e.Token
		delete(p.open, e.Call.(int))
		p.held = e.Call.(int)
		w.grants++
	case Refuse:
		if !p.open[e.Call.(int)] {
			w.fail("it refuses what it has answered")
		}
		delete(p.open, e.Call.(int))
	case End:
		p.held = 0
		if e.Loss != nil {
			w.losses++
		}
	case Released:
		if !p.leaving[e.Hold.(int)] {
			w.fail("it answers a release twice")
		}
		delete(p.leaving, e.Hold.(int))
	}
}

// judge looks at those who run and believe in their lease: the key is theirs. When
// all is done, there is none.
func (w *leaseWorld) judge() {
	busy := func(p *leasePeer) bool { return p.l.phase != leaseResting }
	if len(w.post) == 0 && w.value != "" && w.now.Add(worldTTL/10).Before(w.expiry) && w.strange.Before(w.now.Add(-2*worldTTL)) &&
		!slices.ContainsFunc(w.peers, busy) {
		w.fail("%q is left", w.value)
	}
	for i, p := range w.peers {
		if w.deletes || p.l.State() != Held || !p.until.IsZero() || !w.now.Before(p.l.hold.validUntil) {
			continue
		}
		if w.value != p.l.hold.id || !w.now.Before(w.expiry) {
			w.fail("%d holds %s and the key is %q", i, p.l.hold.id, w.value)
		}
	}
}

func number(t *testing.T, variable string, otherwise int) int {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, variable)
	return n
}

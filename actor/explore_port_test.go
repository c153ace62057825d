package actor

import (
	"slices"
	"time"

	"github.com/tetherlock/tether/protocol"
	"github.com/tetherlock/tether/wire"
)

// generation is the version of a portalocker peer.
type generation int

const (
	v32 generation = iota // answers with a bare timestamp, and asks only whether anybody answers
	v41                   // promotes by the lowest pending id, does not confirm, resubscribes
	v42                   // advertises its election and confirms
)

// stage is the reply that a portalocker peer waits for.
type stage int

const (
	portIdle stage = iota
	portSubscribing
	portCounting
	portOpening // the response channel
	portPrechecking
	portPinging
	portCollecting
	portRecounting
	portFinishing
	portListing
	portKilling
	portPausing
	portDrawing
	portHolding
)

// port is a portalocker peer. It counts and pings on one connection, is
// subscribed on another, collects answers on a third and gives answers on a
// fourth, so there is no order between any two of them.
type port struct {
	body
	gen    generation
	shared bool
	fenced bool
	id     string // one for all sockets of its life

	sub, cmd, ans, resp *conn

	stage      stage
	mode       protocol.Mode
	elected    bool
	confirming bool
	expected   int
	kills      int
	response   string
	records    []protocol.Record
	legacy     int
	got        []int // who got its ping
	told       []int // who answered
	wake       time.Time
	limit      time.Time
	budget     time.Time

	held    bool
	exact   bool // it has judged the answers of exactly those who got its ping
	revived bool // it has resubscribed behind a kill, and keeps its hold
	torn    bool // it has resubscribed in the middle of an attempt
	since   int  // serial of the moment at which it took the hold
}

func (w *model) addPort(gen generation, shared, fenced bool, id string) *port {
	p := &port{body: body{w: w, num: len(w.locks)}, gen: gen, shared: shared, fenced: fenced, id: id}
	w.locks, w.ports = append(w.locks, nil), append(w.ports, p)
	return p
}

// alive says whether the server counts its hold.
func (p *port) alive() bool { return p.held && p.sub != nil && p.sub.on(theChannel) }

func (p *port) connName() string {
	if p.gen == v32 {
		return wire.LegacyConnName(theChannel)
	}
	return wire.ConnName(theChannel, p.id)
}

func (p *port) command(c Command) {
	if p.cmd == nil {
		p.cmd = p.w.dialTo(p.num, p.id, "")
	}
	p.w.write(p.cmd, c)
}

// acquire begins, unless it has begun already.
func (p *port) acquire() {
	if p.stage != portIdle {
		return
	}
	p.mode, p.elected, p.exact, p.revived, p.torn = protocol.Pending, false, false, false, false
	if p.shared {
		p.mode = protocol.Shared
	}
	p.attempt()
}

func (p *port) attempt() {
	p.confirming, p.torn = false, false
	if p.sub != nil {
		p.count()
		return
	}
	p.stage = portSubscribing
	p.subscribe()
}

func (p *port) subscribe() {
	p.sub = p.w.dialTo(p.num, p.id, p.connName())
	p.w.write(p.sub, Command{Op: Subscribe, Channel: theChannel})
}

func (p *port) count() {
	p.stage = portCounting
	p.command(Command{Op: Count})
}

// take reads a frame of one of the four connections.
func (p *port) take(c *conn, g got) {
	p.w.note("%d reads %s", p.num, p.w.text(g.frame))
	switch in := g.frame.(type) {
	case Disconnected:
		p.disconnected(c)
	case Pinged:
		p.answer(in.Ping.Response)
	case Answered:
		p.collect(in, g.from)
	case Subscribed:
		if c == p.sub && p.stage == portSubscribing {
			p.count()
		} else if c == p.resp && p.stage == portOpening {
			p.stage = portPrechecking
			p.command(Command{Op: Count})
		}
	default:
		if c == p.cmd {
			p.reply(in)
		}
	}
}

func (p *port) answer(response string) {
	if p.ans == nil {
		p.ans = p.w.dialTo(p.num, p.id, "")
	}
	answer := Command{Op: Answer, Channel: response, Record: new(p.record())}
	p.w.write(p.ans, answer)
	if p.w.chance(3) {
		p.w.write(p.ans, answer) // redis-py repeats a command whose reply got lost
	}
}

func (p *port) record() protocol.Record {
	if p.gen == v32 {
		return protocol.Record{Mode: protocol.Exclusive, Legacy: true}
	}
	r := protocol.Record{ID: p.id, Mode: p.mode}
	if p.gen == v42 {
		r.Election = protocol.NotElected
		if p.elected {
			r.Election = protocol.Elected
		}
	}
	return r
}

// disconnected is a killed subscription: 4.1 does not even notice.
func (p *port) disconnected(c *conn) {
	c.owner = nobody
	if c != p.sub {
		return
	}
	p.sub = nil
	if p.gen == v41 {
		p.subscribe()
		p.revived = p.revived || p.held
		p.torn = p.torn || !p.held
		return
	}
	p.abandon()
	if p.held {
		p.held, p.stage, p.wake = false, portIdle, time.Time{}
		return
	}
	p.mode, p.elected = p.fresh(), false
	p.pause(250 * time.Millisecond)
}

func (p *port) fresh() protocol.Mode {
	if p.shared {
		return protocol.Shared
	}
	return protocol.Pending
}

// abandon drops what it waits for.
func (p *port) abandon() {
	p.closeProbe()
	if p.cmd != nil {
		p.w.hangUp(p.cmd, false)
		p.cmd = nil
	}
}

func (p *port) closeProbe() {
	if p.resp != nil {
		p.w.hangUp(p.resp, false)
		p.resp = nil
	}
}

// reply takes the reply to the command that it waits for.
func (p *port) reply(in Input) {
	n := 0
	switch in := in.(type) {
	case Counted:
		n = in.N
	case Listed:
		p.reap(in.Connections)
		return
	case Failed:
		p.abandon()
		p.giveUp()
		return
	}
	switch p.stage {
	case portCounting:
		p.counted(n)
	case portPrechecking:
		if n != p.expected {
			p.inconclusive()
			return
		}
		p.stage = portPinging
		p.command(Command{Op: SelfPing, Ping: &protocol.Ping{Response: p.response}})
	case portPinging:
		p.stage = portCollecting
		p.limit = p.now().Add(time.Second)
		p.wake = p.now().Add(p.scatter(100 * time.Millisecond))
		p.collected()
	case portRecounting:
		p.recounted(n)
	case portFinishing:
		p.finished(n)
	case portKilling:
		if p.kills--; p.kills <= 0 {
			p.inconclusive()
		}
	case portDrawing:
		p.hold()
	default:
	}
}

func (p *port) scatter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.5 + p.w.jitter()))
}

func (p *port) counted(n int) {
	switch {
	case p.confirming && n <= 1:
		p.exact = true
		p.confirmed()
	case !p.confirming && n == 1:
		p.exact = true
		p.promote()
	default:
		p.expected = n
		p.probe()
	}
}

// probe opens a response channel, counts again, and only then pings.
func (p *port) probe() {
	p.response, p.records, p.legacy, p.got, p.told = p.w.name("P."), nil, 0, nil, nil
	p.resp = p.w.dialTo(p.num, p.id, "")
	p.w.write(p.resp, Command{Op: Subscribe, Channel: p.response})
	p.stage = portOpening
}

// asked is called when the server delivers a ping of this peer.
func (p *port) asked(to []*conn) {
	p.got = nil
	for _, c := range to {
		p.got = append(p.got, c.owner)
	}
}

func (p *port) collect(in Answered, from int) {
	if in.Response != p.response {
		return
	}
	p.told = append(p.told, from)
	r := in.Record
	if r.Legacy {
		p.legacy++
		r.ID = "legacy"
	}
	if i := slices.IndexFunc(p.records, func(o protocol.Record) bool { return o.ID == r.ID && !r.Legacy }); i >= 0 {
		p.records[i] = r
	} else {
		p.records = append(slices.Clone(p.records), r)
	}
	p.collected()
}

// collected looks whether enough answers are in.
func (p *port) collected() {
	if p.stage != portCollecting {
		return
	}
	if p.gen == v32 && len(p.records) > 0 {
		p.closeProbe()
		p.giveUp()
		return
	}
	if len(p.records) >= p.expected {
		p.finish()
	}
}

func (p *port) finish() {
	p.stage, p.wake = portFinishing, time.Time{}
	p.command(Command{Op: Count})
}

func (p *port) recounted(n int) {
	switch {
	case n != p.expected:
		p.inconclusive()
	case !p.now().Before(p.limit):
		p.finish()
	default:
		p.stage = portCollecting
		p.wake = p.now().Add(p.scatter(100 * time.Millisecond))
		p.collected()
	}
}

func (p *port) finished(n int) {
	switch {
	case n != p.expected:
		p.inconclusive()
	case len(p.records) < p.expected:
		p.stage = portListing
		p.command(Command{Op: List, Text: true})
	default:
		p.decide()
	}
}

// reap kills whoever bears a name of the channel and has not answered.
func (p *port) reap(list []Connection) {
	p.kills = 0
	for _, c := range list {
		answered := slices.ContainsFunc(p.records, func(r protocol.Record) bool { return !r.Legacy && r.ID == c.ID })
		if c.Legacy && p.legacy == 0 || c.ID != "" && !answered {
			p.command(Command{Op: Kill, Num: c.Num})
			p.kills++
		}
	}
	p.stage = portKilling
	if p.kills == 0 {
		p.inconclusive()
	}
}

func (p *port) inconclusive() {
	p.closeProbe()
	switch {
	case !p.confirming:
		if p.elected {
			p.pause(250 * time.Millisecond)
			return
		}
		p.giveUp()
	case p.now().Before(p.budget):
		p.pause(100 * time.Millisecond)
	default:
		p.demote()
	}
}

// decide judges a conclusive probe.
func (p *port) decide() {
	p.closeProbe()
	p.exact = !slices.ContainsFunc(p.got, func(n int) bool { return !slices.Contains(p.told, n) })
	others := slices.DeleteFunc(slices.Clone(p.records), func(r protocol.Record) bool { return !r.Legacy && r.ID == p.id })
	has := func(f func(r protocol.Record) bool) bool { return slices.ContainsFunc(others, f) }
	reader := has(func(r protocol.Record) bool { return r.Mode == protocol.Shared })
	switch {
	case p.confirming:
		p.judge(others)
	case p.shared:
		if has(func(r protocol.Record) bool { return r.Mode != protocol.Shared }) {
			p.giveUp()
			return
		}
		p.hold()
	case p.outranked(others), !p.elected && len(others) == len(p.records):
		p.giveUp() // behind somebody, or without an answer of its own
	case reader:
		p.elected = true
		p.pause(250 * time.Millisecond)
	case p.elected && p.gen == v42 && has(func(r protocol.Record) bool {
		return r.Mode == protocol.Pending && r.Election == protocol.NotElected && r.ID < p.id
	}):
		p.pause(250 * time.Millisecond)
	default:
		p.promote()
	}
}

// outranked says whether somebody else goes first.
func (p *port) outranked(others []protocol.Record) bool {
	return slices.ContainsFunc(others, func(r protocol.Record) bool {
		lower := r.Mode == protocol.Pending && r.ID < p.id
		switch {
		case r.Mode == protocol.Exclusive:
			return true
		case p.gen == v41:
			return lower
		case p.elected:
			return r.ID < p.id && r.Election == protocol.Elected || lower && r.Election == protocol.Unstated
		default:
			return r.Election == protocol.Elected || lower
		}
	})
}

func (p *port) promote() {
	if p.shared {
		p.hold()
		return
	}
	p.mode, p.elected = protocol.Exclusive, true
	if p.gen != v42 {
		p.hold()
		return
	}
	p.confirming, p.budget = true, p.now().Add(time.Second)
	p.count()
}

// judge is the verdict of a confirm.
func (p *port) judge(others []protocol.Record) {
	again := false
	for _, r := range others {
		lower := r.ID < p.id
		switch {
		case r.Mode == protocol.Shared,
			r.Mode == protocol.Exclusive && (r.Legacy || r.Election == protocol.Unstated || lower),
			r.Mode == protocol.Pending && lower && r.Election == protocol.Unstated:
			p.demote()
			return
		case r.Mode == protocol.Pending && lower:
			again = true
		}
	}
	switch {
	case !again:
		p.confirmed()
	case p.now().Before(p.budget):
		p.pause(100 * time.Millisecond)
	default:
		p.demote()
	}
}

func (p *port) confirmed() {
	if p.fenced {
		p.stage = portDrawing
		p.command(Command{Op: increment})
		return
	}
	p.hold()
}

func (p *port) demote() {
	p.mode, p.confirming = protocol.Pending, false
	p.giveUp()
}

func (p *port) hold() {
	p.stage, p.held, p.wake, p.confirming, p.since = portHolding, true, time.Time{}, false, p.w.serial
	p.exact = p.exact && !p.torn
	p.w.note("%d, a portalocker, holds; exact: %v", p.num, p.exact)
}

// giveUp leaves the channel and comes back later.
func (p *port) giveUp() {
	p.elected, p.mode = false, p.fresh()
	p.unsubscribe()
	p.pause(250 * time.Millisecond)
}

func (p *port) unsubscribe() {
	if p.sub == nil {
		return
	}
	for _, g := range p.sub.out {
		if in, ok := g.frame.(Pinged); ok && p.w.chance(2) {
			p.answer(in.Ping.Response)
		}
	}
	p.w.hangUp(p.sub, false)
	p.sub = nil
}

func (p *port) pause(d time.Duration) {
	p.stage, p.wake = portPausing, p.now().Add(p.scatter(d))
}

func (p *port) tick() {
	if p.wake.IsZero() || p.wake.After(p.now()) {
		return
	}
	p.wake = time.Time{}
	switch p.stage {
	case portCollecting:
		if p.gen == v32 && !p.now().Before(p.limit) {
			p.closeProbe()
			p.giveUp()
			return
		}
		p.stage = portRecounting
		p.command(Command{Op: Count})
	case portPausing:
		if p.confirming {
			p.count()
			return
		}
		p.attempt()
	default:
	}
}

// release gives the hold back, or what has come of an acquire so far.
func (p *port) release() {
	p.abandon()
	p.held, p.elected, p.stage, p.wake, p.confirming = false, false, portIdle, time.Time{}, false
	p.unsubscribe()
	if p.ans != nil && len(p.ans.in) == 0 {
		p.w.hangUp(p.ans, false)
		p.ans = nil
	}
}

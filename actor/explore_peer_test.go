package actor

import (
	"slices"
	"time"

	"github.com/tetherlock/tether/protocol"
	"github.com/tetherlock/tether/wire"
)

// peerVersion is the version of portalocker that a peer runs.
type peerVersion int

const (
	v32 peerVersion = iota // answers with a bare timestamp; any answer to its ping means held
	v41                    // the lowest pending id promotes, without a confirm; resubscribes after a kill
	v42                    // advertises that it is elected, and confirms
)

// peerStage is what a peer waits for.
type peerStage int

const (
	peerIdle peerStage = iota
	peerSubscribing
	peerCounting
	peerOpening // the response channel
	peerPrechecking
	peerPinging
	peerCollecting
	peerRecounting
	peerFinalCounting
	peerListing
	peerKilling
	peerPausing
	peerDrawing
	peerHolding
)

// peer is a process that runs portalocker. It has four connections: it subscribes
// on one, counts and pings on another, answers on the third and collects answers
// on the fourth. So there is no order between any two of these.
type peer struct {
	process
	version peerVersion
	shared  bool
	fenced  bool
	id      string // the same for all its connections

	subConn, cmdConn, answerConn, responseConn *conn

	stage        peerStage
	mode         protocol.Mode
	elected      bool
	confirming   bool
	expected     int
	pendingKills int
	response     string
	records      []protocol.Record
	legacy       int
	receivers    []int // processes that have received its ping
	answered     []int // processes that have answered it
	timer        time.Time
	answersDue   time.Time
	confirmLimit time.Time

	held                   bool
	conclusive             bool // all receivers of the deciding ping have answered, or it was alone
	resubscribed           bool // after a kill during its hold, which goes on
	resubscribedMidAttempt bool // after a kill during its attempt
	heldSince              int  // the server's serial when the hold began
}

func (m *model) addPeer(version peerVersion, shared, fenced bool, id string) *peer {
	p := &peer{process: process{model: m, num: len(m.locks)}, version: version, shared: shared, fenced: fenced, id: id}
	m.locks, m.peers = append(m.locks, nil), append(m.peers, p)
	return p
}

// holdsOnServer reports whether the peer holds and the server counts its
// subscription.
func (p *peer) holdsOnServer() bool {
	return p.held && p.subConn != nil && p.subConn.subscribedTo(lockChannel)
}

func (p *peer) connName() string {
	if p.version == v32 {
		return wire.LegacyConnName(lockChannel)
	}
	return wire.ConnName(lockChannel, p.id)
}

func (p *peer) command(c Command) {
	if p.cmdConn == nil {
		p.cmdConn = p.model.openConn(p.num, p.id, "")
	}
	p.model.send(p.cmdConn, c)
}

// acquire begins an acquire. It does nothing if one is under way.
func (p *peer) acquire() {
	if p.stage != peerIdle {
		return
	}
	p.mode, p.elected, p.conclusive, p.resubscribed, p.resubscribedMidAttempt = protocol.Pending, false, false, false, false
	if p.shared {
		p.mode = protocol.Shared
	}
	p.attempt()
}

func (p *peer) attempt() {
	p.confirming, p.resubscribedMidAttempt = false, false
	if p.subConn != nil {
		p.count()
		return
	}
	p.stage = peerSubscribing
	p.subscribe()
}

func (p *peer) subscribe() {
	p.subConn = p.model.openConn(p.num, p.id, p.connName())
	p.model.send(p.subConn, Command{Op: Subscribe, Channel: lockChannel})
}

func (p *peer) count() {
	p.stage = peerCounting
	p.command(Command{Op: Count})
}

// read lets the peer read a frame of one of its connections.
func (p *peer) read(c *conn, g delivery) {
	p.model.logf("%d reads %s", p.num, p.model.format(g.frame))
	switch in := g.frame.(type) {
	case Disconnected:
		p.disconnected(c)
	case Pinged:
		p.answer(in.Ping.Response)
	case Answered:
		p.collect(in, g.from)
	case Subscribed:
		if c == p.subConn && p.stage == peerSubscribing {
			p.count()
		} else if c == p.responseConn && p.stage == peerOpening {
			p.stage = peerPrechecking
			p.command(Command{Op: Count})
		}
	default:
		if c == p.cmdConn {
			p.reply(in)
		}
	}
}

func (p *peer) answer(response string) {
	if p.answerConn == nil {
		p.answerConn = p.model.openConn(p.num, p.id, "")
	}
	answer := Command{Op: Answer, Channel: response, Record: new(p.record())}
	p.model.send(p.answerConn, answer)
	if p.model.chance(3) {
		p.model.send(p.answerConn, answer) // redis-py repeats a command whose reply got lost
	}
}

func (p *peer) record() protocol.Record {
	if p.version == v32 {
		return protocol.Record{Mode: protocol.Exclusive, Legacy: true}
	}
	r := protocol.Record{ID: p.id, Mode: p.mode}
	if p.version == v42 {
		r.Election = protocol.NotElected
		if p.elected {
			r.Election = protocol.Elected
		}
	}
	return r
}

// disconnected takes the end of a connection. When the subscription is killed, 4.1
// resubscribes and goes on as if nothing had happened.
func (p *peer) disconnected(c *conn) {
	c.owner = nobody
	if c != p.subConn {
		return
	}
	p.subConn = nil
	if p.version == v41 {
		p.subscribe()
		p.resubscribed = p.resubscribed || p.held
		p.resubscribedMidAttempt = p.resubscribedMidAttempt || !p.held
		return
	}
	p.abortAttempt()
	if p.held {
		p.held, p.stage, p.timer = false, peerIdle, time.Time{}
		return
	}
	p.mode, p.elected = p.initialMode(), false
	p.pause(250 * time.Millisecond)
}

// initialMode is the mode of its record before it promotes.
func (p *peer) initialMode() protocol.Mode {
	if p.shared {
		return protocol.Shared
	}
	return protocol.Pending
}

// abortAttempt closes the connections whose replies it waits for.
func (p *peer) abortAttempt() {
	p.closeProbe()
	if p.cmdConn != nil {
		p.model.closeConn(p.cmdConn, false)
		p.cmdConn = nil
	}
}

func (p *peer) closeProbe() {
	if p.responseConn != nil {
		p.model.closeConn(p.responseConn, false)
		p.responseConn = nil
	}
}

// reply takes a reply on its command connection.
func (p *peer) reply(in Input) {
	n := 0
	switch in := in.(type) {
	case Counted:
		n = in.N
	case Listed:
		p.reap(in.Connections)
		return
	case Failed:
		p.abortAttempt()
		p.giveUp()
		return
	}
	switch p.stage {
	case peerCounting:
		p.counted(n)
	case peerPrechecking:
		if n != p.expected {
			p.inconclusive()
			return
		}
		p.stage = peerPinging
		p.command(Command{Op: SelfPing, Ping: &protocol.Ping{Response: p.response}})
	case peerPinging:
		p.stage = peerCollecting
		p.answersDue = p.now().Add(time.Second)
		p.timer = p.now().Add(p.jittered(100 * time.Millisecond))
		p.checkAnswers()
	case peerRecounting:
		p.recounted(n)
	case peerFinalCounting:
		p.finalCounted(n)
	case peerKilling:
		if p.pendingKills--; p.pendingKills <= 0 {
			p.inconclusive()
		}
	case peerDrawing:
		p.hold()
	default:
	}
}

func (p *peer) jittered(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.5 + p.model.jitter()))
}

func (p *peer) counted(n int) {
	switch {
	case p.confirming && n <= 1:
		p.conclusive = true
		p.confirmed()
	case !p.confirming && n == 1:
		p.conclusive = true
		p.promote()
	default:
		p.expected = n
		p.probe()
	}
}

// probe subscribes a response channel. The next steps are a second count and the
// ping.
func (p *peer) probe() {
	p.response, p.records, p.legacy, p.receivers, p.answered = p.model.uniqueName("P."), nil, 0, nil, nil
	p.responseConn = p.model.openConn(p.num, p.id, "")
	p.model.send(p.responseConn, Command{Op: Subscribe, Channel: p.response})
	p.stage = peerOpening
}

// pingDelivered notes the receivers of this peer's ping.
func (p *peer) pingDelivered(to []*conn) {
	p.receivers = nil
	for _, c := range to {
		p.receivers = append(p.receivers, c.owner)
	}
}

// collect takes an answer to its ping.
func (p *peer) collect(in Answered, from int) {
	if in.Response != p.response {
		return
	}
	p.answered = append(p.answered, from)
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
	p.checkAnswers()
}

// checkAnswers ends the collection when enough answers are in.
func (p *peer) checkAnswers() {
	if p.stage != peerCollecting {
		return
	}
	if p.version == v32 && len(p.records) > 0 {
		p.closeProbe()
		p.giveUp()
		return
	}
	if len(p.records) >= p.expected {
		p.finalCount()
	}
}

// finalCount counts once more after the answers: if somebody has come or left,
// they prove nothing.
func (p *peer) finalCount() {
	p.stage, p.timer = peerFinalCounting, time.Time{}
	p.command(Command{Op: Count})
}

func (p *peer) recounted(n int) {
	switch {
	case n != p.expected:
		p.inconclusive()
	case !p.now().Before(p.answersDue):
		p.finalCount()
	default:
		p.stage = peerCollecting
		p.timer = p.now().Add(p.jittered(100 * time.Millisecond))
		p.checkAnswers()
	}
}

func (p *peer) finalCounted(n int) {
	switch {
	case n != p.expected:
		p.inconclusive()
	case len(p.records) < p.expected:
		p.stage = peerListing
		p.command(Command{Op: List, Text: true})
	default:
		p.decide()
	}
}

// reap kills the connections of the channel's participants that have not answered.
func (p *peer) reap(list []Connection) {
	p.pendingKills = 0
	for _, c := range list {
		answered := slices.ContainsFunc(p.records, func(r protocol.Record) bool { return !r.Legacy && r.ID == c.ID })
		if c.Legacy && p.legacy == 0 || c.ID != "" && !answered {
			p.command(Command{Op: Kill, Num: c.Num})
			p.pendingKills++
		}
	}
	p.stage = peerKilling
	if p.pendingKills == 0 {
		p.inconclusive()
	}
}

func (p *peer) inconclusive() {
	p.closeProbe()
	switch {
	case !p.confirming:
		if p.elected {
			p.pause(250 * time.Millisecond)
			return
		}
		p.giveUp()
	case p.now().Before(p.confirmLimit):
		p.pause(100 * time.Millisecond)
	default:
		p.demote()
	}
}

// decide draws the conclusion of a probe whose answers are in.
func (p *peer) decide() {
	p.closeProbe()
	p.conclusive = !slices.ContainsFunc(p.receivers, func(n int) bool { return !slices.Contains(p.answered, n) })
	others := slices.DeleteFunc(slices.Clone(p.records), func(r protocol.Record) bool { return !r.Legacy && r.ID == p.id })
	has := func(f func(r protocol.Record) bool) bool { return slices.ContainsFunc(others, f) }
	reader := has(func(r protocol.Record) bool { return r.Mode == protocol.Shared })
	switch {
	case p.confirming:
		p.confirm(others)
	case p.shared:
		if has(func(r protocol.Record) bool { return r.Mode != protocol.Shared }) {
			p.giveUp()
			return
		}
		p.hold()
	case p.outranked(others), !p.elected && len(others) == len(p.records):
		p.giveUp() // somebody goes first, or its own answer has not come back
	case reader:
		p.elected = true
		p.pause(250 * time.Millisecond)
	case p.elected && p.version == v42 && has(func(r protocol.Record) bool {
		return r.Mode == protocol.Pending && r.Election == protocol.NotElected && r.ID < p.id
	}):
		p.pause(250 * time.Millisecond)
	default:
		p.promote()
	}
}

// outranked reports whether another participant holds, or goes first.
func (p *peer) outranked(others []protocol.Record) bool {
	return slices.ContainsFunc(others, func(r protocol.Record) bool {
		lower := r.Mode == protocol.Pending && r.ID < p.id
		switch {
		case r.Mode == protocol.Exclusive:
			return true
		case p.version == v41:
			return lower
		case p.elected:
			return r.ID < p.id && r.Election == protocol.Elected || lower && r.Election == protocol.Unstated
		default:
			return r.Election == protocol.Elected || lower
		}
	})
}

func (p *peer) promote() {
	if p.shared {
		p.hold()
		return
	}
	p.mode, p.elected = protocol.Exclusive, true
	if p.version != v42 {
		p.hold()
		return
	}
	p.confirming, p.confirmLimit = true, p.now().Add(time.Second)
	p.count()
}

// confirm draws the conclusion of a confirming probe.
func (p *peer) confirm(others []protocol.Record) {
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
	case p.now().Before(p.confirmLimit):
		p.pause(100 * time.Millisecond)
	default:
		p.demote()
	}
}

func (p *peer) confirmed() {
	if p.fenced {
		p.stage = peerDrawing
		p.command(Command{Op: incrementFence})
		return
	}
	p.hold()
}

func (p *peer) demote() {
	p.mode, p.confirming = protocol.Pending, false
	p.giveUp()
}

func (p *peer) hold() {
	p.stage, p.held, p.timer, p.confirming, p.heldSince = peerHolding, true, time.Time{}, false, p.model.serial
	p.conclusive = p.conclusive && !p.resubscribedMidAttempt
	p.model.logf("peer %d holds; conclusive: %v", p.num, p.conclusive)
}

// giveUp ends an attempt. It leaves the channel, and the next attempt follows
// after a pause.
func (p *peer) giveUp() {
	p.elected, p.mode = false, p.initialMode()
	p.unsubscribe()
	p.pause(250 * time.Millisecond)
}

// unsubscribe leaves the channel. Pings that it has received and not read may get
// an answer or not.
func (p *peer) unsubscribe() {
	if p.subConn == nil {
		return
	}
	for _, g := range p.subConn.deliveries {
		if in, ok := g.frame.(Pinged); ok && p.model.chance(2) {
			p.answer(in.Ping.Response)
		}
	}
	p.model.closeConn(p.subConn, false)
	p.subConn = nil
}

func (p *peer) pause(d time.Duration) {
	p.stage, p.timer = peerPausing, p.now().Add(p.jittered(d))
}

func (p *peer) tick() {
	if p.timer.IsZero() || p.timer.After(p.now()) {
		return
	}
	p.timer = time.Time{}
	switch p.stage {
	case peerCollecting:
		if p.version == v32 && !p.now().Before(p.answersDue) {
			p.closeProbe()
			p.giveUp()
			return
		}
		p.stage = peerRecounting
		p.command(Command{Op: Count})
	case peerPausing:
		if p.confirming {
			p.count()
			return
		}
		p.attempt()
	default:
	}
}

// release ends its hold, or the acquire that is under way.
func (p *peer) release() {
	p.abortAttempt()
	p.held, p.elected, p.stage, p.timer, p.confirming = false, false, peerIdle, time.Time{}, false
	p.unsubscribe()
	if p.answerConn != nil && len(p.answerConn.requests) == 0 {
		p.model.closeConn(p.answerConn, false)
		p.answerConn = nil
	}
}

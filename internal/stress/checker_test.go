package stress

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// checker finds violations in a history.
//
// A hold lasts from its begin entry to its end entry, to its loss (at the time
// that its own process was told), or to the SIGKILL of its process. A hold is
// stale while its holder may still rely on it although others may have the lock.
// There are four causes:
//
//   - The process was stopped, or did not run, for 9/10 of the unavailable
//     time-out or longer. The hold is stale from that long after the beginning:
//     no participant may be reaped sooner.
//   - The connection was ended. The hold is stale from just before.
//   - The server was killed. The same.
//   - The server answered nobody for 9/10 of the time that a health check may
//     take, or longer. The hold is stale from that long after the beginning.
//
// A hold stops being stale when its process has run for noticeTime after the end
// of the cause: by then the holder must have been told. Nothing else makes a hold
// stale: not a shorter stop, not a pause of writes however long, not FLUSHALL or
// SCRIPT FLUSH, and nothing that happens to other participants. A busy machine is
// no excuse by itself: each process writes down when it did not run.
//
// These are the violations:
//
//   - Two holds overlap that exclude each other, and the one that was granted
//     first is not stale during all of the overlap. Of two writers, the lower
//     token was granted first. Of a writer and a reader, it is the one that began
//     before the other was asked for or drew its token. If that does not decide,
//     either may be the stale one.
//   - A hold begins after one with a higher token, and is not stale in between.
//   - Two holds have the same token, or a writer has none.
//   - The store refuses a write under a hold that is neither stale nor lost.
//   - The store accepts a lower token after a higher one.
//   - A hold is lost and was not stale: a healthy participant was reaped.
//   - A hold goes on for longer than noticeTime after the end of its connection
//     or of the server.
//   - A hold has no end, although its process was not killed.
//   - A process that was not killed did not end in order, or reports an error.
//   - A wait ends before its context.
//   - The error of a wait counts silent participants, and does not say what was
//     tried about them.
type checker struct {
	unavailable time.Duration // a participant may be reaped that is silent for longer
	health      time.Duration // a health check must be answered within this time
	noticeTime  time.Duration // a holder must be told of its loss within this time

	holds            map[holdKey]*hold
	order            []*hold
	suspended        map[string][]span // when a process did not run; sorted and disjoint after normalize
	machineSuspended []span            // when no process ran
	killed           map[string]time.Duration
	started          []string
	finished         map[string]bool
	disconnects      map[string][]span
	serverKills      []span
	pauses           []span
	stores           map[string]int64
	refusedWrites    []entry
	violations       []string
	stats            statistics
}

// statistics are counts of what is in a history, for the log.
type statistics struct {
	writers, readers, held, cancelled, failed      int
	silent                                         int // acquires that got nothing beside silent participants
	accepted, refused                              int
	starts, kills, short, long, stalls             int
	disconnects, restarts, pauses, flushes, losses int
	overlaps, inversions                           int
	latest                                         time.Duration // between a cause and the loss, in running time
}

func (t statistics) String() string {
	return fmt.Sprintf("%d grants (%d writers, %d readers), %d tries refused, %d waits given up, %d tries failed, %d of these beside silent participants\n"+
		"store: %d writes accepted, %d refused\n"+
		"%d processes, %d killed, %d short stops, %d long ones, %d stalls\n"+
		"%d connections ended, %d restarts, %d pauses, %d flushes\n"+
		"%d losses told (the latest after %v), %d overlaps and %d token inversions explained",
		t.writers+t.readers, t.writers, t.readers, t.held, t.cancelled, t.failed, t.silent,
		t.accepted, t.refused,
		t.starts, t.kills, t.short, t.long, t.stalls,
		t.disconnects, t.restarts, t.pauses, t.flushes,
		t.losses, t.latest.Round(time.Millisecond), t.overlaps, t.inversions)
}

const never = time.Duration(math.MaxInt64)

// span is a time with a beginning and an end.
type span struct{ from, to time.Duration }

func (s span) covers(o span) bool    { return s.from <= o.from && o.to <= s.to }
func (s span) length() time.Duration { return s.to - s.from }

type holdKey struct {
	who string
	n   int
}

// hold is one grant, with the times at which its process wrote them down.
type hold struct {
	key             holdKey
	lock, mode, id  string
	token           int64
	asked, from, to time.Duration
	lost            time.Duration // never if it was not
	stale           []span
}

func (h *hold) String() string {
	return fmt.Sprintf("%s's hold %d of %s (%s, token %d, id %.6s)", h.key.who, h.key.n, h.lock, h.mode, h.token, h.id)
}

// earliestGrant is the earliest time at which the hold can have been granted: not
// before it was asked for, and not before its token was drawn. A token is the
// server's time in microseconds.
func (h *hold) earliestGrant() time.Duration {
	drawn := time.Duration(h.token) * time.Microsecond
	return min(max(h.asked, drawn), h.from)
}

func (h *hold) staleDuring(s span) bool {
	return slices.ContainsFunc(h.stale, func(w span) bool { return w.covers(s) })
}

func excludes(a, b *hold) bool { return a.mode == writer || b.mode == writer }

func (c *checker) violation(format string, args ...any) {
	c.violations = append(c.violations, fmt.Sprintf(format, args...))
}

// check returns the violations of a history.
func (c *checker) check(history []entry) []string {
	c.holds, c.finished = map[holdKey]*hold{}, map[string]bool{}
	c.suspended, c.killed, c.disconnects = map[string][]span{}, map[string]time.Duration{}, map[string][]span{}
	c.stores = map[string]int64{}
	for _, e := range history {
		c.read(e)
	}
	c.normalize()
	for _, h := range c.order {
		c.findStale(h)
	}
	for _, list := range c.byLock() {
		c.checkOverlaps(list)
		c.checkTokens(list)
	}
	for _, e := range c.refusedWrites {
		c.checkRefusal(e)
	}
	for _, h := range c.order {
		c.checkEnd(h)
	}
	c.checkProcesses()
	return c.violations
}

func (c *checker) read(e entry) {
	switch e.Kind {
	case begin, end, lost:
		c.readHold(e)
	case accepted, refused:
		c.readStore(e)
	case stopping, continued, stall, killing, killed, started, finished, workerError:
		c.readProcess(e)
	case disconnecting, disconnected, serverKilling, serverKilled, serverStarted, pausing, paused:
		c.readServer(e)
	case denied, cancelled, failed:
		c.readFailure(e)
	case dataFlushed, scriptsFlushed:
		c.stats.flushes++
	default:
		c.violation("an entry of the unknown kind %q", e.Kind)
	}
}

func (c *checker) readHold(e entry) {
	key := holdKey{e.Who, e.Hold}
	h := c.holds[key]
	if e.Kind == begin {
		h = &hold{
			key: key, lock: e.Lock, mode: e.Mode, id: e.ID, token: e.Token,
			asked: e.Then, from: e.At, to: never, lost: never,
		}
		c.holds[key], c.order = h, append(c.order, h)
		if e.Mode == writer {
			c.stats.writers++
		} else {
			c.stats.readers++
		}
		return
	}
	if h == nil {
		c.violation("%s of %s's hold %d, which has not begun", e.Kind, e.Who, e.Hold)
		return
	}
	if e.Kind == end {
		h.to = min(h.to, e.At)
		return
	}
	// The loss may have come before the begin entry. Then the hold has no length.
	h.lost = e.Then
	h.to = min(h.to, max(e.Then, h.from))
	c.stats.losses++
}

// readFailure checks an acquire that got nothing.
func (c *checker) readFailure(e entry) {
	switch e.Kind {
	case denied:
		c.stats.held++
	case cancelled:
		c.stats.cancelled++
	default:
		c.stats.failed++
	}
	isWait, limit := e.N > 0, time.Duration(e.N)
	if isWait && (e.Kind != cancelled || e.At < e.Then+limit) {
		c.violation("a wait of %s for %s ends after %v of %v: %s", e.Who, e.Lock, e.At-e.Then, limit, e.Text)
	}
	if !strings.Contains(e.Text, "not answer") {
		return
	}
	c.stats.silent++
	if isWait && !slices.ContainsFunc(explanations, func(words string) bool { return strings.Contains(e.Text, words) }) {
		c.violation("a wait of %s for %s ends without saying what was tried: %s", e.Who, e.Lock, e.Text)
	}
}

// explanations are parts of the texts in silent_peers.go. Each says what was tried
// about a participant that does not answer, or why nothing could be tried.
var explanations = []string{
	" ago",
	"(disconnected, ",
	"(not disconnected: ",
	"cannot be found or disconnected",
	"under no name of this lock",
}

func (c *checker) readStore(e entry) {
	if e.Kind == refused {
		c.stats.refused++
		c.refusedWrites = append(c.refusedWrites, e)
		return
	}
	c.stats.accepted++
	if e.Token < c.stores[e.Lock] {
		c.violation("the store of %s went back from %d to %d", e.Lock, c.stores[e.Lock], e.Token)
	}
	c.stores[e.Lock] = e.Token
}

func (c *checker) readProcess(e entry) {
	t := &c.stats
	switch e.Kind {
	case started:
		t.starts++
		c.started = append(c.started, e.Who)
	case finished:
		c.finished[e.Who] = true
	case workerError:
		c.violation("%s: %s", e.Who, e.Text)
	case killing:
		t.kills++
		c.killed[e.Who] = e.At
	case stopping:
		c.suspended[e.Who] = append(c.suspended[e.Who], span{e.At, never})
	case continued:
		s := last(c.suspended[e.Who], func(s span) bool { return s.to == never })
		s.to = e.At
		if s.length() < c.silenceLimit() {
			t.short++
		} else {
			t.long++
		}
	case stall:
		t.stalls++
		s := span{e.Then, e.At}
		if e.Who == "" {
			c.machineSuspended = append(c.machineSuspended, s)
		} else {
			c.suspended[e.Who] = append(c.suspended[e.Who], s)
		}
	}
}

func (c *checker) readServer(e entry) {
	t := &c.stats
	switch e.Kind {
	case disconnecting:
		c.disconnects[e.ID] = append(c.disconnects[e.ID], span{e.At, never})
	case disconnected:
		last(c.disconnects[e.ID], func(s span) bool { return s.to == never }).to = e.At
		t.disconnects += int(e.N)
		if e.N == 0 {
			c.disconnects[e.ID] = c.disconnects[e.ID][:len(c.disconnects[e.ID])-1]
		}
	case serverKilling:
		t.restarts++
		c.serverKills = append(c.serverKills, span{e.At, never})
	case serverKilled:
		last(c.serverKills, func(s span) bool { return s.to == never }).to = e.At
	case pausing:
		t.pauses++
		if e.Text == pauseAll {
			c.pauses = append(c.pauses, span{e.At, never})
		}
	case paused:
		if e.Text == pauseAll {
			last(c.pauses, func(s span) bool { return s.to == never }).to = e.At + time.Duration(e.N)
		}
	}
}

// last returns the last span that fulfils a condition. Spans of one list do not
// overlap, so that only one of them has no end yet.
func last(list []span, condition func(span) bool) *span {
	for i := len(list) - 1; i >= 0; i-- {
		if condition(list[i]) {
			return &list[i]
		}
	}
	return &span{}
}

// silenceLimit is how long a process may be silent without being reaped. It is
// shorter than the time-out, because entries are written shortly before or after
// what they say.
func (c *checker) silenceLimit() time.Duration { return c.unavailable * 9 / 10 }

// normalize adds the machine's suspensions to those of each process, and ends the
// holds of killed processes.
func (c *checker) normalize() {
	for _, who := range slices.Collect(maps.Keys(c.suspended)) {
		c.suspended[who] = join(append(c.suspended[who], c.machineSuspended...))
	}
	c.machineSuspended = join(c.machineSuspended)
	for _, h := range c.order {
		if at, ok := c.killed[h.key.who]; ok && h.to == never {
			h.to = max(at, h.from)
		}
	}
}

// join sorts spans and merges those that touch.
func join(list []span) []span {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var joined []span
	for _, s := range list {
		if n := len(joined); n > 0 && s.from <= joined[n-1].to {
			joined[n-1].to = max(joined[n-1].to, s.to)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

func (c *checker) suspensions(who string) []span {
	if list, ok := c.suspended[who]; ok {
		return list
	}
	return c.machineSuspended
}

// afterRunning returns the time at which a process has run for d since a time.
func (c *checker) afterRunning(who string, since, d time.Duration) time.Duration {
	if since == never {
		return never
	}
	at := since + d
	for _, s := range c.suspensions(who) {
		if s.to <= since || s.from >= at {
			continue
		}
		if s.to == never {
			return never
		}
		at += s.to - max(s.from, since)
	}
	return at
}

// runningTime is how long a process has run between two times.
func (c *checker) runningTime(who string, since, writesPausedUntil time.Duration) time.Duration {
	d := writesPausedUntil - since
	for _, s := range c.suspensions(who) {
		if from, to := max(s.from, since), min(s.to, writesPausedUntil); from < to {
			d -= to - from
		}
	}
	return d
}

// findStale finds when a hold was stale. A span that was over before the grant
// does not count.
func (c *checker) findStale(h *hold) {
	life := span{h.earliestGrant(), h.to}
	add := func(from, causeEnd time.Duration) {
		s := span{from, c.afterRunning(h.key.who, causeEnd, c.noticeTime)}
		if s.to > life.from && s.from < life.to {
			h.stale = append(h.stale, s)
		}
		if h.lost != never && s.from <= h.lost && h.lost <= s.to {
			c.stats.latest = max(c.stats.latest, c.runningTime(h.key.who, max(causeEnd, h.from), h.lost))
		}
	}
	for _, s := range c.suspensions(h.key.who) {
		if s.length() >= c.silenceLimit() {
			add(s.from+c.silenceLimit(), s.to)
		}
	}
	for _, s := range c.disconnects[h.id] {
		add(s.from, s.to)
	}
	for _, s := range c.serverKills {
		add(s.from, s.to)
	}
	for _, s := range c.pauses {
		if limit := c.health * 9 / 10; s.length() >= limit {
			add(s.from+limit, s.to)
		}
	}
	h.stale = join(h.stale)
}

// byLock returns the holds of each lock, in the order in which they began.
func (c *checker) byLock() [][]*hold {
	locks := map[string][]*hold{}
	for _, h := range c.order {
		locks[h.lock] = append(locks[h.lock], h)
	}
	for _, list := range locks {
		slices.SortStableFunc(list, func(a, b *hold) int { return cmp.Compare(a.from, b.from) })
	}
	var lists [][]*hold
	for _, name := range slices.Sorted(maps.Keys(locks)) {
		lists = append(lists, locks[name])
	}
	return lists
}

func (c *checker) checkOverlaps(list []*hold) {
	var open []*hold
	for _, h := range list {
		open = slices.DeleteFunc(open, func(o *hold) bool { return o.to <= h.from })
		for _, o := range open {
			if s := (span{h.from, min(h.to, o.to)}); excludes(o, h) && s.length() > 0 {
				c.checkOverlap(o, h, s)
			}
		}
		open = append(open, h)
	}
}

// checkOverlap checks two holds that exclude each other. a began first.
func (c *checker) checkOverlap(a, b *hold, s span) {
	for _, older := range grantedFirst(a, b) {
		if older.staleDuring(s) {
			c.stats.overlaps++
			return
		}
	}
	c.violation("%v overlaps with %v for %v", b, a, s.length())
}

// grantedFirst returns which of two overlapping holds was granted first, or both
// if that is not known. The order of the begin entries does not tell: a process
// may stop between its grant and its entry.
func grantedFirst(a, b *hold) []*hold {
	switch {
	case a.mode == writer && b.mode == writer && a.token > b.token:
		return []*hold{b}
	case a.mode == writer && b.mode == writer:
		return []*hold{a}
	case a.from < b.earliestGrant():
		return []*hold{a}
	default:
		return []*hold{a, b}
	}
}

// checkTokens checks the order of the tokens of one lock.
func (c *checker) checkTokens(list []*hold) {
	list = slices.DeleteFunc(slices.Clone(list), func(h *hold) bool { return h.mode == reader })
	seen := map[int64]*hold{}
	highest := int64(0)
	for i, h := range list {
		if h.token <= 0 {
			c.violation("%v has no token", h)
		}
		if other := seen[h.token]; other != nil {
			c.violation("%v has the token of %v", h, other)
		}
		seen[h.token] = h
		if h.token < highest {
			first := list[slices.IndexFunc(list[:i], func(o *hold) bool { return o.token > h.token })]
			c.checkInversion(h, first)
		}
		highest = max(highest, h.token)
	}
}

// checkInversion checks a hold that began after first, which has a higher token.
func (c *checker) checkInversion(h, first *hold) {
	if h.staleDuring(span{first.from, h.from}) {
		c.stats.inversions++
		return
	}
	c.violation("%v begins %v after %v", h, h.from-first.from, first)
}

func (c *checker) checkRefusal(e entry) {
	h := c.holds[holdKey{e.Who, e.Hold}]
	switch {
	case h == nil:
		c.violation("the store refuses %s's hold %d, which has not begun", e.Who, e.Hold)
	case e.At >= h.lost, h.staleDuring(span{e.At, e.At}):
	default:
		c.violation("the store refuses %v", h)
	}
}

// checkEnd checks how a hold ended.
func (c *checker) checkEnd(h *hold) {
	if h.to == never {
		c.violation("%v has no end", h)
		return
	}
	if h.lost != never && !h.staleDuring(span{h.lost, h.lost}) {
		c.violation("%v was lost without a cause", h)
	}
	c.checkNoticed(h, "the end of its connection", c.disconnects[h.id])
	c.checkNoticed(h, "the end of the server", c.serverKills)
}

// checkNoticed checks that a hold ended soon after each of its causes.
func (c *checker) checkNoticed(h *hold, what string, causes []span) {
	for _, s := range causes {
		if h.from < s.from && h.to > c.afterRunning(h.key.who, s.to, c.noticeTime) {
			c.violation("%v goes on for %v after %s", h, h.to-s.to, what)
			return
		}
	}
}

func (c *checker) checkProcesses() {
	for _, who := range c.started {
		if _, killed := c.killed[who]; !killed && !c.finished[who] {
			c.violation("%s did not end in order", who)
		}
	}
}

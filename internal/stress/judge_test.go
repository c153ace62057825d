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

// judge reads a history and finds what no lock may do.
//
// A hold lasts from its "begin" to its "end", to the moment of its loss (as
// the lost hold's own process was told), or to the SIGKILL of its process. It
// is stale while its holder may believe in it and others may have the lock:
//
//   - its process was stopped, or did not run, for nearly the unavailable
//     time-out or longer: from that long after the beginning, because nobody
//     may be taken for dead sooner, until it has been told;
//   - its connection was ended: from just before, until it has been told;
//   - the server was killed: the same;
//   - the server answered nobody for nearly as long as a health check may
//     take: from that long after the beginning, until it has been told.
//
// It must have been told once its process has run for tell since the cause was
// over. A shorter stop, a pause of writes however long, FLUSHALL, SCRIPT FLUSH
// and whatever happens to others explain nothing. The process itself notes
// when it has not run, so that a busy machine is evidence and no assumption.
//
// So these are violations:
//
//   - two holds overlap that exclude each other, and the older one is not stale
//     during all of the overlap. Of two writers the older one has the lower
//     token. Of a writer and a reader it is the one that began before the other
//     was asked for or drew its token; where this does not tell, either may be
//     the stale one;
//   - a hold begins after one with a higher token, and is not stale in between;
//   - two holds have one token, or a writer has none;
//   - the store refuses a hold that is neither stale nor lost;
//   - the store accepts a lower token after a higher one;
//   - a hold is lost and was not stale: somebody healthy was cut off;
//   - a hold whose connection was ended, or whose server was killed, goes on for
//     longer than its holder needs to be told;
//   - a hold has no end, although its process was not killed;
//   - a process that was not killed has not left in order, or tells of trouble;
//   - a wait ends before its context, or because of a participant that does not
//     answer without saying what was tried about it.
type judge struct {
	unavailable time.Duration // after which a silent participant may be cut off
	health      time.Duration // within which a health check must be answered
	tell        time.Duration // a holder needs to learn of its loss

	holds      map[holdKey]*hold
	order      []*hold
	idle       map[string][]span // when processes did not run, sorted and apart
	machine    []span            // when nobody did
	killed     map[string]time.Duration
	started    []string
	left       map[string]bool
	cuts       map[string][]span
	downs      []span
	pauses     []span
	stores     map[string]int64
	refusals   []entry
	violations []string
	tally      tally
}

// tally is what a history amounts to.
type tally struct {
	writers, readers, held, gaveUp, failed  int
	silent                                  int // of those that got nothing
	accepted, refused                       int
	lives, kills, short, long, stalls       int
	cuts, restarts, pauses, flushes, losses int
	overlaps, inversions                    int
	latest                                  time.Duration // between a cause and the loss, in running time
}

func (t tally) String() string {
	return fmt.Sprintf("%d grants (%d writers, %d readers), %d tries refused, %d waits given up, %d tries failed, %d of these beside somebody silent\n"+
		"store: %d writes accepted, %d refused\n"+
		"%d processes, %d killed, %d short stops, %d long ones, %d stalls\n"+
		"%d connections cut, %d restarts, %d pauses, %d flushes\n"+
		"%d losses told (the latest after %v), %d overlaps and %d token inversions explained",
		t.writers+t.readers, t.writers, t.readers, t.held, t.gaveUp, t.failed, t.silent,
		t.accepted, t.refused,
		t.lives, t.kills, t.short, t.long, t.stalls,
		t.cuts, t.restarts, t.pauses, t.flushes,
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

// hold is one grant, as its process saw it.
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

// begun is when it can have been granted at the earliest. A token is the
// server's time in microseconds, and drawn with the grant.
func (h *hold) begun() time.Duration {
	drawn := time.Duration(h.token) * time.Microsecond
	return min(max(h.asked, drawn), h.from)
}

func (h *hold) staleDuring(s span) bool {
	return slices.ContainsFunc(h.stale, func(w span) bool { return w.covers(s) })
}

func excludes(a, b *hold) bool { return a.mode == writer || b.mode == writer }

func (j *judge) violate(format string, args ...any) {
	j.violations = append(j.violations, fmt.Sprintf(format, args...))
}

// judge returns the violations of a history.
func (j *judge) judge(history []entry) []string {
	j.holds, j.left = map[holdKey]*hold{}, map[string]bool{}
	j.idle, j.killed, j.cuts = map[string][]span{}, map[string]time.Duration{}, map[string][]span{}
	j.stores = map[string]int64{}
	for _, e := range history {
		j.read(e)
	}
	j.settle()
	for _, h := range j.order {
		j.stale(h)
	}
	for _, list := range j.byLock() {
		j.overlaps(list)
		j.tokens(list)
	}
	for _, e := range j.refusals {
		j.refusal(e)
	}
	for _, h := range j.order {
		j.ending(h)
	}
	j.processes()
	return j.violations
}

// read takes one entry.
func (j *judge) read(e entry) {
	t := &j.tally
	switch e.Kind {
	case begin, end, lost:
		j.readHold(e)
	case accepted, refused:
		j.readStore(e)
	case stop, cont, stall, kill, gone, started, left, trouble:
		j.readProcess(e)
	case cutting, cut, down, dead, up, pausing, paused:
		j.readServer(e)
	case denied, gaveUp, failed:
		j.readRefusal(e)
	case flushed, unlearnt:
		t.flushes++
	default:
		j.violate("an entry of the unknown kind %q", e.Kind)
	}
}

func (j *judge) readHold(e entry) {
	key := holdKey{e.Who, e.Hold}
	h := j.holds[key]
	if e.Kind == begin {
		h = &hold{
			key: key, lock: e.Lock, mode: e.Mode, id: e.ID, token: e.Token,
			asked: e.Then, from: e.At, to: never, lost: never,
		}
		j.holds[key], j.order = h, append(j.order, h)
		if e.Mode == writer {
			j.tally.writers++
		} else {
			j.tally.readers++
		}
		return
	}
	if h == nil {
		j.violate("%s of %s's hold %d, which has not begun", e.Kind, e.Who, e.Hold)
		return
	}
	if e.Kind == end {
		h.to = min(h.to, e.At)
		return
	}
	// Lost before the work began: then it has not lasted.
	h.lost = e.Then
	h.to = min(h.to, max(e.Then, h.from))
	j.tally.losses++
}

// readRefusal judges an acquire that got nothing.
func (j *judge) readRefusal(e entry) {
	switch e.Kind {
	case denied:
		j.tally.held++
	case gaveUp:
		j.tally.gaveUp++
	default:
		j.tally.failed++
	}
	if e.N > 0 && (e.Kind != gaveUp || e.At < e.Then+time.Duration(e.N)) {
		j.violate("a wait of %s for %s ends after %v of %v: %s", e.Who, e.Lock, e.At-e.Then, time.Duration(e.N), e.Text)
	}
	if strings.Contains(e.Text, "not answer") {
		j.tally.silent++
		if e.N > 0 && !slices.ContainsFunc(explanations, func(words string) bool { return strings.Contains(e.Text, words) }) {
			j.violate("a wait of %s for %s ends without saying what was tried: %s", e.Who, e.Lock, e.Text)
		}
	}
}

// explanations are words of errors that tell what was tried about a participant
// which does not answer.
var explanations = []string{" ago", "(disconnected, ", "(not disconnected: ", "cannot be found or disconnected", "under no name of this lock"}

func (j *judge) readStore(e entry) {
	if e.Kind == refused {
		j.tally.refused++
		j.refusals = append(j.refusals, e)
		return
	}
	j.tally.accepted++
	if e.Token < j.stores[e.Lock] {
		j.violate("the store of %s went back from %d to %d", e.Lock, j.stores[e.Lock], e.Token)
	}
	j.stores[e.Lock] = e.Token
}

func (j *judge) readProcess(e entry) {
	t := &j.tally
	switch e.Kind {
	case started:
		t.lives++
		j.started = append(j.started, e.Who)
	case left:
		j.left[e.Who] = true
	case trouble:
		j.violate("%s: %s", e.Who, e.Text)
	case kill:
		t.kills++
		j.killed[e.Who] = e.At
	case stop:
		j.idle[e.Who] = append(j.idle[e.Who], span{e.At, never})
	case cont:
		s := last(j.idle[e.Who], func(s span) bool { return s.to == never })
		s.to = e.At
		if s.length() < j.patience() {
			t.short++
		} else {
			t.long++
		}
	case stall:
		t.stalls++
		s := span{e.Then, e.At}
		if e.Who == "" {
			j.machine = append(j.machine, s)
		} else {
			j.idle[e.Who] = append(j.idle[e.Who], s)
		}
	}
}

func (j *judge) readServer(e entry) {
	t := &j.tally
	switch e.Kind {
	case cutting:
		j.cuts[e.ID] = append(j.cuts[e.ID], span{e.At, never})
	case cut:
		last(j.cuts[e.ID], func(s span) bool { return s.to == never }).to = e.At
		t.cuts += int(e.N)
		if e.N == 0 {
			j.cuts[e.ID] = j.cuts[e.ID][:len(j.cuts[e.ID])-1]
		}
	case down:
		t.restarts++
		j.downs = append(j.downs, span{e.At, never})
	case dead:
		last(j.downs, func(s span) bool { return s.to == never }).to = e.At
	case pausing:
		t.pauses++
		if e.Text == pauseAll {
			j.pauses = append(j.pauses, span{e.At, never})
		}
	case paused:
		if e.Text == pauseAll {
			last(j.pauses, func(s span) bool { return s.to == never }).to = e.At + time.Duration(e.N)
		}
	}
}

// last returns the last span that a condition holds for. Of what is under way
// there is one at a time.
func last(list []span, condition func(span) bool) *span {
	for i := len(list) - 1; i >= 0; i-- {
		if condition(list[i]) {
			return &list[i]
		}
	}
	return &span{}
}

// patience is how long somebody may be silent without being taken for dead.
// The margin is for the clocks' being read before and after.
func (j *judge) patience() time.Duration { return j.unavailable * 9 / 10 }

// settle ends what has been left open.
func (j *judge) settle() {
	for _, who := range slices.Collect(maps.Keys(j.idle)) {
		j.idle[who] = join(append(j.idle[who], j.machine...))
	}
	j.machine = join(j.machine)
	for _, h := range j.order {
		if at, ok := j.killed[h.key.who]; ok && h.to == never {
			h.to = max(at, h.from)
		}
	}
}

// join sorts spans and makes one of those that touch.
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

func (j *judge) idleOf(who string) []span {
	if list, ok := j.idle[who]; ok {
		return list
	}
	return j.machine
}

// ran returns when a process has run for a duration since a time.
func (j *judge) ran(who string, since, d time.Duration) time.Duration {
	if since == never {
		return never
	}
	at := since + d
	for _, s := range j.idleOf(who) {
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

// running is how long a process has run between two times.
func (j *judge) running(who string, since, until time.Duration) time.Duration {
	d := until - since
	for _, s := range j.idleOf(who) {
		if from, to := max(s.from, since), min(s.to, until); from < to {
			d -= to - from
		}
	}
	return d
}

// stale finds when a hold was stale. Causes before its grant are none.
func (j *judge) stale(h *hold) {
	life := span{h.begun(), h.to}
	add := func(from, over time.Duration) {
		s := span{from, j.ran(h.key.who, over, j.tell)}
		if s.to > life.from && s.from < life.to {
			h.stale = append(h.stale, s)
		}
		if h.lost != never && s.from <= h.lost && h.lost <= s.to {
			j.tally.latest = max(j.tally.latest, j.running(h.key.who, max(over, h.from), h.lost))
		}
	}
	for _, s := range j.idleOf(h.key.who) {
		if s.length() >= j.patience() {
			add(s.from+j.patience(), s.to)
		}
	}
	for _, s := range j.cuts[h.id] {
		add(s.from, s.to)
	}
	for _, s := range j.downs {
		add(s.from, s.to)
	}
	for _, s := range j.pauses {
		if limit := j.health * 9 / 10; s.length() >= limit {
			add(s.from+limit, s.to)
		}
	}
	h.stale = join(h.stale)
}

// byLock returns the holds of every lock, in the order of their beginnings.
func (j *judge) byLock() [][]*hold {
	locks := map[string][]*hold{}
	for _, h := range j.order {
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

func (j *judge) overlaps(list []*hold) {
	var open []*hold
	for _, h := range list {
		open = slices.DeleteFunc(open, func(o *hold) bool { return o.to <= h.from })
		for _, o := range open {
			if s := (span{h.from, min(h.to, o.to)}); excludes(o, h) && s.length() > 0 {
				j.overlap(o, h, s)
			}
		}
		open = append(open, h)
	}
}

// overlap judges two holds that exclude each other, of which the first has
// begun first.
func (j *judge) overlap(a, b *hold, s span) {
	for _, older := range elder(a, b) {
		if older.staleDuring(s) {
			j.tally.overlaps++
			return
		}
	}
	j.violate("%v overlaps with %v for %v", b, a, s.length())
}

// elder returns which of two overlapping holds was granted first, or both if
// that is not known.
func elder(a, b *hold) []*hold {
	switch {
	case a.mode == writer && b.mode == writer && a.token > b.token:
		return []*hold{b}
	case a.mode == writer && b.mode == writer:
		return []*hold{a}
	case a.from < b.begun():
		return []*hold{a}
	default:
		return []*hold{a, b}
	}
}

// tokens judges the order of the tokens of one lock.
func (j *judge) tokens(list []*hold) {
	list = slices.DeleteFunc(slices.Clone(list), func(h *hold) bool { return h.mode == reader })
	seen := map[int64]*hold{}
	highest := int64(0)
	for i, h := range list {
		if h.token <= 0 {
			j.violate("%v has no token", h)
		}
		if other := seen[h.token]; other != nil {
			j.violate("%v has the token of %v", h, other)
		}
		seen[h.token] = h
		if h.token < highest {
			first := list[slices.IndexFunc(list[:i], func(o *hold) bool { return o.token > h.token })]
			j.inversion(h, first)
		}
		highest = max(highest, h.token)
	}
}

// inversion judges a hold that has begun after one that was granted later.
func (j *judge) inversion(h, first *hold) {
	if h.staleDuring(span{first.from, h.from}) {
		j.tally.inversions++
		return
	}
	j.violate("%v begins %v after %v", h, h.from-first.from, first)
}

func (j *judge) refusal(e entry) {
	h := j.holds[holdKey{e.Who, e.Hold}]
	switch {
	case h == nil:
		j.violate("the store refuses %s's hold %d, which has not begun", e.Who, e.Hold)
	case e.At >= h.lost, h.staleDuring(span{e.At, e.At}):
	default:
		j.violate("the store refuses %v", h)
	}
}

// ending judges how a hold has ended.
func (j *judge) ending(h *hold) {
	if h.to == never {
		j.violate("%v has no end", h)
		return
	}
	if h.lost != never && !h.staleDuring(span{h.lost, h.lost}) {
		j.violate("%v was lost without a cause", h)
	}
	j.told(h, "the end of its connection", j.cuts[h.id])
	j.told(h, "the end of the server", j.downs)
}

// told judges whether a hold has ended soon after what has ended it.
func (j *judge) told(h *hold, what string, causes []span) {
	for _, s := range causes {
		if h.from < s.from && h.to > j.ran(h.key.who, s.to, j.tell) {
			j.violate("%v goes on for %v after %s", h, h.to-s.to, what)
			return
		}
	}
}

func (j *judge) processes() {
	for _, who := range j.started {
		if _, killed := j.killed[who]; !killed && !j.left[who] {
			j.violate("%s has not left in order", who)
		}
	}
}

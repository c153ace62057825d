package actor

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"time"
)

var timeType = reflect.TypeFor[time.Time]()

// unseen are fields that nothing that a lock does depends on.
var unseen = map[string]bool{
	"cfg": true, "now": true, "out": true, "roundTrips": true, "began": true, "since": true, "Held": true, "token": true, "Token": true, "lastErr": true, "dial": true,
	"polls": true, "Err": true, "Cause": true, "at": true, "serial": true,
	"silence": true,
}

// scribe writes states of worlds down, equal ones equally: response channels
// are numbered as they come, times are relative to the clock of their owner, and
// all past ones are alike.
type scribe struct {
	buf   []byte
	names []string
	now   time.Time
}

type stateKey [16]byte

// state is what tells two worlds of one kind apart.
func (s *scribe) state(w *model) stateKey {
	s.buf, s.names = s.buf[:0], s.names[:0]
	s.value(reflect.ValueOf(w.small).Elem())
	for i := range w.locks {
		if l := w.locks[i]; l != nil {
			s.lock(w, l)
		} else {
			s.port(w.ports[i])
		}
	}
	for _, c := range w.conns {
		s.conn(w, c)
	}
	sum := sha256.Sum256(s.buf)
	return stateKey(sum[:16])
}

func (s *scribe) lock(w *model, l *lock) {
	s.now = l.now()
	s.flag(l.frozen)
	s.value(reflect.ValueOf(l.m).Elem())
	s.number(int64(len(l.open)), int64(len(l.held)), int64(len(l.leaving)))
	s.flag(l.m.probe.token > w.token)
	s.flag(l.token == w.token)
	s.seen(w, l.decided)
}

// seen is what matters of a moment: which holds of peers it is later than.
func (s *scribe) seen(w *model, serial int) {
	for _, p := range w.ports {
		if p != nil {
			s.flag(p.held && serial > p.since)
			s.flag(p.sub != nil && serial > p.sub.joined)
		}
	}
}

func (s *scribe) port(p *port) {
	s.now = p.now()
	s.flag(p.frozen)
	s.flag(p.held)
	s.flag(p.elected)
	s.flag(p.confirming)
	s.flag(p.exact)
	s.flag(p.revived)
	s.flag(p.torn)
	s.number(int64(p.stage), int64(p.mode), int64(p.expected), int64(p.kills), int64(p.legacy))
	s.text(p.response)
	s.value(reflect.ValueOf(p.records))
	s.value(reflect.ValueOf(p.got))
	s.value(reflect.ValueOf(p.told))
	s.time(p.wake)
	s.time(p.limit)
	s.time(p.budget)
}

func (s *scribe) conn(w *model, c *conn) {
	if !c.up && c.owner == nobody {
		return
	}
	s.number(int64(c.owner), int64(len(c.in)), int64(len(c.out)), int64(len(c.subs)))
	s.flag(c.up)
	s.flag(c.parked)
	s.text(c.id)
	s.text(c.name)
	for _, channel := range c.subs {
		s.text(channel)
	}
	for _, p := range c.in {
		s.value(reflect.ValueOf(p.command))
		s.number(int64(p.counted))
	}
	for _, g := range c.out {
		s.value(reflect.ValueOf(g.frame))
		s.number(int64(g.from))
		s.seen(w, g.serial)
	}
}

func (s *scribe) number(list ...int64) {
	for _, n := range list {
		s.buf = binary.AppendVarint(s.buf, n)
	}
}

func (s *scribe) flag(b bool) {
	if b {
		s.buf = append(s.buf, 1)
		return
	}
	s.buf = append(s.buf, 0)
}

func (s *scribe) text(t string) {
	if len(t) > 2 && (t[0] == 'R' || t[0] == 'P') && slices.Contains([]byte(t), '.') {
		i := slices.Index(s.names, t)
		if i < 0 {
			i = len(s.names)
			s.names = append(s.names, t)
		}
		s.number(-int64(i) - 1)
		return
	}
	s.number(int64(len(t)))
	s.buf = append(s.buf, t...)
}

func (s *scribe) time(t time.Time) {
	switch {
	case t.IsZero():
		s.number(0)
	case !t.After(s.now):
		s.number(1)
	default:
		s.number(1 + int64(t.Sub(s.now)))
	}
}

// value writes any value down.
func (s *scribe) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		s.fields(v)
	case reflect.Slice, reflect.Array:
		s.number(int64(v.Len()))
		for i := range v.Len() {
			s.value(v.Index(i))
		}
	case reflect.Interface:
		if v.IsNil() {
			s.flag(false)
			return
		}
		s.text(v.Elem().Type().Name())
		s.value(v.Elem())
	case reflect.Pointer:
		s.flag(v.IsNil())
		if !v.IsNil() {
			s.value(v.Elem())
		}
	case reflect.String:
		s.text(v.String())
	case reflect.Bool:
		s.flag(v.Bool())
	case reflect.Func:
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Int16, reflect.Int8:
		s.number(v.Int())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		s.number(int64(v.Uint()))
	default:
		panic(fmt.Sprintf("a state with a %v", v.Kind()))
	}
}

func (s *scribe) fields(v reflect.Value) {
	if v.Type() == timeType {
		if v.CanAddr() {
			v = open(v)
		}
		s.time(v.Interface().(time.Time))
		return
	}
	for _, i := range seenFields(v.Type()) {
		s.value(v.Field(i))
	}
}

// plans are the fields of each type that matter.
var plans = map[reflect.Type][]int{}

func seenFields(t reflect.Type) []int {
	plan, ok := plans[t]
	if !ok {
		for i := range t.NumField() {
			if !unseen[t.Field(i).Name] {
				plan = append(plan, i)
			}
		}
		plans[t] = plan
	}
	return plan
}

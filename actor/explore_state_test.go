package actor

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var timeType = reflect.TypeFor[time.Time]()

// ignoredFields are left out of the encoding, because a lock's behaviour does not
// depend on them. With them equivalent states would differ.
var ignoredFields = map[string]bool{
	"cfg": true, "now": true, "out": true, "outbox": true, "roundTrips": true, "began": true, "since": true, "Held": true, "token": true, "Token": true, "lastErr": true, "dial": true,
	"polls": true, "Err": true, "Cause": true, "at": true, "serial": true,
	"silence": true,
}

// stateEncoder encodes the state of a model, so that equivalent states have the
// same encoding. Response channels are numbered in order of appearance. Times are
// relative to the clock of their process, and all past times are equal.
type stateEncoder struct {
	buf   []byte
	names []string
	now   time.Time
}

type stateKey [16]byte

// state returns the hash of a state's encoding.
func (s *stateEncoder) state(m *model) stateKey {
	s.buf, s.names = s.buf[:0], s.names[:0]
	s.value(reflect.ValueOf(m.bounds).Elem())
	for i := range m.locks {
		if l := m.locks[i]; l != nil {
			s.lock(m, l)
		} else {
			s.peer(m.peers[i])
		}
	}
	for _, c := range m.conns {
		s.conn(m, c)
	}
	sum := sha256.Sum256(s.buf)
	return stateKey(sum[:16])
}

func (s *stateEncoder) lock(m *model, l *lock) {
	s.now = l.now()
	s.flag(l.frozen)
	s.value(reflect.ValueOf(l.machine).Elem())
	s.number(int64(len(l.pending)), int64(len(l.holds)), int64(len(l.releasing)))
	s.flag(l.machine.probe.token > m.highestToken)
	s.flag(l.token == m.highestToken)
	s.order(m, l.decidingSerial)
}

// order encodes what matters of a serial: whether it is later than the beginning
// of each peer's hold and subscription.
func (s *stateEncoder) order(m *model, serial int) {
	for _, p := range m.peers {
		if p != nil {
			s.flag(p.held && serial > p.heldSince)
			s.flag(p.subConn != nil && serial > p.subConn.joinedSerial)
		}
	}
}

func (s *stateEncoder) peer(p *peer) {
	s.now = p.now()
	s.flag(p.frozen)
	s.flag(p.held)
	s.flag(p.elected)
	s.flag(p.confirming)
	s.flag(p.conclusive)
	s.flag(p.resubscribed)
	s.flag(p.resubscribedMidAttempt)
	s.number(int64(p.stage), int64(p.mode), int64(p.expected), int64(p.pendingKills), int64(p.legacy))
	s.text(p.response)
	s.value(reflect.ValueOf(p.records))
	s.value(reflect.ValueOf(p.receivers))
	s.value(reflect.ValueOf(p.answered))
	s.time(p.timer)
	s.time(p.answersDue)
	s.time(p.confirmLimit)
}

func (s *stateEncoder) conn(m *model, c *conn) {
	if !c.up && c.owner == nobody {
		return
	}
	s.number(int64(c.owner), int64(len(c.requests)), int64(len(c.deliveries)), int64(len(c.subs)))
	s.flag(c.up)
	s.flag(c.parked)
	s.text(c.id)
	s.text(c.name)
	for _, channel := range c.subs {
		s.text(channel)
	}
	for _, p := range c.requests {
		s.value(reflect.ValueOf(p.command))
		s.number(int64(p.firstCount))
	}
	for _, g := range c.deliveries {
		s.value(reflect.ValueOf(g.frame))
		s.number(int64(g.from))
		s.order(m, g.serial)
	}
}

func (s *stateEncoder) number(list ...int64) {
	for _, n := range list {
		s.buf = binary.AppendVarint(s.buf, n)
	}
}

func (s *stateEncoder) flag(b bool) {
	if b {
		s.buf = append(s.buf, 1)
		return
	}
	s.buf = append(s.buf, 0)
}

func (s *stateEncoder) text(t string) {
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

func (s *stateEncoder) time(t time.Time) {
	switch {
	case t.IsZero():
		s.number(0)
	case !t.After(s.now):
		s.number(1)
	default:
		s.number(1 + int64(t.Sub(s.now)))
	}
}

// value encodes any value.
func (s *stateEncoder) value(v reflect.Value) {
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
		panic(fmt.Sprintf("a state cannot contain a %v", v.Kind()))
	}
}

func (s *stateEncoder) fields(v reflect.Value) {
	if v.Type() == timeType {
		if v.CanAddr() {
			v = accessible(v)
		}
		s.time(v.Interface().(time.Time))
		return
	}
	for _, i := range encodedFields(v.Type()) {
		s.value(v.Field(i))
	}
}

// encodedFieldCache has the indices of the fields that are encoded, for each
// struct type.
var encodedFieldCache = map[reflect.Type][]int{}

func encodedFields(t reflect.Type) []int {
	list, ok := encodedFieldCache[t]
	if !ok {
		for i := range t.NumField() {
			if !ignoredFields[t.Field(i).Name] {
				list = append(list, i)
			}
		}
		encodedFieldCache[t] = list
	}
	return list
}

// A field that was renamed would silently be part of the state again.
func TestIgnoredFieldsExist(t *testing.T) {
	names, seen := map[string]bool{}, map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		if seen[typ] {
			return
		}
		seen[typ] = true
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			walk(typ.Elem())
		case reflect.Struct:
			for field := range typ.Fields() {
				names[field.Name] = true
				walk(field.Type)
			}
		}
	}
	for _, root := range []reflect.Type{reflect.TypeFor[model](), reflect.TypeFor[Machine](), reflect.TypeFor[Failed](), reflect.TypeFor[Counted](), reflect.TypeFor[Refusal](), reflect.TypeFor[Fault]()} {
		walk(root)
	}
	for name := range ignoredFields {
		require.True(t, names[name], name)
	}
}

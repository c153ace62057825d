package actor

import (
	"reflect"
	"slices"
	"unsafe"
)

// clone copies a model, so that every possible next action can be applied to the
// same state.
func (m *model) clone() *model {
	c := *m
	c.log = nil
	c.bounds = m.bounds.clone()
	c.demotedSerials = slices.Clone(m.demotedSerials)
	clones := map[*conn]*conn{}
	c.conns = make([]*conn, len(m.conns))
	for i, o := range m.conns {
		c.conns[i] = o.clone()
		clones[o] = c.conns[i]
	}
	c.locks, c.peers = slices.Clone(m.locks), slices.Clone(m.peers)
	for i := range m.locks {
		if l := m.locks[i]; l != nil {
			c.locks[i] = l.clone(&c, clones)
		}
		if p := m.peers[i]; p != nil {
			c.peers[i] = p.clone(&c, clones)
		}
	}
	return &c
}

// clone copies a connection. Frames and commands are immutable, so they are
// shared.
func (c *conn) clone() *conn {
	copied := *c
	copied.subs, copied.requests, copied.deliveries = slices.Clone(c.subs), slices.Clone(c.requests), slices.Clone(c.deliveries)
	return &copied
}

func (l *lock) clone(m *model, clones map[*conn]*conn) *lock {
	copied := *l
	copied.model = m
	copied.conn = clones[l.conn]
	copied.pending, copied.holds, copied.releasing = slices.Clone(l.pending), slices.Clone(l.holds), slices.Clone(l.releasing)
	copied.reclaimed, copied.ownedChecks, copied.inputs = slices.Clone(l.reclaimed), slices.Clone(l.ownedChecks), nil
	machine := *l.machine
	work := *machine.work
	work.out, work.outbox = nil, outbox{}
	machine.work, machine.cfg = &work, Config{}
	deepCopy(reflect.ValueOf(&machine).Elem())
	copied.machine = &machine
	machine.cfg = copied.configure(l.machine.cfg)
	return &copied
}

func (p *peer) clone(m *model, clones map[*conn]*conn) *peer {
	copied := *p
	copied.model = m
	copied.subConn, copied.cmdConn, copied.answerConn, copied.responseConn = clones[p.subConn], clones[p.cmdConn], clones[p.answerConn], clones[p.responseConn]
	copied.records, copied.receivers, copied.answered = slices.Clone(p.records), slices.Clone(p.receivers), slices.Clone(p.answered)
	return &copied
}

// deepCopy replaces, in a struct that was copied by value, everything that it
// still shares with its original. Values in interfaces are immutable and stay
// shared.
func deepCopy(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for _, i := range sharedFields(v.Type()) {
			deepCopy(accessible(v.Field(i)))
		}
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		copied := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(copied, v)
		v.Set(copied)
		if !isShared(v.Type().Elem()) {
			return
		}
		for i := range v.Len() {
			deepCopy(v.Index(i))
		}
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		copied := reflect.New(v.Type().Elem())
		copied.Elem().Set(v.Elem())
		v.Set(copied)
		deepCopy(copied.Elem())
	default:
	}
}

// sharedFieldCache has the indices of the fields that a copy by value shares with
// its original, for each struct type.
var sharedFieldCache = map[reflect.Type][]int{}

func sharedFields(t reflect.Type) []int {
	list, ok := sharedFieldCache[t]
	if !ok && t != timeType {
		for i := range t.NumField() {
			if isShared(t.Field(i).Type) {
				list = append(list, i)
			}
		}
		sharedFieldCache[t] = list
	}
	return list
}

// isShared reports whether a copy by value of this type shares memory with its
// original.
func isShared(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice, reflect.Pointer:
		return t != reflect.PointerTo(timeType)
	case reflect.Struct:
		return len(sharedFields(t)) > 0
	default:
		return false
	}
}

// accessible returns a field that can be read and set although it is not exported.
func accessible(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}

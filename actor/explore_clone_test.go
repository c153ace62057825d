package actor

import (
	"reflect"
	"slices"
	"unsafe"
)

// clone copies a world, so that it can go on in several ways.
func (w *model) clone() *model {
	c := *w
	c.log = nil
	c.small = w.small.clone()
	c.demoted = slices.Clone(w.demoted)
	twins := map[*conn]*conn{}
	c.conns = make([]*conn, len(w.conns))
	for i, o := range w.conns {
		c.conns[i] = o.clone()
		twins[o] = c.conns[i]
	}
	c.locks, c.ports = slices.Clone(w.locks), slices.Clone(w.ports)
	for i := range w.locks {
		if l := w.locks[i]; l != nil {
			c.locks[i] = l.clone(&c, twins)
		}
		if p := w.ports[i]; p != nil {
			c.ports[i] = p.clone(&c, twins)
		}
	}
	return &c
}

// clone copies a connection. Frames and commands never change.
func (c *conn) clone() *conn {
	twin := *c
	twin.subs, twin.in, twin.out = slices.Clone(c.subs), slices.Clone(c.in), slices.Clone(c.out)
	return &twin
}

func (l *lock) clone(w *model, twins map[*conn]*conn) *lock {
	twin := *l
	twin.w = w
	twin.conn = twins[l.conn]
	twin.open, twin.held, twin.leaving = slices.Clone(l.open), slices.Clone(l.held), slices.Clone(l.leaving)
	twin.back, twin.asking, twin.next = slices.Clone(l.back), slices.Clone(l.asking), nil
	m := *l.m
	m.out, m.link.out, m.cfg = nil, outbox{}, Config{}
	separate(reflect.ValueOf(&m).Elem())
	twin.m = &m
	m.cfg = twin.configure(l.m.cfg)
	return &twin
}

func (p *port) clone(w *model, twins map[*conn]*conn) *port {
	twin := *p
	twin.w = w
	twin.sub, twin.cmd, twin.ans, twin.resp = twins[p.sub], twins[p.cmd], twins[p.ans], twins[p.resp]
	twin.records, twin.got, twin.told = slices.Clone(p.records), slices.Clone(p.got), slices.Clone(p.told)
	return &twin
}

// separate makes a shallow copy of a struct a deep one. What is in interfaces
// never changes.
func separate(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for _, i := range sharedFields(v.Type()) {
			separate(open(v.Field(i)))
		}
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		twin := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(twin, v)
		v.Set(twin)
		if !shares(v.Type().Elem()) {
			return
		}
		for i := range v.Len() {
			separate(v.Index(i))
		}
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		twin := reflect.New(v.Type().Elem())
		twin.Elem().Set(v.Elem())
		v.Set(twin)
		separate(twin.Elem())
	default:
	}
}

// shared are the fields of each type that a shallow copy has in common with
// its original.
var shared = map[reflect.Type][]int{}

func sharedFields(t reflect.Type) []int {
	list, ok := shared[t]
	if !ok && t != timeType {
		for i := range t.NumField() {
			if shares(t.Field(i).Type) {
				list = append(list, i)
			}
		}
		shared[t] = list
	}
	return list
}

func shares(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice, reflect.Pointer:
		return t != reflect.PointerTo(timeType)
	case reflect.Struct:
		return len(sharedFields(t)) > 0
	default:
		return false
	}
}

// open gives access to a field that is not exported.
func open(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}

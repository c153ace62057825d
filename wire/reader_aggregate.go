package wire

// aggregate opens an aggregate, and completes it if it is empty.
func (r *Reader) aggregate(t byte, line []byte) (Value, bool, error) {
	if t == '*' && string(line) == "-1" {
		return r.scalar(Value{})
	}
	kind := aggregateKind(t)
	left, err := r.count(kind, line)
	if err != nil {
		return Value{}, false, err
	}
	if len(r.open) >= r.limits.Depth {
		return Value{}, false, r.broken("more than %d aggregates inside one another", r.limits.Depth)
	}
	top := level{kind: kind, left: left, used: r.used - r.owed}
	top.attr = r.takeAttr()
	if left > 0 {
		top.elems = r.elems(min(left, r.expected(kind)))
	}
	r.open = append(r.open, top)
	if err := r.charge(0); err != nil || left != 0 {
		return Value{}, false, err
	}
	return r.close(), true, nil
}

func aggregateKind(t byte) Kind {
	switch t {
	case '~':
		return Set
	case '%':
		return Map
	case '>':
		return Push
	case '|':
		return Attribute
	default:
		return Array
	}
}

// count returns the number of values in an aggregate, or -1 if an end mark follows
// them.
func (r *Reader) count(kind Kind, line []byte) (int, error) {
	if string(line) == "?" && kind != Push && kind != Attribute {
		return -1, nil
	}
	n, ok := digits(line)
	if !ok {
		return 0, r.broken("%.32q is no number of elements", line)
	}
	each := 1
	if kind == Map || kind == Attribute {
		each = 2
	}
	if n > uint64(r.limits.Elements/each) {
		return 0, r.broken("an aggregate of more than %d elements", r.limits.Elements)
	}
	return int(n) * each, nil
}

// end completes a streamed aggregate.
func (r *Reader) end(line []byte) (Value, bool, error) {
	last := len(r.open) - 1
	switch {
	case len(line) != 0:
		return Value{}, false, r.broken("%.32q behind an end mark", line)
	case last < 0 || r.open[last].left >= 0:
		return Value{}, false, r.broken("an end mark that ends nothing")
	case r.attr != nil:
		return Value{}, false, r.broken("an attribute before an end mark")
	case r.open[last].kind == Map && len(r.open[last].elems)%2 != 0:
		return Value{}, false, r.broken("a map whose last key has no value")
	}
	return r.close(), true, nil
}

// place adds a complete value to the innermost aggregate. If that completes the
// aggregate, it does the same with it. A value without an aggregate around it is
// a frame, and is returned.
func (r *Reader) place(v Value) (frame Value, complete bool, err error) {
	for {
		if v.Kind == Attribute {
			return Value{}, false, r.announce(v)
		}
		if v.Kind == Push {
			return v, true, nil
		}
		if len(r.open) == 0 {
			r.used = 0
			return v, true, nil
		}
		top := &r.open[len(r.open)-1]
		if len(top.elems) == r.limits.Elements {
			return Value{}, false, r.broken("an aggregate of more than %d elements", r.limits.Elements)
		}
		if r.unwanted() {
			top.elems = top.elems[:len(top.elems)-1] // its key is not wanted either
		} else {
			top.elems = append(top.elems, v)
		}
		top.left--
		if top.left != 0 {
			return Value{}, false, nil
		}
		v = r.close()
	}
}

// announce keeps an attribute for the value that follows it. Several in a row are
// joined.
func (r *Reader) announce(v Value) error {
	if before := v.Attr; before != nil {
		if len(before.Elems)+len(v.Elems) > r.limits.Elements {
			return r.broken("an attribute of more than %d elements", r.limits.Elements)
		}
		v = Value{Kind: Attribute, Elems: append(before.Elems, v.Elems...)}
	}
	kept := v // the address of v would put every value on the heap
	r.attr = &kept
	return nil
}

// takeAttr returns the attribute of the value that is being read, nil if there is
// none or if it is empty.
func (r *Reader) takeAttr() *Value {
	attr := r.attr
	r.attr, r.owed = nil, 0
	if attr != nil && len(attr.Elems) == 0 {
		return nil
	}
	return attr
}

// close completes the innermost aggregate.
func (r *Reader) close() Value {
	last := len(r.open) - 1
	top := r.open[last]
	r.open[last] = level{} // so that the elements can be collected
	r.open = r.open[:last]
	switch top.kind {
	case Attribute:
		r.owed = r.used - top.used
	case Push:
		// It is returned at once. If it counted until the reply around it is
		// complete, many pushes within a long reply would exceed the limit.
		r.used = top.used
	}
	return Value{Kind: top.kind, Elems: top.elems, Attr: top.attr}
}

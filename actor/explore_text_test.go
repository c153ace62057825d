package actor

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// clean writes a value down for a transcript, without the fields that are
// zero.
func clean(v any) string {
	var b strings.Builder
	writeClean(&b, reflect.ValueOf(v))
	return strings.ReplaceAll(b.String(), idTail, "")
}

func writeClean(b *strings.Builder, v reflect.Value) {
	switch {
	case !v.IsValid():
		b.WriteString("nil")
	case v.Type() == reflect.TypeFor[time.Time]() && !v.CanInterface():
		b.WriteString("some time")
	case v.Type() == reflect.TypeFor[time.Time]():
		fmt.Fprintf(b, "%v", v.Interface().(time.Time).Sub(dawn))
	case v.CanInterface() && v.Type().Implements(reflect.TypeFor[fmt.Stringer]()):
		fmt.Fprint(b, v.Interface())
	case v.CanInterface() && v.Type().Implements(reflect.TypeFor[error]()):
		fmt.Fprintf(b, "%q", fmt.Sprint(v.Interface()))
	case v.Kind() == reflect.Interface:
		writeClean(b, v.Elem())
	case v.Kind() == reflect.Pointer:
		b.WriteString("&")
		writeClean(b, v.Elem())
	case v.Kind() == reflect.Struct:
		writeStruct(b, v)
	case v.Kind() == reflect.Slice:
		b.WriteString("[")
		for i := range v.Len() {
			if i > 0 {
				b.WriteString(", ")
			}
			writeClean(b, v.Index(i))
		}
		b.WriteString("]")
	case v.Kind() == reflect.Func:
		b.WriteString("func")
	default:
		fmt.Fprintf(b, "%v", v)
	}
}

func writeStruct(b *strings.Builder, v reflect.Value) {
	b.WriteString(v.Type().Name() + "{")
	comma := ""
	for i := range v.NumField() {
		if f := v.Field(i); !f.IsZero() {
			b.WriteString(comma + v.Type().Field(i).Name + ":")
			writeClean(b, f)
			comma = " "
		}
	}
	b.WriteString("}")
}

package actor

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// formatValue formats a value for the log of a run, without fields that are zero.
func formatValue(v any) string {
	var b strings.Builder
	writeValue(&b, reflect.ValueOf(v))
	return strings.ReplaceAll(b.String(), idTail, "")
}

func writeValue(b *strings.Builder, v reflect.Value) {
	switch {
	case !v.IsValid():
		b.WriteString("nil")
	case v.Type() == reflect.TypeFor[time.Time]() && !v.CanInterface():
		b.WriteString("some time")
	case v.Type() == reflect.TypeFor[time.Time]():
		fmt.Fprintf(b, "%v", v.Interface().(time.Time).Sub(epoch))
	case v.CanInterface() && v.Type().Implements(reflect.TypeFor[fmt.Stringer]()):
		fmt.Fprint(b, v.Interface())
	case v.CanInterface() && v.Type().Implements(reflect.TypeFor[error]()):
		fmt.Fprintf(b, "%q", fmt.Sprint(v.Interface()))
	case v.Kind() == reflect.Interface:
		writeValue(b, v.Elem())
	case v.Kind() == reflect.Pointer:
		b.WriteString("&")
		writeValue(b, v.Elem())
	case v.Kind() == reflect.Struct:
		writeStruct(b, v)
	case v.Kind() == reflect.Slice:
		b.WriteString("[")
		for i := range v.Len() {
			if i > 0 {
				b.WriteString(", ")
			}
			writeValue(b, v.Index(i))
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
			writeValue(b, f)
			comma = " "
		}
	}
	b.WriteString("}")
}

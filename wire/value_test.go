package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIsError(t *testing.T) {
	require.True(t, Value{Kind: Error}.IsError())
	require.True(t, Value{Kind: BulkError}.IsError())
	require.False(t, Value{}.IsError())
	require.False(t, bulk("ERR").IsError())
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		v    Value
		want string
	}{
		{Value{}, ""},
		{Value{Kind: SimpleString, Str: "OK"}, "OK"},
		{Value{Kind: Error, Str: "ERR x"}, "ERR x"},
		{Value{Kind: BulkError, Str: "ERR y"}, "ERR y"},
		{bulk("b"), "b"},
		{Value{Kind: Verbatim, Format: [3]byte{'t', 'x', 't'}, Str: "v"}, "v"},
		{number(-3), "-3"},
		{Value{Kind: Boolean, Int: 1}, "true"},
		{Value{Kind: Boolean}, "false"},
		{Value{Kind: Double, Str: "1.50"}, "1.50"},
		{Value{Kind: BigNumber, Str: "123"}, "123"},
		{array(bulk("a")), ""},
		{push(bulk("a")), ""},
	} {
		require.Equal(t, c.want, c.v.Text())
	}
}

func TestLookup(t *testing.T) {
	pairs := []Value{
		array(), bulk("of a key without a text"), {}, bulk("of a null key"),
		bulk("server"), bulk("redis"), bulk("proto"), number(3), bulk("server"), bulk("again"), bulk("odd"),
	}
	for _, kind := range []Kind{Map, Array, Attribute} {
		v := Value{Kind: kind, Elems: pairs}
		got, ok := v.Lookup("server")
		require.True(t, ok)
		require.Equal(t, bulk("redis"), got)
		got, ok = v.Lookup("proto")
		require.True(t, ok)
		require.Equal(t, number(3), got)
		for _, key := range []string{"redis", "odd", "Server", ""} {
			got, ok = v.Lookup(key)
			require.False(t, ok, key)
			require.Zero(t, got)
		}
	}
	for _, kind := range []Kind{Set, Push, BulkString, Null} {
		_, ok := Value{Kind: kind, Elems: pairs}.Lookup("server")
		require.False(t, ok)
	}
}

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommandsAreCounted(t *testing.T) {
	// A bulk string may look like a command itself.
	text := append(command("SUBSCRIBE", "a"), command("PUBLISH", "a", "*1\r\n$4\r\nPING\r\n")...)
	text = append(text, command("PING")...)
	for size := 1; size <= len(text); size++ {
		var c commandCounter
		var n int64
		for rest := text; len(rest) > 0; {
			part := rest[:min(size, len(rest))]
			n += c.count(part)
			rest = rest[len(part):]
		}
		require.EqualValues(t, 3, n, "in parts of %d bytes", size)
	}
}

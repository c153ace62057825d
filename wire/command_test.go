package wire

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// words are commands as a person writes them.
func words(t *testing.T, b []byte) string {
	var commands []string
	r := NewReader(strings.NewReader(string(b)))
	for len(b) > 0 {
		v, err := r.Read()
		if err != nil {
			break
		}
		var args []string
		for _, e := range v.Elems {
			args = append(args, e.Text())
		}
		commands = append(commands, strings.Join(args, " "))
	}
	require.NotEmpty(t, commands)
	return strings.Join(commands, "|")
}

func TestCommands(t *testing.T) {
	sum := sha1.Sum([]byte(ProbeScript))
	for want, got := range map[string][]byte{
		"HELLO 3":                           AppendHello(nil, nil, ""),
		"HELLO 3 SETNAME n":                 AppendHello(nil, nil, "n"),
		"HELLO 3 AUTH u p SETNAME n":        AppendHello(nil, &Login{User: "u", Password: "p"}, "n"),
		"HELLO 3 AUTH default p":            AppendHello(nil, &Login{Password: "p"}, ""),
		"HELLO 3 SETNAME without":           AppendHello(nil, &Login{User: "u"}, "without"),
		"AUTH u p":                          AppendAuth(nil, Login{User: "u", Password: "p"}),
		"AUTH default p":                    AppendAuth(nil, Login{Password: "p"}),
		"EVAL " + ProbeScript + " 0 c ping": AppendProbe(nil, "c", "ping", true),
		"EVALSHA " + hex.EncodeToString(sum[:]) + " 0 c ping": AppendProbe(nil, "c", "ping", false),
		"AUTH u p|HELLO 3": AppendHello(AppendAuth(nil, Login{User: "u", Password: "p"}), nil, ""),
	} {
		require.Equal(t, want, words(t, got))
	}
}

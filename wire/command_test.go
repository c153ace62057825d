package wire

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/protocol"
)

// commandText returns encoded commands as text, separated by "|".
func commandText(t *testing.T, b []byte) string {
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

func sha(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}

func TestCommands(t *testing.T) {
	waiters := protocol.Queue{{ID: idA}, {ID: idB}}
	wakeArgs := wakePrefix + " " + wakeSuffix + " " + string(appendWaiters(nil, queueOf(2)))
	for want, got := range map[string][]byte{
		"HELLO 3":                                   AppendHello(nil, nil, ""),
		"HELLO 3 SETNAME n":                         AppendHello(nil, nil, "n"),
		"HELLO 3 AUTH u p SETNAME n":                AppendHello(nil, &Login{User: "u", Password: "p"}, "n"),
		"HELLO 3 AUTH default p":                    AppendHello(nil, &Login{Password: "p"}, ""),
		"HELLO 3 SETNAME without":                   AppendHello(nil, &Login{User: "u"}, "without"),
		"AUTH u p":                                  AppendAuth(nil, Login{User: "u", Password: "p"}),
		"AUTH default p":                            AppendAuth(nil, Login{Password: "p"}),
		"EVAL " + ProbeScript + " 0 c ping":         AppendProbe(nil, "c", "ping", true),
		"EVALSHA " + sha(ProbeScript) + " 0 c ping": AppendProbe(nil, "c", "ping", false),

		"EVAL " + FenceScript + " 1 c-fence c ping":                                                AppendFence(nil, "c", "ping", true),
		"EVALSHA " + sha(FenceScript) + " 1 c-fence c ping":                                        AppendFence(nil, "c", "ping", false),
		"EVALSHA " + sha(FenceScript) + " 1 \xff-fence \xff":                                       AppendFence(nil, "\xff", "", false),
		"EVAL " + WakeScript + " 0 c-  " + wakeArgs:                                                AppendWake(nil, "c", queueOf(2), true),
		"EVALSHA " + sha(WakeScript) + " 0 c-  " + wakeArgs:                                        AppendWake(nil, "c", queueOf(2), false),
		"EVALSHA " + sha(WakeScript) + " 0 tether-" + channelHash("\xff") + "- -reply " + wakeArgs: AppendWake(nil, "\xff", queueOf(2), false),
		"EVALSHA " + sha(WakeScript) + " 0 c-  " + wakePrefix + " " + wakeSuffix + " ":             AppendWake(nil, "c", nil, false),
		"PUBLISH " + WaitersChannel("c") + " " + EncodeWakeReaders():                               AppendWakeReaders(nil, "c"),
		"PUBSUB NUMSUB c":                        AppendCount(nil, "c"),
		"PUBSUB NUMSUB c " + WaitersChannel("c"): AppendPoll(nil, "c"),
		"PUBSUB NUMSUB c-" + idA + " c-" + idB:   AppendCountWaiters(nil, "c", waiters),
		"PUBSUB NUMSUB " + WakeChannel("\xff", idA) + " " + WakeChannel("\xff", idB): AppendCountWaiters(nil, "\xff", waiters),
		"PUBSUB NUMSUB":                   AppendCountWaiters(nil, "c", nil),
		"CLIENT LIST TYPE pubsub":         AppendList(nil),
		"CLIENT KILL ID 9007199254740993": AppendKill(nil, 9007199254740993),
		"SELECT 15":                       AppendSelect(nil, 15),
		"AUTH u p|HELLO 3":                AppendHello(AppendAuth(nil, Login{User: "u", Password: "p"}), nil, ""),
	} {
		require.Equal(t, want, commandText(t, got))
	}
}

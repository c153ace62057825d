package actor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/protocol"
	"github.com/tetherlock/tether/wire"
)

const (
	idA = "0123456789abcdef0123456789abcdef"
	idB = "fedcba9876543210fedcba9876543210"
)

// channelsOfB are the channels of a lock whose holder id is idB.
var channelsOfB = channels{"C", wire.WaitersChannel("C"), wire.WakeChannel("C", idB)}

func num(n int64) wire.Value { return wire.Value{Kind: wire.Integer, Int: n} }

func str(s string) wire.Value { return wire.Value{Kind: wire.BulkString, Str: s} }

func arr(elems ...wire.Value) wire.Value { return wire.Value{Kind: wire.Array, Elems: elems} }

func TestRepliesBecomeInputs(t *testing.T) {
	line := "id=7 addr=1.2.3.4:5 name=C-lock-" + idA + " sub=1\n"
	for _, c := range []struct {
		op    Op
		reply wire.Value
		in    Input
	}{
		{Count, arr(str("C"), num(3)), Counted{N: 3}},
		{Count, arr(str("C"), str("3")), nil},
		{Count, num(3), nil},
		{CountAndDraw, arr(num(1), str("1700000000000017")), Counted{N: 1, Token: 1700000000000017}},
		{CountAndDraw, arr(num(2), wire.Value{}), Counted{N: 2}},
		{CountAndDraw, arr(num(2)), Counted{N: 2}},
		{CountAndDraw, num(1), nil},
		{ProbeAndDraw, arr(num(2), str("9")), Probed{N: 2, Token: 9}},
		{Poll, arr(str("C"), num(1), str("w"), num(4)), Polled{N: 1, Sleepers: 4}},
		{Poll, arr(str("C"), num(1)), nil},
		{CountWaiters, arr(str("a"), num(1), str("b"), num(0)), WaitersCounted{Counts: []int{1, 0}}},
		{Probe, num(2), Probed{N: 2}},
		{Probe, str("2"), nil},
		{Wake, num(1), Waked{N: 1}},
		{Kill, num(1), Killed{N: 1}},
		{List, wire.Value{Kind: wire.Verbatim, Str: line}, Listed{[]Connection{{Num: 7, ID: idA, Addr: "1.2.3.4:5"}}}},
		{List, str(line), Listed{[]Connection{{Num: 7, ID: idA, Addr: "1.2.3.4:5"}}}},
		{List, num(1), nil},
		{Hello, wire.Value{Kind: wire.Map, Elems: []wire.Value{str("role"), str("master"), str("mode"), str("standalone")}}, Greeted{"master", "standalone"}},
		{Hello, str("PONG"), nil},
		{Login, arr(), Done{}},
		{Select, str("OK"), Done{}},
		{SelfPing, num(1), Done{}},
		{Answer, num(1), Done{}},
		{WakeReaders, num(0), Done{}},
		{Auth, str("OK"), Done{}},
		{Op(99), num(0), nil},
	} {
		var r router
		r.sent(Command{Op: c.op})
		in, err := r.input(channelsOfB, c.reply)
		require.Equal(t, c.in, in, "%v %v", c.op, c.reply)
		require.Equal(t, c.in == nil, err != nil, "%v %v", c.op, c.reply)
	}
}

func TestMessagesBecomeInputs(t *testing.T) {
	ping := protocol.Ping{Response: "R", ID: idA, Want: protocol.Shared}
	record := protocol.Record{ID: idA, Mode: protocol.Shared, Election: protocol.NotElected, Place: 2}
	queue := protocol.Queue{{ID: idA, Want: protocol.Exclusive}}
	wake := `{"message":"wake","tether":{"queue":[["` + idA + `","x"]]}}`
	readers := `{"message":"wake","tether":{"want":"shared"}}`
	for _, c := range []struct {
		channel, text string
		in            Input
	}{
		{"C", wire.EncodePing(ping), Pinged{ping}},
		{"C", "junk", nil},
		{"C", wake, nil},
		{channelsOfB.wake, wake, Woken{protocol.Wake{Queue: queue}}},
		{channelsOfB.waiters, readers, Woken{protocol.Wake{Readers: true}}},
		// A wake counts only on its own channel.
		{channelsOfB.waiters, wake, nil},
		{channelsOfB.wake, readers, nil},
		{channelsOfB.wake, "junk", nil},
		{"R", wire.EncodeRecord(record, queue), Answered{"R", record, queue}},
		{"R", "1700000000.5", Answered{"R", protocol.Record{Mode: protocol.Exclusive, Legacy: true}, nil}},
	} {
		var r router
		in, err := r.input(channelsOfB, wire.Value{Kind: wire.Push, Elems: []wire.Value{str("message"), str(c.channel), str(c.text)}})
		require.NoError(t, err)
		require.Equal(t, c.in, in, "%s %s", c.channel, c.text)
	}
}

// An error takes the place of the reply, and says whether a script was sent
// with its text: the user may be allowed the one and not the other.
func TestErrorsBecomeFailures(t *testing.T) {
	var r router
	r.sent(Command{Op: Subscribe, Channel: "C"})
	r.sent(Command{Op: Probe, Text: true})
	for _, want := range []Failed{{Subscribe, false, "NOPERM"}, {Probe, true, "NOPERM"}} {
		in, err := r.input(channelsOfB, wire.Value{Kind: wire.Error, Str: "NOPERM"})
		require.NoError(t, err)
		require.Equal(t, want, in)
	}
	_, err := r.input(channelsOfB, num(1))
	require.Error(t, err, "a reply without a command")
}

func TestCommandsBecomeBytes(t *testing.T) {
	r := &runner{cfg: &Config{Channel: "C", DB: 3}, socket: &wire.Socket{ID: idA, Login: wire.Login{Password: "secret"}}}
	queue := protocol.Queue{{ID: idB, Want: protocol.Exclusive}}
	for _, c := range []struct {
		command Command
		words   []string // some of what is written
	}{
		{Command{Op: Login, Naming: LockName}, []string{"HELLO", "AUTH", "secret", "C-lock-" + idA}},
		{Command{Op: Hello, Naming: IdleName}, []string{"HELLO", "tether-idle"}},
		{Command{Op: Auth}, []string{"AUTH", "secret"}},
		{Command{Op: Select}, []string{"SELECT", "3"}},
		{Command{Op: Subscribe, Channel: "R"}, []string{"SUBSCRIBE", "R"}},
		{Command{Op: Unsubscribe, Channel: "R"}, []string{"UNSUBSCRIBE", "R"}},
		{Command{Op: Count}, []string{"PUBSUB", "NUMSUB", "C"}},
		{Command{Op: CountAndDraw}, []string{"EVALSHA", "C-fence", "C"}},
		{Command{Op: CountAndDraw, Text: true}, []string{"EVAL", "C-fence", "C"}},
		{Command{Op: ProbeAndDraw, Ping: &protocol.Ping{Response: "R"}}, []string{"EVALSHA", "C-fence", `"response_channel":"R"`}},
		{Command{Op: Poll}, []string{"NUMSUB", "C", channelsOfB.waiters}},
		{Command{Op: CountWaiters, Queue: queue}, []string{"NUMSUB", channelsOfB.wake}},
		{Command{Op: Probe, Ping: &protocol.Ping{Response: "R"}}, []string{"EVALSHA", `"response_channel":"R"`}},
		{Command{Op: SelfPing, Ping: &protocol.Ping{Response: "R"}}, []string{"PUBLISH", "C", `"response_channel":"R"`}},
		{Command{Op: Answer, Channel: "R", Record: &protocol.Record{ID: idA, Mode: protocol.Exclusive}, Queue: queue}, []string{"PUBLISH", "R", idA, idB}},
		{Command{Op: Wake, Queue: queue}, []string{"EVALSHA", idB}},
		{Command{Op: Wake, Queue: queue, Text: true}, []string{"EVAL", idB}},
		{Command{Op: WakeReaders}, []string{"PUBLISH", channelsOfB.waiters, "shared"}},
		{Command{Op: List}, []string{"CLIENT", "LIST"}},
		{Command{Op: Kill, Num: 42}, []string{"CLIENT", "KILL", "ID", "42"}},
	} {
		written := string(r.encode(nil, c.command))
		for _, word := range c.words {
			require.Contains(t, written, word, "%v", c.command.Op)
		}
	}
	require.Empty(t, r.encode(nil, Command{Op: Op(99)}))
}

package wire

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// clientLine is a line of CLIENT LIST in Redis 7.0.
func clientLine(num int64, name string, subs int) string {
	return fmt.Sprintf("id=%d addr=127.0.0.1:%d laddr=127.0.0.1:6379 fd=8 name=%s age=5 idle=0 flags=P db=0 sub=%d psub=0 "+
		"ssub=0 multi=-1 qbuf=0 qbuf-free=20474 argv-mem=0 multi-mem=0 rbs=1024 rbp=0 obl=0 oll=0 omem=0 tot-mem=22296 "+
		"events=r cmd=subscribe user=default redir=-1 resp=3\n", num, 50_000+num, name, subs)
}

// wantClient is the Client that a clientLine is parsed into.
func wantClient(num int64, name string, subs int) Client {
	return Client{Num: num, Name: name, Addr: fmt.Sprintf("127.0.0.1:%d", 50_000+num), Subs: subs}
}

func TestParseClients(t *testing.T) {
	lock, hashed := ConnName("c", idA), ConnName("a b", idA)
	participant := wantClient(7, lock, 1)
	participant.HolderID = idA
	hashedParticipant := wantClient(7, hashed, 2)
	hashedParticipant.HolderID = idA
	legacy := wantClient(7, "c-lock", 1)
	legacy.Legacy = true
	for _, c := range []struct {
		name, channel, list string
		want                []Client
	}{
		{"nothing", "c", "", nil},
		{"blank lines", "c", "\n\r\n \n", nil},
		{"a participant", "c", clientLine(7, lock, 1), []Client{participant}},
		{"a participant of a hashed channel", "a b", clientLine(7, hashed, 2), []Client{hashedParticipant}},
		{"a legacy one", "c", clientLine(7, "c-lock", 1), []Client{legacy}},
		{"several", "c", clientLine(7, lock, 1) + clientLine(8, "", 1) + clientLine(9, "c-lock-b", 3),
			[]Client{participant, wantClient(8, "", 1), wantClient(9, "c-lock-b", 3)}},

		{"subscribed to nothing", "c", clientLine(7, lock, 0) + clientLine(8, "c-lock", 0) + clientLine(9, "", 0), nil},
		{"subscribed to patterns only", "c", "id=7 addr=a:1 name=" + lock + " sub=0 psub=3\n", nil},
		{"an idle socket", "c", clientLine(7, IdleName, 2), nil},
		{"a longer name than an idle one's", "c", clientLine(7, IdleName+"s", 2), []Client{wantClient(7, IdleName+"s", 2)}},
		{"a participant of another channel", "c", clientLine(7, ConnName("d", idA), 1), nil},
		{"of a longer channel", "c", clientLine(7, "c-lock-b-lock-"+idA, 1) + clientLine(8, "x"+lock, 1), nil},
		{"of a hashed channel", "c", clientLine(7, hashed, 1), nil},
		{"of another hashed channel", "a c", clientLine(7, hashed, 1), nil},
		{"of a plain one", "a b", clientLine(7, lock, 1), nil},
		{"a hashed channel has no legacy name", "a b", clientLine(7, "", 1) + clientLine(8, "a", 1), []Client{wantClient(7, "", 1), wantClient(8, "a", 1)}},
		{"another's legacy name", "c", clientLine(7, "d-lock", 1), []Client{wantClient(7, "d-lock", 1)}},
		{"almost a participant", "c", clientLine(7, lock+"0", 1) + clientLine(8, strings.ToUpper(lock), 1) + clientLine(9, "c-hold-"+idA, 1),
			[]Client{wantClient(7, lock+"0", 1), wantClient(8, strings.ToUpper(lock), 1), wantClient(9, "c-hold-"+idA, 1)}},
		{"almost a hashed one", "c", clientLine(7, hashed[1:], 1) + clientLine(8, "tether-"+idA+"-hold-"+idA, 1),
			[]Client{wantClient(7, hashed[1:], 1), wantClient(8, "tether-"+idA+"-hold-"+idA, 1)}},

		{"a name with =", "c", clientLine(7, "a=b=", 1) + clientLine(8, "sub=0", 1) + clientLine(9, "=", 1),
			[]Client{wantClient(7, "a=b=", 1), wantClient(8, "sub=0", 1), wantClient(9, "=", 1)}},
		{"a channel with =", "a=b", clientLine(7, ConnName("a=b", idA), 1),
			[]Client{{Num: 7, HolderID: idA, Name: ConnName("a=b", idA), Addr: "127.0.0.1:50007", Subs: 1}}},
		{"a later server", "c", "lib-name=x id=9223372036854775807 new sub=1 =x watch=0 name=" + lock + " addr=[::1]:5 \n",
			[]Client{{Num: 1<<63 - 1, HolderID: idA, Name: lock, Addr: "[::1]:5", Subs: 1}}},
		{"no address", "c", "id=7 sub=1", []Client{{Num: 7, Subs: 1}}},
		{"a socket file", "c", "id=7 addr=/tmp/my redis.sock:0 name= sub=1\n", []Client{{Num: 7, Addr: "/tmp/my", Subs: 1}}},
		{"other line breaks", "c", "id=7 sub=1 name=x\r\nid=8 name=y sub=1\r\n",
			[]Client{{Num: 7, Name: "x", Subs: 1}, {Num: 8, Name: "y", Subs: 1}}},
		{"no number", "c", "sub=1 name=x\nid= sub=1\nid=x sub=1\nid=-1 sub=1\nid=0 sub=1\nid=1.5 sub=1\nid=9223372036854775808 sub=x\nid sub=1\n",
			nil},
		{"no count", "c", "id=7 name=x\nid=8 sub=\nid=9 sub=x\nid=10 sub=-1\n", nil},
		{"junk", "c", "\x00\xff\nid=7 sub=1 name=\xff\nERR\n", []Client{{Num: 7, Name: "\xff", Subs: 1}}},
		{"cut off", "c", clientLine(7, lock, 1) + clientLine(8, lock, 1)[:60], []Client{participant}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, ParseClients(c.channel, c.list))
		})
	}
}

// ParseClients and ParseConnName must agree about every name.
func TestParseClientsKnowsEveryChannel(t *testing.T) {
	for _, c := range channels {
		for _, other := range channels {
			clients := ParseClients(c, clientLine(7, ConnName(other, idA), 1))
			if c != other {
				require.Empty(t, clients, "%q %q", c, other)
				continue
			}
			require.Len(t, clients, 1)
			id, ok := ParseConnName(c, clients[0].Name)
			require.True(t, ok)
			require.Equal(t, id, clients[0].HolderID)
		}
		if legacy := LegacyConnName(c); legacy != "" {
			require.True(t, ParseClients(c, clientLine(7, legacy, 1))[0].Legacy)
		}
	}
}

// The channel is hashed once, not for each line of a long list.
func TestParseClientsOfALongList(t *testing.T) {
	var list strings.Builder
	for i := range int64(10_000) {
		list.WriteString(clientLine(1+i, ConnName("a b", idA), 1))
	}
	channel := strings.Repeat(" ", 1<<20)
	require.Less(t, taken(func() { require.Empty(t, ParseClients(channel, list.String())) }), uint64(16<<20))

	clients := ParseClients("a b", list.String())
	require.Len(t, clients, 10_000)
	require.Less(t, taken(func() { ParseClients("a b", list.String()) }), uint64(16<<20))
}

// The strings of a Client must not keep the whole list in memory.
func TestParseClientsKeepsNoList(t *testing.T) {
	list := strings.Clone(clientLine(7, ConnName("c", idA), 1))
	start := uintptr(unsafe.Pointer(unsafe.StringData(list)))
	c := ParseClients("c", list)[0]
	for _, s := range []string{c.HolderID, c.Name, c.Addr} {
		at := uintptr(unsafe.Pointer(unsafe.StringData(s)))
		require.False(t, start <= at && at < start+uintptr(len(list)), s)
	}
}

func FuzzParseClients(f *testing.F) {
	for _, c := range channels {
		if len(c) < 100 {
			f.Add(c, clientLine(7, ConnName(c, idA), 1)+clientLine(8, LegacyConnName(c), 1)+clientLine(9, IdleName, 1)+clientLine(10, "x", 0))
		}
	}
	f.Add("c", "id=7 sub=1\nid=8 name=a=b sub=99999999999999999999\r\n\nid=9")
	f.Fuzz(func(t *testing.T, channel, list string) {
		clients := ParseClients(channel, list)
		require.LessOrEqual(t, len(clients), strings.Count(list, "\n")+1)
		for _, c := range clients {
			require.Positive(t, c.Num)
			require.Positive(t, c.Subs)
			require.NotEqual(t, IdleName, c.Name)
			id, ok := ParseConnName(channel, c.Name)
			require.Equal(t, id, c.HolderID)
			legacy := LegacyConnName(channel)
			require.Equal(t, legacy != "" && c.Name == legacy, c.Legacy)
			require.Equal(t, ok, isConnName(c.Name), "participants of other channels are left out")
		}
	})
}

func BenchmarkParseClients(b *testing.B) {
	list := strings.Repeat(clientLine(7, ConnName("c", idA), 1)+clientLine(8, "web", 1)+clientLine(9, ConnName("d", idA), 1), 100)
	b.ReportAllocs()
	for b.Loop() {
		ParseClients("c", list)
	}
}

package actor

// The mutations of the model: each takes away something that the machine relies
// on.
const (
	countAndPingSplit = "count and ping in two steps"
	idKeptAcrossDials = "a holder id kept across dials"
	tokenOnOtherConn  = "the token drawn on another connection"
	silentResubscribe = "a resubscribing holder"
)

var mutations = []mutation{
	{name: countAndPingSplit, by: "TestSmallWorlds/4.[12]"},
	{name: idKeptAcrossDials},
	{name: tokenOnOtherConn, by: "TestSmallWorlds/fenced"},
	{name: silentResubscribe},
	{
		name: "grant without confirm", file: "actor/probe.go",
		old: "\t\tm.becomeElected()\n\t\tm.sendProbe(confirming)\n", new: "\t\tm.becomeElected()\n\t\tm.grant()\n",
	},
	{
		name: "confirm before promote", by: "TestSmallWorlds/4.1", file: "actor/probe.go",
		old: "\t\tm.mode = protocol.Exclusive\n\t\tm.becomeElected()\n", new: "\t\tm.becomeElected()\n",
	},
	{
		name: "a count taken before the subscription", file: "actor/attempt.go",
		old: "Command{Op: Subscribe, Channel: m.cfg.Channel}, m.count())\n\tm.send(append(list, hello)...)",
		new: "m.count(), Command{Op: Subscribe, Channel: m.cfg.Channel})\n\tm.send(append(list, hello)...)\n\tm.link.find(m.cfg.Channel).confirmed = true",
	},
	{
		name: "a count taken after a refused subscription", file: "actor/link.go",
		old: "\tcase Auth, Answer, WakeReaders:\n", new: "\tcase Subscribe:\n\t\tm.link.subs[0].confirmed = true\n\tcase Auth, Answer, WakeReaders:\n",
	},
	{
		name: "a grant by a replica", file: "actor/probe.go",
		old: "\tcase f != nil:\n\t\tm.fail(f)\n", new: "",
	},
	{
		name: "a role from before the probe", file: "actor/probe.go",
		old: "\tcase m.probe.staleHellos > 0:\n\t\tm.probe.staleHellos--\n", new: "",
	},
	{
		name: "a reply counted twice", by: "TestTranscripts", file: "actor/probe.go",
		old: "func(o protocol.Record) bool { return o.ID == r.ID }); i >= 0 {",
		new: "func(o protocol.Record) bool { return o.ID == r.ID }); i >= len(m.probe.records) {",
	},
	{
		name: "a record with an old mode", by: "TestSmallWorlds/4.1", file: "actor/probe.go",
		old: "\t\t\tm.claimHold()\n", new: "",
	},
	{
		name: "inconclusive read as free", file: "actor/probe.go",
		old: "case 1+len(p.records) < p.n && !m.lostToSome():", new: "case p.n < 0:",
	},
	{
		name: "a higher 4.1 pending ignored", by: "TestSmallWorlds/4.1", file: "protocol/confirm.go",
		old: "\tcase r.isPre42():\n\t\t// Its id", new: "\tcase false:\n\t\t// Its id",
	},
	{
		name: "prefix reap", file: "wire/clients.go",
		old: "case named && validHolderID(id):", new: "case named:",
	},
	{
		name: "reaping who joined after the ping", file: "actor/reaper.go",
		old: "\tif r.listed {\n", new: "\tif false {\n",
	},
	{
		name: "reaping after one ping", file: "actor/reaper.go",
		old: "\tcase r.pings < 2:\n", new: "\tcase r.pings < 1:\n",
	},
	{
		name: "reaping oneself", file: "actor/reaper.go",
		old: "func(c Connection) bool { return c.ID == m.link.id })", new: "func(c Connection) bool { return false })",
	},
	{
		name: "a loss that is not reported", file: "actor/link.go",
		old: "\t\tm.lose(err)\n", new: "",
	},
	{
		name: "no answer while leaving", file: "actor/probe.go",
		old: "case p.ID == m.link.id ||", new: "case m.phase == leaving || p.ID == m.link.id ||",
	},
	{
		name: "a wake that is not passed on", file: "actor/queue.go",
		old: "\t\tm.passQueue(slices.Clone(w.Queue))\n", new: "",
	},
	{
		name: "a releaser without a place in the queue", by: "TestTurns", file: "actor/machine.go",
		old: "\tif m.link.queued && !m.calls[0].Try {\n", new: "\tif false {\n",
	},
	{
		name: "a queue that is not handed over", file: "actor/depart.go",
		old: "\tcase d.mustPassQueue, d.final() && m.current.carriesWake:\n\t\tm.passQueue(m.queue)\n",
		new: "\tcase d.mustPassQueue, d.final() && m.current.carriesWake:\n",
	},
	{
		name: "a joining reader ignored", by: "TestSmallWorlds/reader", file: "protocol/elect.go",
		old: "case r.Mode == Shared:\n", new: "case r.Mode == Shared && !r.Joining:\n",
		also: &mutation{
			file: "protocol/confirm.go",
			old:  "\t\treturn Again\n\t}\n\t// It holds without", new: "\t\treturn Granted\n\t}\n\t// It holds without",
		},
	},
}

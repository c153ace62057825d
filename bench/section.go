package main

// section is one part of the run.
type section struct {
	name, title string
	work        string
	run         func(b *bench, c *chapter) error
}

func sections() []section {
	return []section{
		{"alone", "Alone", "One goroutine acquires and releases, warm: the same name again and again, and 64 names in turn.", alone},
		{"one-shot", "One-shot", "The same through the call for names that are used once (`client.Acquire`), a new name each time, beside a lock that is kept.", oneShot},
		{"many", "Alone, 32 goroutines", "32 goroutines acquire and release, each a name of its own, in one process.", many},
		{"cold", "Cold", "The first acquire of a new client, with all that it dials and says before.", cold},
		{"hand-over", "Hand-over", "One process holds, another has been waiting for a while: from the call of the release to the grant.", handOver},
		{"crowd", "Crowd", "64 contenders for one lock with nothing to do in it: (a) in one process, each with a lock of its own; (b) in one process with one `*Lock`; (c) in 8 processes. The fairness is Jain's index of the contenders' counts.", crowdSection},
		{"crash", "Crash", "The holder's process is killed while 1 and 16 wait: from the kill to a waiter's grant.", crash},
		{"frozen", "Frozen", "The holder's process is stopped (SIGSTOP) while another waits: until the waiter's grant.", frozen},
		{"loss", "Loss", "The server ends the holder's connection (CLIENT KILL): until `Lost()` is closed.", loss},
		{"holding", "Holding", "A process takes many locks, 32 at the same time, and holds them.", holding},
		{"waiting", "Waiting", "Many wait in one process, each with a client of its own, for a lock that another process holds.", waiting},
		{"growth", "Growth", "What more contenders and more readers cost. Each has a client of its own: those of one client stand in one line and cost nothing.", growth},
	}
}

func sectionNames() []string {
	var names []string
	for _, s := range sections() {
		names = append(names, s.name)
	}
	return names
}

package main

// section is one part of the run.
type section struct {
	name, title string
	about       string
	run         func(b *bench, c *reportSection) error
}

func sections() []section {
	return []section{
		{"alone", "Alone", "One goroutine acquires and releases, warm: the same name again and again, and 64 names in turn.", alone},
		{"one-shot", "One-shot", "The same through the call for names that are used once (`client.Acquire`), a new name each time, compared with a lock object that is kept.", oneShot},
		{"many", "Alone, 32 goroutines", "32 goroutines in one process acquire and release, each with a name of its own.", many},
		{"cold", "Cold", "The first acquire of a new client, including the dial and all commands before it.", cold},
		{"hand-over", "Hand-over", "One process holds the lock, another has been waiting for a while: from the call of the release to the grant.", handOver},
		{"crowd", "Crowd", "64 contenders for one lock, with an empty critical section: (a) in one process, each with a lock of its own; (b) in one process with one `*Lock`; (c) in 8 processes. Fairness is Jain's index of the contenders' counts.", crowdSection},
		{"crash", "Crash", "The holder's process is killed while 1 or 16 contenders wait: from the kill to a waiter's grant.", crash},
		{"frozen", "Frozen", "The holder's process is stopped (SIGSTOP) while another waits: from the stop to the waiter's grant.", frozen},
		{"loss", "Loss", "The server kills the holder's connection (CLIENT KILL): from the kill until `Lost()` is closed.", loss},
		{"holding", "Holding", "A process acquires many locks, 32 at the same time, and holds them.", holding},
		{"waiting", "Waiting", "Many waiters in one process, each with a client of its own, wait for a lock that another process holds.", waiting},
		{"growth", "Growth", "The cost of more contenders and of more readers. Each has a client of its own: contenders of one client wait in its local queue and cost nothing.", growth},
	}
}

func sectionNames() []string {
	var names []string
	for _, s := range sections() {
		names = append(names, s.name)
	}
	return names
}

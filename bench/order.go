package main

// order is what a worker is told, a line of JSON on its standard input. The
// Python worker understands those of doAlone, doCold, doAcquire, doRelease,
// doCrowd and doAwait.
type order struct {
	Call int    `json:"call"`
	Do   string `json:"do"`
	Name string `json:"name,omitempty"`
	// Names are how many names a loop goes round, 0 for a new one each time.
	Names int `json:"names,omitempty"`
	// Once asks for the call that a library has for names that are used once.
	Once bool `json:"once,omitempty"`
	// Ops are how often, and Users how many at the same time.
	Ops   int `json:"ops,omitempty"`
	Users int `json:"users,omitempty"`
	// Each is what each user has for itself.
	Each standing `json:"each,omitempty"`
	// Begin and End are times of the machine's clock.
	Begin int64 `json:"begin,omitempty"`
	End   int64 `json:"end,omitempty"`
}

// standing is what each of several users has for itself: nothing, a lock, or a
// client, as if it were on another machine.
type standing string

const (
	ownNothing standing = ""
	ownLock    standing = "lock"
	ownClient  standing = "client"
)

// The orders.
const (
	// doAlone acquires and releases again and again: Took.
	doAlone = "alone"
	// doMany is the same by many users, each with a name of its own, from Begin
	// to End: Counts.
	doMany = "many"
	// doCold opens a client and acquires, again and again: Took.
	doCold = "cold"
	// doAcquire waits for the lock: At. doRelease gives it back: Began and At.
	doAcquire = "acquire"
	doRelease = "release"
	// doCrowd lets users contend for one lock, from Begin to End: Counts.
	doCrowd = "crowd"
	// doAwait lets users wait for one lock: At of the first grant. Then all
	// leave.
	doAwait = "await"
	// doHold takes many names and keeps them: Took is the time for all.
	doHold = "hold"
	// doRead takes one name with many readers and keeps it.
	doRead = "read"
	// doWait lets many users wait for one name until doFree.
	doWait = "wait"
	// doFree ends all that doHold, doRead and doWait have begun.
	doFree = "free"
	// doProbe looks who holds the lock: Took.
	doProbe = "probe"
	// doLose has the connection of a hold ended: Took until the loss is told.
	doLose = "lose"
	// doUsage tells what the process uses.
	doUsage = "usage"
)

// answer is a line on a worker's standard output.
type answer struct {
	Call   int     `json:"call"`
	Error  string  `json:"error,omitempty"`
	Took   []int64 `json:"took,omitempty"` // nanoseconds
	Counts []int   `json:"counts,omitempty"`
	Began  int64   `json:"began,omitempty"`
	At     int64   `json:"at,omitempty"`
	Usage  usage   `json:"usage,omitzero"`
}

// usage is what a process uses at one moment.
type usage struct {
	Memory     int64 `json:"memory"` // heap that lives, and stacks
	Goroutines int64 `json:"goroutines"`
	Processor  int64 `json:"processor"` // nanoseconds so far
	Sent       int64 `json:"sent"`      // commands so far
}

// setup is what a worker is started with.
type setup struct {
	Peer  string `json:"peer"`
	Place place  `json:"place"`
	Count bool   `json:"count"`
}

package main

// request is a line of JSON on a worker's standard input. The Python worker knows
// the tasks taskAlone, taskCold, taskAcquire, taskRelease, taskCrowd and
// taskAwait.
type request struct {
	Call int    `json:"call"` // the number that the response repeats
	Task string `json:"task"`
	Name string `json:"name,omitempty"`
	// Names is how many names a loop uses in turn; 0 is a new name each time.
	Names int `json:"names,omitempty"`
	// Once selects the library's call for names that are used once, if it has one.
	Once bool `json:"once,omitempty"`
	// Ops is the number of operations, Users the number of concurrent users.
	Ops       int       `json:"ops,omitempty"`
	Users     int       `json:"users,omitempty"`
	Isolation isolation `json:"isolation,omitempty"`
	// Begin and End are times of the machine's clock.
	Begin int64 `json:"begin,omitempty"`
	End   int64 `json:"end,omitempty"`
}

// isolation is what each user has of its own: nothing, a lock, or a client as on
// another machine.
type isolation string

const (
	sharedLock isolation = ""
	ownLock    isolation = "lock"
	ownClient  isolation = "client"
)

// Tasks, each with the fields of its response.
const (
	// taskAlone acquires and releases Ops times: Took.
	taskAlone = "alone"
	// taskMany does the same with many users, each with a name of its own, from
	// Begin to End: Counts.
	taskMany = "many"
	// taskCold opens a client and acquires, Ops times: Took.
	taskCold = "cold"
	// taskAcquire waits for the lock: At. taskRelease releases it: Began and At.
	taskAcquire = "acquire"
	taskRelease = "release"
	// taskCrowd lets users contend for one lock, from Begin to End: Counts.
	taskCrowd = "crowd"
	// taskAwait lets users wait for one lock until the first grant: At. Then all
	// give up.
	taskAwait = "await"
	// taskHold acquires many names and holds them: Took is the time for all.
	taskHold = "hold"
	// taskRead acquires one name with many readers and holds it: Took.
	taskRead = "read"
	// taskWait lets many users wait for one name until taskReleaseAll.
	taskWait = "wait"
	// taskReleaseAll ends what taskHold, taskRead and taskWait have begun.
	taskReleaseAll = "free"
	// taskProbe probes the lock: Took.
	taskProbe = "probe"
	// taskLose has the server kill the connection of a hold: Took is the time until
	// the loss is reported.
	taskLose = "lose"
	// taskUsage reports what the process uses: Usage.
	taskUsage = "usage"
)

// response is a line on a worker's standard output.
type response struct {
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
	Memory     int64 `json:"memory"` // live heap and stacks
	Goroutines int64 `json:"goroutines"`
	Processor  int64 `json:"processor"` // nanoseconds so far
	Sent       int64 `json:"sent"`      // commands so far
}

// setup is what a worker is started with.
type setup struct {
	Peer      string    `json:"peer"`
	Endpoints endpoints `json:"endpoints"`
	Count     bool      `json:"count"`
}

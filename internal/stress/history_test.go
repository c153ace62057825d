package stress

import (
	"bytes"
	"encoding/json"
	"os"
	"time"
)

// kind is what an entry of the history tells.
type kind string

// What workers tell.
const (
	started kind = "start" // a worker process is at work
	begin   kind = "begin" // a hold was granted, and the work under it begins
	end     kind = "end"   // the work is over, and the release comes next
	lost    kind = "lost"  // the hold was lost at Then, as its worker was told
	denied  kind = "held"  // a try met a holder
	gaveUp  kind = "gave up"
	failed  kind = "failed" // a try ended because of the server, or undecided
	trouble kind = "trouble"
	stall   kind = "stall" // the process has not run since Then
	left    kind = "left"  // a worker has ended, and left nothing behind
)

// What the store tells.
const (
	accepted kind = "accept"
	refused  kind = "refuse"
)

// What the tormentor tells. Whatever has no moment of its own has an entry
// before and one after it.
const (
	stop     kind = "stop" // SIGSTOP comes next
	cont     kind = "cont" // SIGCONT has been sent
	kill     kind = "kill" // SIGKILL comes next
	gone     kind = "gone"
	cutting  kind = "cutting" // the connection with the holder id ID
	cut      kind = "cut"     // it was ended, or not found when N is 0
	down     kind = "down"    // SIGKILL for the server comes next
	dead     kind = "dead"
	up       kind = "up"
	pausing  kind = "pausing" // a pause of N nanoseconds, for what Text says
	paused   kind = "paused"  // it has begun
	flushed  kind = "flush"
	unlearnt kind = "script flush"
)

// The modes of holds.
const (
	writer = "writer"
	reader = "reader"
)

// entry is one line of the history.
type entry struct {
	// At is when it was written, by the one clock of the machine.
	At   time.Duration
	Kind kind
	// Who is a worker process: "w3.2" is the second life of the third worker.
	Who string `json:",omitempty"`
	// Lock, Hold and Mode are of a hold; Hold numbers those of a process.
	Lock string `json:",omitempty"`
	Hold int    `json:",omitempty"`
	Mode string `json:",omitempty"`
	// Token and ID are the hold's.
	Token int64  `json:",omitempty"`
	ID    string `json:",omitempty"`
	// Then is an earlier time: when the lock was asked for, when it was lost,
	// or when the process last ran.
	Then time.Duration `json:",omitempty"`
	// N is how long a wait could take, 0 for a try, or what its kind says.
	N    int64  `json:",omitempty"`
	Text string `json:",omitempty"`
}

// clock returns the time that all processes of the machine agree on.
func clock() time.Duration { return time.Duration(time.Now().UnixNano()) }

// journal is a file that several processes append to.
type journal struct{ file *os.File }

func openJournal(path string) (*journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &journal{f}, nil
}

// add appends an entry with the present time, in one write: so the order in
// the file is that of the writes. A line begins with its newline. A SIGKILL may
// tear a line in the middle, and then only that one is lost.
func (j *journal) add(e entry) {
	e.At = clock()
	line, err := json.Marshal(e)
	if err == nil {
		_, err = j.file.Write(append([]byte{'\n'}, line...))
	}
	if err != nil {
		panic(err) // without the history there is nothing to judge
	}
}

// readHistory returns the entries of a file, and how many lines are torn.
func readHistory(path string) (history []entry, torn int, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, err
	}
	for line := range bytes.SplitSeq(text, []byte{'\n'}) {
		var e entry
		switch {
		case len(line) == 0:
		case json.Unmarshal(line, &e) != nil:
			torn++
		default:
			history = append(history, e)
		}
	}
	return history, torn, nil
}

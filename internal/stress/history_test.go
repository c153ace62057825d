package stress

import (
	"bytes"
	"encoding/json"
	"os"
	"time"
)

// kind says what an entry of the history is about.
type kind string

// Entries of workers.
const (
	started     kind = "start"        // a worker process has started
	begin       kind = "begin"        // a hold was granted
	end         kind = "end"          // the release comes next
	lost        kind = "lost"         // the hold was lost, according to its LostError at Then
	denied      kind = "held"         // a try was refused
	cancelled   kind = "cancelled"    // an acquire ended with its context
	failed      kind = "failed"       // an acquire ended with an error that may pass; only a try may
	workerError kind = "worker error" // any other error
	stall       kind = "stall"        // the process did not run since Then; of no process: the machine
	finished    kind = "finished"     // a worker process ended in order
)

// Entries of the store.
const (
	accepted kind = "accept"
	refused  kind = "refuse"
)

// Entries of the fault injection. A fault that takes time has an entry before and
// one after it: its effect begins somewhere between them.
const (
	stopping       kind = "stopping"  // SIGSTOP comes next
	continued      kind = "continued" // SIGCONT has been sent
	killing        kind = "killing"   // SIGKILL comes next
	killed         kind = "killed"
	disconnecting  kind = "disconnecting"  // CLIENT KILL comes next, for the connection with the holder id ID
	disconnected   kind = "disconnected"   // N is 0 if the connection was gone before
	serverKilling  kind = "server killing" // SIGKILL for the server comes next
	serverKilled   kind = "server killed"
	serverStarted  kind = "server started"
	pausing        kind = "pausing" // CLIENT PAUSE comes next, for N nanoseconds and the commands in Text
	paused         kind = "paused"  // the pause has begun
	dataFlushed    kind = "data flushed"
	scriptsFlushed kind = "scripts flushed"
)

// The modes of holds.
const (
	writer = "writer"
	reader = "reader"
)

// entry is one line of the history.
type entry struct {
	// At is when the entry was written.
	At   time.Duration
	Kind kind
	// Who is a worker process: "w3.2" is the second process of worker w3.
	Who string `json:",omitempty"`
	// Lock, Mode, Token and ID are of a hold. Hold is its number in its process.
	Lock  string `json:",omitempty"`
	Hold  int    `json:",omitempty"`
	Mode  string `json:",omitempty"`
	Token int64  `json:",omitempty"`
	ID    string `json:",omitempty"`
	// Then is an earlier time: when the lock was asked for, when the hold was
	// lost, or when the process last ran.
	Then time.Duration `json:",omitempty"`
	// N of an acquire that got nothing is its time-out in nanoseconds, and 0 for
	// a try. Of a fault it is what the kind says.
	N    int64  `json:",omitempty"`
	Text string `json:",omitempty"`
}

// clock is the machine's clock. All processes read the same.
func clock() time.Duration { return time.Duration(time.Now().UnixNano()) }

// historyFile is a file to which several processes append entries.
type historyFile struct{ file *os.File }

func openHistory(path string) (*historyFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &historyFile{f}, nil
}

// add appends an entry with the current time, in one write, so that lines of
// several processes do not mix. The newline comes before the entry: if a SIGKILL
// cuts a line off, the next line is still on its own.
func (j *historyFile) add(e entry) {
	e.At = clock()
	line, err := json.Marshal(e)
	if err == nil {
		_, err = j.file.Write(append([]byte{'\n'}, line...))
	}
	if err != nil {
		panic(err) // a missing end entry, for example, would look like a violation
	}
}

// readHistory returns the entries of a file, and the number of lines that were cut
// off.
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

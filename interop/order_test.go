package interop

import "time"

// order is what a process is told, in one line of JSON.
type order struct {
	Call int    `json:"call"`
	Do   string `json:"do"`
	server
	lock
	attempt
	contest
}

// server is where the lock lives.
type server struct {
	Host string `json:"host,omitempty"`
	Port int    `json:"port,omitempty"`
}

// lock is what the process opens.
type lock struct {
	Channel       string  `json:"channel,omitempty"`
	Shared        bool    `json:"shared,omitempty"`
	Fenced        bool    `json:"fenced,omitempty"`
	SelfCheck     seconds `json:"self_check,omitempty"`
	Unavailable   seconds `json:"unavailable,omitempty"`
	CheckInterval seconds `json:"check_interval,omitempty"` // portalocker only, like the rest
	ThreadSleep   seconds `json:"thread_sleep,omitempty"`
	ID            string  `json:"id,omitempty"`
	Lend          bool    `json:"lend_connection,omitempty"`
}

// attempt is one acquire.
type attempt struct {
	Timeout seconds `json:"timeout,omitempty"`
	Try     bool    `json:"try,omitempty"`
}

// contest is a part in a soak.
type contest struct {
	Who     string  `json:"who,omitempty"`
	Journal string  `json:"journal,omitempty"`
	Seconds seconds `json:"seconds"`
	Readers float64 `json:"readers"`
	Hold    seconds `json:"hold"`
	Pause   seconds `json:"pause"`
	Style   string  `json:"style,omitempty"` // tether only
}

// seconds is a time as portalocker takes it.
type seconds float64

func (s seconds) duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// answer is a process's answer to an order, or an event if it has no call.
type answer struct {
	Call    int      `json:"call,omitempty"`
	Event   string   `json:"event,omitempty"`
	Outcome string   `json:"outcome,omitempty"`
	Text    string   `json:"text,omitempty"`
	Version string   `json:"version,omitempty"`
	ID      string   `json:"id,omitempty"`
	Token   int64    `json:"token,omitempty"`
	Lost    bool     `json:"lost,omitempty"`
	Members []member `json:"members,omitempty"`
}

// The outcomes of an order.
const (
	done    = "done"
	granted = "granted"
	refused = "refused"
	failed  = "error"
)

// member is a participant, as a probe shows it.
type member struct {
	ID      string `json:"id"`
	Mode    string `json:"mode"`
	Legacy  bool   `json:"legacy"`
	Elected bool   `json:"elected"`
}

package interop

import "time"

// request is a request to a process, one line of JSON.
type request struct {
	Call int    `json:"call"`
	Do   string `json:"do"`
	serverParams
	lock
	acquireParams
	contendParams
}

// serverParams are the parameters of "connect".
type serverParams struct {
	Host string `json:"host,omitempty"`
	Port int    `json:"port,omitempty"`
}

// lock are the parameters of "open".
type lock struct {
	Channel        string  `json:"channel,omitempty"`
	Shared         bool    `json:"shared,omitempty"`
	Fenced         bool    `json:"fenced,omitempty"`
	SelfCheck      seconds `json:"self_check,omitempty"`
	Unavailable    seconds `json:"unavailable,omitempty"`
	CheckInterval  seconds `json:"check_interval,omitempty"` // portalocker only, like the rest
	ThreadSleep    seconds `json:"thread_sleep,omitempty"`
	ID             string  `json:"id,omitempty"`
	LendConnection bool    `json:"lend_connection,omitempty"`
}

// acquireParams are the parameters of "acquire".
type acquireParams struct {
	Timeout seconds `json:"timeout,omitempty"`
	Try     bool    `json:"try,omitempty"`
}

// contendParams are the parameters of "contend", which is for soaks.
type contendParams struct {
	Who     string  `json:"who,omitempty"`
	History string  `json:"history,omitempty"`
	Seconds seconds `json:"seconds"`
	Readers float64 `json:"readers"`
	Hold    seconds `json:"hold"`
	Pause   seconds `json:"pause"`
	Style   string  `json:"style,omitempty"` // tether only
}

// seconds is a duration in portalocker's unit.
type seconds float64

func (s seconds) duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// response is the response to the request with the same Call. Without a Call it is
// an event.
type response struct {
	Call         int           `json:"call,omitempty"`
	Event        string        `json:"event,omitempty"`
	Outcome      string        `json:"outcome,omitempty"`
	Text         string        `json:"text,omitempty"`
	Version      string        `json:"version,omitempty"`
	ID           string        `json:"id,omitempty"`
	Token        int64         `json:"token,omitempty"`
	Lost         bool          `json:"lost,omitempty"`
	Participants []participant `json:"participants,omitempty"`
}

// The outcomes of a request.
const (
	done    = "done"
	granted = "granted"
	refused = "refused"
	failed  = "error"
)

// participant is what a probe shows of a participant.
type participant struct {
	ID      string `json:"id"`
	Mode    string `json:"mode"`
	Legacy  bool   `json:"legacy"`
	Elected bool   `json:"elected"`
}

package tether

import (
	"log/slog"

	"github.com/tetherlock/tether/actor"
)

// The keys of log records. [WithLogger] says what they mean.
const (
	keyLock       = "lock"
	keyLabel      = "label"
	keyHolder     = "holder"
	keyToken      = "token"
	keyWaited     = "waited"
	keyRoundTrips = "round_trips"
	keyRoundTrip  = "round_trip"
	keyHolders    = "holders"
	keySilent     = "silent"
	keyPlace      = "place"
	keyError      = "error"
	keyRetry      = "retry"
	keyAddr       = "addr"
	keyDropped    = "dropped"
	keyPanic      = "panic"
	keyStack      = "stack"
)

// severity is the level that an event is logged at. It comes from the machine's event,
// so that one which is not logged costs no translation.
func severity(e actor.Event) slog.Level {
	switch e := e.(type) {
	case actor.Reaped, actor.ReapDenied, actor.Lost:
		return slog.LevelWarn
	case actor.Checked:
		if e.Err != nil {
			return slog.LevelWarn
		}
	}
	return slog.LevelDebug
}

// described is the message and the attributes of an event in the log. Attributes
// without a value are zero.
func described(e Event) (message string, attrs []slog.Attr) {
	switch e := e.(type) {
	case AttemptEvent:
		return "attempt", nil
	case AttemptFailedEvent:
		return "attempt failed", []slog.Attr{given(keyError, e.Err), given(keyRetry, e.Retry)}
	case WaitingEvent:
		return "waiting", []slog.Attr{listed(e.Holders), given(keySilent, e.Silent), given(keyPlace, e.Place)}
	case ElectedEvent:
		return "elected", nil
	case DemotedEvent:
		return "demoted", nil
	case GrantedEvent:
		return "granted", []slog.Attr{given(keyHolder, e.HolderID), given(keyToken, e.Token),
			slog.Int(keyRoundTrips, e.RoundTrips), slog.Duration(keyWaited, e.Waited)}
	case ReapedEvent:
		return "reaped", []slog.Attr{slog.String(keyHolder, e.Holder.name()), given(keyAddr, e.Holder.Addr)}
	case ReapDeniedEvent:
		return "reap denied", []slog.Attr{given(keyError, e.Err)}
	case HealthEvent:
		return "health", []slog.Attr{given(keyRoundTrip, e.RoundTrip), given(keyError, e.Err)}
	case LostEvent:
		return "lock lost", []slog.Attr{given(keyHolder, e.Err.HolderID), given(keyError, e.Err.cause)}
	case ReleasedEvent:
		return "released", []slog.Attr{given(keyHolder, e.HolderID), given(keyError, e.Err)}
	case DroppedEvent:
		return "events dropped", []slog.Attr{slog.Int(keyDropped, e.Count)}
	}
	return "", nil
}

// given is an attribute, or none for a zero value.
func given[T comparable](key string, value T) slog.Attr {
	var zero T
	if value == zero {
		return slog.Attr{}
	}
	return slog.Any(key, value)
}

func listed(holders []Holder) slog.Attr {
	if len(holders) == 0 {
		return slog.Attr{}
	}
	words := make([]string, len(holders))
	for i, h := range holders {
		words[i] = h.String()
	}
	return slog.Any(keyHolders, words)
}

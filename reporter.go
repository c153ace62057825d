package tether

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/tetherlock/tether/internal/dispatch"
)

// reporter is the observer and the logger of a client. A nil reporter has neither.
type reporter struct {
	observer func(Event)
	log      *slog.Logger
	*dispatch.Dispatcher[report]
}

// report is an event on its way. Label is that of the lock.
type report struct {
	event Event
	level slog.Level
	label string
}

func newReporter(o clientOptions, ending <-chan struct{}) *reporter {
	if o.observer == nil && !o.logger.Enabled(context.Background(), slog.LevelError) {
		return nil
	}
	r := &reporter{observer: o.observer, log: o.logger}
	r.Dispatcher = dispatch.New(r.deliver, ending)
	return r
}

// wants says whether anybody takes events of this level.
func (r *reporter) wants(level slog.Level) bool {
	return r != nil && (r.observer != nil || r.log.Enabled(context.Background(), level))
}

func (r *reporter) deliver(n report) {
	r.record(n)
	r.observe(n.event)
}

func (r *reporter) observe(e Event) {
	if r.observer == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			logPanic(r.log, "panic in an observer", p, slog.String(keyLock, e.info().Name))
		}
	}()
	r.observer(e)
}

// record logs an event with the time at which it happened. A panic in the handler
// is dropped: the logger, which would be told, is what panics.
func (r *reporter) record(n report) {
	defer func() { _ = recover() }()
	ctx := context.Background()
	if !r.log.Enabled(ctx, n.level) {
		return
	}
	info := n.event.info()
	message, attrs := described(n.event)
	line := slog.NewRecord(info.At, n.level, message, 0)
	line.AddAttrs(slog.String(keyLock, info.Name))
	for _, a := range append([]slog.Attr{given(keyLabel, n.label)}, attrs...) {
		if a.Key != "" {
			line.AddAttrs(a)
		}
	}
	_ = r.log.Handler().Handle(ctx, line) // slog's own loggers ignore this error too
}

// logPanic logs what was recovered. A handler may panic as well.
func logPanic(log *slog.Logger, message string, recovered any, attrs ...slog.Attr) {
	defer func() { _ = recover() }()
	attrs = append(attrs, slog.String(keyPanic, fmt.Sprint(recovered)), slog.String(keyStack, string(debug.Stack())))
	log.LogAttrs(context.Background(), slog.LevelError, message, attrs...)
}

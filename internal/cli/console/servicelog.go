package console

import "log/slog"

// ServiceLogger writes for machines: a service's log is read by others.
func (e *Env) ServiceLogger() *slog.Logger {
	level := slog.LevelInfo
	if e.Verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewJSONHandler(e.Err, &slog.HandlerOptions{Level: level, ReplaceAttr: readable}))
}

// readable writes durations with their unit: the handler's own form is a number
// of nanoseconds.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

package console

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// logHandler writes records of the log as lines for a person: "warning: MESSAGE
// (NAME VALUE, …): ERROR".
type logHandler struct {
	level slog.Level
	attrs []slog.Attr

	mu  *sync.Mutex
	out io.Writer
}

func newLogHandler(out io.Writer, level slog.Level) *logHandler {
	return &logHandler{level: level, mu: &sync.Mutex{}, out: out}
}

// Enabled implements slog.Handler.
func (h *logHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

// WithAttrs implements slog.Handler.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.attrs = append(slices.Clip(h.attrs), attrs...)
	return &next
}

// WithGroup implements slog.Handler. Names of groups are not shown.
func (h *logHandler) WithGroup(string) slog.Handler { return h }

// Handle implements slog.Handler.
func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	var details []string
	cause := ""
	add := func(a slog.Attr) bool {
		switch value := a.Value.Resolve().String(); {
		case value == "":
		case a.Key == "error":
			cause = ": " + value
		default:
			details = append(details, a.Key+" "+value)
		}
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	line := r.Message
	if len(details) > 0 {
		line += " (" + strings.Join(details, ", ") + ")"
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.out, "warning: "+Joined(line+cause)+"\n")
	return err
}

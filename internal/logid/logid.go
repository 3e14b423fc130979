// Package logid carries the ids of a request, a run or a task in a context, adds
// them to the log lines written with that context, and counts lines by level. With
// one id that its caller knows everything that happened to a run is found in the log.
package logid

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
)

type key struct{}

// With returns a context whose log lines have an id by a name, for example run. An
// empty id is left out; a later id of the same name replaces the earlier one.
func With(ctx context.Context, name, id string) context.Context {
	if id == "" {
		return ctx
	}
	ids := slices.DeleteFunc(slices.Clone(of(ctx)), func(a slog.Attr) bool { return a.Key == name })
	return context.WithValue(ctx, key{}, append(ids, slog.String(name, id)))
}

// Copy returns to with the ids of from: for work that outlives the request which
// asked for it.
func Copy(to, from context.Context) context.Context {
	for _, a := range of(from) {
		to = With(to, a.Key, a.Value.String())
	}
	return to
}

// Of returns an id of a context; "" if it has none of that name.
func Of(ctx context.Context, name string) string {
	for _, a := range of(ctx) {
		if a.Key == name {
			return a.Value.String()
		}
	}
	return ""
}

func of(ctx context.Context) []slog.Attr {
	ids, _ := ctx.Value(key{}).([]slog.Attr)
	return ids
}

// Handler passes lines on with the ids of their contexts.
type Handler struct {
	slog.Handler
	counts *counts
}

type counts struct{ warnings, errors atomic.Int64 }

// NewHandler returns a handler that passes lines on to another. One that is a Handler
// already is returned as it is.
func NewHandler(h slog.Handler) *Handler {
	if own, ok := h.(*Handler); ok {
		return own
	}
	return &Handler{h, &counts{}}
}

// Enabled counts warnings and errors even where they are not written.
func (h *Handler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || h.Handler.Enabled(ctx, level)
}

// Handle counts a line, and passes it on with the ids that it does not name itself.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error { //nolint:gocritic // the interface of slog
	h.count(r.Level)
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	if ids := of(ctx); len(ids) > 0 {
		r = r.Clone()
		r.AddAttrs(missing(&r, ids)...)
	}
	return h.Handler.Handle(ctx, r)
}

func (h *Handler) count(level slog.Level) {
	switch {
	case level >= slog.LevelError:
		h.counts.errors.Add(1)
	case level >= slog.LevelWarn:
		h.counts.warnings.Add(1)
	}
}

// missing returns the ids that a line does not have.
func missing(r *slog.Record, ids []slog.Attr) []slog.Attr {
	var has []string
	r.Attrs(func(a slog.Attr) bool { has = append(has, a.Key); return true })
	return slices.DeleteFunc(slices.Clone(ids), func(a slog.Attr) bool { return slices.Contains(has, a.Key) })
}

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Handler{h.Handler.WithAttrs(attrs), h.counts}
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	return &Handler{h.Handler.WithGroup(name), h.counts}
}

// Lines returns how many warnings and errors there were.
func (h *Handler) Lines() (warnings, errors int64) {
	return h.counts.warnings.Load(), h.counts.errors.Load()
}

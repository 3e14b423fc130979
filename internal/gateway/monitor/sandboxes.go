// Package monitor counts and logs what a gateway does with sandboxes, and what the
// process itself uses, for those who operate it. Labels are from fixed sets: never
// an id, and never a name that a client chooses.
package monitor

import (
	"context"
	"log/slog"
	"time"

	"github.com/atoll-run/atoll/internal/logid"
	"github.com/atoll-run/atoll/internal/metrics"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/tracing"
)

// listTimeout bounds how long a scrape asks the engines for their sandboxes, and
// listAge how old their answer may be.
const (
	listTimeout = 3 * time.Second
	listAge     = 5 * time.Second
)

// Sandboxes counts and logs the starts and the ends of a manager's sandboxes, and
// shows how many there are.
func Sandboxes(m *sandbox.Manager, all *sandbox.Listing, r *metrics.Registry, log *slog.Logger, tracer *tracing.Tracer) {
	s := &sandboxes{
		log:     log,
		tracer:  tracer,
		starts:  r.Counter("atoll_sandbox_starts_total", "Starts of sandboxes, by backend, verb (create, claim, pool, recreate, start, restart, resume, fork, refuse) and result (ok, failed, cancelled).", "backend", "verb", "result"),
		seconds: r.Histogram("atoll_sandbox_start_seconds", "Time until a sandbox was ready, by backend and verb.", metrics.Seconds(), "backend", "verb"),
		removed: r.Counter("atoll_sandboxes_removed_total", "Sandboxes that were removed, by backend.", "backend"),
	}
	m.Watch = s.watch
	r.Gauges("atoll_sandboxes", "Sandboxes that are registered, by backend, kind and state: running, stopped, paused, created, dead, or unknown if the engine does not say.", []string{"backend", "kind", "state"}, (&counter{all}).count)
}

type sandboxes struct {
	log     *slog.Logger
	tracer  *tracing.Tracer
	starts  *metrics.Counters
	seconds *metrics.Histograms
	removed *metrics.Counters
}

// watch counts and logs one start or end.
func (s *sandboxes) watch(ctx context.Context, a *sandbox.Activity) {
	backend, line := known(a.Backend), s.line(a)
	s.trace(ctx, a)
	switch {
	case a.Verb == sandbox.ActivityRemove:
		s.removed.With(backend).Inc()
		s.log.LogAttrs(ctx, slog.LevelInfo, "sandbox removed", append(line, slog.Duration("lived", a.Took))...)
	case a.Err != nil:
		s.starts.With(backend, a.Verb, result(ctx)).Inc()
		s.log.LogAttrs(ctx, slog.LevelWarn, "sandbox not started", append(line, slog.Duration("took", a.Took), slog.Any("error", a.Err))...)
	default:
		s.starts.With(backend, a.Verb, "ok").Inc()
		s.seconds.With(backend, a.Verb).Observe(a.Took.Seconds())
		s.log.LogAttrs(ctx, slog.LevelInfo, "sandbox started", append(line, slog.Duration("took", a.Took))...)
	}
}

// trace makes the span of a start that was for a run.
func (s *sandboxes) trace(ctx context.Context, a *sandbox.Activity) {
	if a.Verb == sandbox.ActivityRemove {
		return
	}
	s.tracer.Record(&tracing.Done{
		Name: "sandbox " + a.Verb, Run: logid.Of(ctx, "run"), Begun: a.Begun, Took: a.Took, Error: tracing.Code(a.Err, "sandbox_failed"),
		Attributes: tracing.Attributes{"atoll.sandbox": a.Name, "atoll.backend": a.Backend, "atoll.agent": a.Agent},
	})
}

func (s *sandboxes) line(a *sandbox.Activity) []slog.Attr {
	return []slog.Attr{slog.String("sandbox", a.Name), slog.String("verb", a.Verb), slog.String("backend", a.Backend), slog.String("agent", a.Agent), slog.String("account", a.Account)}
}

// result tells a start that its caller gave up from one that failed.
func result(ctx context.Context) string {
	if ctx.Err() != nil {
		return "cancelled"
	}
	return "failed"
}

// known returns the name of a backend, or other: the registry of an earlier release
// may hold any.
func known(backend string) string {
	switch backend {
	case "linux", "docker", "podman", "kubernetes":
		return backend
	}
	return "other"
}

// counter counts sandboxes by what their engines say.
type counter struct{ all *sandbox.Listing }

// count asks the engines. If the registry cannot be read there are no counts.
func (c *counter) count(set func(float64, ...string)) {
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
	defer cancel()
	all, err := c.all.Within(ctx, listAge)
	if err != nil {
		return
	}
	counts := map[[3]string]float64{}
	for i := range all {
		counts[[3]string{known(all[i].Backend), kind(all[i].Kind), state(all[i].State)}]++
	}
	for labels, n := range counts {
		set(n, labels[:]...)
	}
}

func kind(k sandbox.Kind) string {
	if k == sandbox.KindBrowser {
		return string(k)
	}
	return string(sandbox.KindSandbox)
}

func state(s sandbox.State) string {
	if s == "" {
		return "unknown"
	}
	return string(s)
}

package dashboardstage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/api"
)

const (
	traceRounds = 25
	mostTrace   = 1.05
)

// tracing measures runs of a gateway that sends traces and is scraped, in turn with one
// that does neither.
func (l *look) tracing(ctx context.Context) (err error) {
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer sink.Close()
	plain, err := newStage(ctx, l.Program)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plain.End()) }()
	traced, err := newStage(ctx, l.Program, "OTEL_EXPORTER_OTLP_ENDPOINT="+sink.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, traced.End()) }()
	var off, on []float64
	for round := range traceRounds + 1 {
		without, err := plain.short(ctx)
		if err != nil {
			return err
		}
		with, err := traced.short(ctx)
		if err != nil {
			return err
		}
		if err := traced.scrape(ctx); err != nil {
			return err
		}
		if round > 0 { // the first warms up
			off, on = append(off, without), append(on, with)
		}
	}
	l.add("a run", "ms", off...)
	l.add("a run that is traced", "ms", on...)
	l.claim("a run that is traced against one that is not, p50", middle(on)/middle(off), mostTrace)
	return nil
}

// short carries a run out and returns the milliseconds that it took.
func (s *stage) short(ctx context.Context) (float64, error) {
	start := time.Now()
	begun, err := s.Start(ctx, &api.RunRequest{GraphID: "short", Message: "be quick"}, "")
	if err != nil {
		return 0, err
	}
	_, err = s.Events(ctx, begun.ID, 0, func(api.Event) error { return nil })
	return time.Since(start).Seconds() * 1e3, err
}

// scrape reads the metrics, as Prometheus does.
func (s *stage) scrape(ctx context.Context) error {
	token, err := os.ReadFile(filepath.Join(s.State(), "gateway.token"))
	if err != nil {
		return err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+"/metrics", nil)
	if err != nil {
		return err
	}
	q.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(q)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err = io.Copy(io.Discard, answer.Body); err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("/metrics: %s", answer.Status)
	}
	return err
}

func middle(samples []float64) float64 {
	return slices.Sorted(slices.Values(samples))[len(samples)/2]
}

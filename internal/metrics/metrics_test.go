package metrics_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/metrics"
)

func TestExposition(t *testing.T) {
	var r metrics.Registry
	requests := r.Counter("atoll_requests_total", "Requests.", "dialect", "status")
	requests.With("chat", "200").Add(2)
	requests.With("chat", "200").Inc()
	requests.With(`a"b\c`+"\nd", "429").Inc()
	requests.With("chat", "200").Add(-5)
	r.Gauge("atoll_lag_bytes", "Lag.", func() float64 { return 1.5 })
	r.Gauges("atoll_boxes", "Boxes.", []string{"state"}, func(set func(float64, ...string)) { set(2, "up"); set(1, "down"); set(1, "up") })
	r.Totals("atoll_lines_total", "Lines.", nil, func(set func(float64, ...string)) { set(7) })
	h := r.Histogram("atoll_first_byte_seconds", "Time.", []float64{.1, 1}, "dialect")
	for _, v := range []float64{.05, .1, .5, 7} {
		h.With("chat").Observe(v)
	}
	answer := httptest.NewRecorder()
	r.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	want := `# HELP atoll_boxes Boxes.
# TYPE atoll_boxes gauge
atoll_boxes{state="down"} 1
atoll_boxes{state="up"} 3
# HELP atoll_first_byte_seconds Time.
# TYPE atoll_first_byte_seconds histogram
atoll_first_byte_seconds_bucket{dialect="chat",le="0.1"} 2
atoll_first_byte_seconds_bucket{dialect="chat",le="1"} 3
atoll_first_byte_seconds_bucket{dialect="chat",le="+Inf"} 4
atoll_first_byte_seconds_sum{dialect="chat"} 7.65
atoll_first_byte_seconds_count{dialect="chat"} 4
# HELP atoll_lag_bytes Lag.
# TYPE atoll_lag_bytes gauge
atoll_lag_bytes 1.5
# HELP atoll_lines_total Lines.
# TYPE atoll_lines_total counter
atoll_lines_total 7
# HELP atoll_requests_total Requests.
# TYPE atoll_requests_total counter
atoll_requests_total{dialect="a\"b\\c\nd",status="429"} 1
atoll_requests_total{dialect="chat",status="200"} 3
`
	if diff := cmp.Diff(want, answer.Body.String()); diff != "" {
		t.Error(diff)
	}
}

func TestLabelsAreBounded(t *testing.T) {
	var r metrics.Registry
	c := r.Counter("x", "X.", "model")
	var wg sync.WaitGroup
	for i := range 2000 {
		wg.Go(func() { c.With(fmt.Sprintf("%d-%s", i, strings.Repeat("m", 1000))).Inc() })
	}
	wg.Wait()
	var b strings.Builder
	if _, err := r.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "\n"); n > 600 || b.Len() > 200<<10 || !strings.Contains(b.String(), `{model="other"}`) {
		t.Errorf("%d lines, %d bytes", n, b.Len())
	}
}

func BenchmarkCounter(b *testing.B) {
	var r metrics.Registry
	c := r.Counter("x", "X.", "model", "status")
	b.ReportAllocs()
	for b.Loop() {
		c.With("gemini", "200").Inc()
	}
}

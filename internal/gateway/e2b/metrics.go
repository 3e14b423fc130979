package e2b

import (
	"net/http"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
)

// metric is what a sandbox uses at one time.
type metric struct {
	Timestamp     time.Time `json:"timestamp"`
	TimestampUnix int64     `json:"timestampUnix"`
	CPUCount      int       `json:"cpuCount"`
	CPUUsedPct    float64   `json:"cpuUsedPct"`
	MemUsed       int64     `json:"memUsed"`
	MemTotal      int64     `json:"memTotal"`
	MemCache      int64     `json:"memCache"`
	DiskUsed      int64     `json:"diskUsed"`
	DiskTotal     int64     `json:"diskTotal"`
}

// sample is the CPU time that a sandbox had used at a time.
type sample struct {
	at    time.Time
	cpuMs int64
}

// maxSamples bounds the samples that are kept.
const maxSamples = 4096

// metrics answers with what a sandbox uses now: no series is kept.
func (c *call) metrics() error {
	r, err := c.sandbox()
	if err != nil {
		return err
	}
	used, err := c.Made.Metrics(c.ctx(), r)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, []*metric{c.metricOf(r, used)})
}

// manyMetrics is refused: clients ask for one sandbox.
func (c *call) manyMetrics() error {
	return &fault{http.StatusNotImplemented, "metrics are those of one sandbox: /sandboxes/{sandboxID}/metrics"}
}

func (c *call) metricOf(r *sandboxes.Record, used *api.SandboxMetrics) *metric {
	m := &metric{
		Timestamp: used.At, TimestampUnix: used.At.Unix(), CPUCount: processors(used.CPUs), MemUsed: used.MemoryBytes, MemTotal: used.MemoryLimitBytes,
		DiskUsed: used.WorkspaceBytes, DiskTotal: used.WorkspaceLimitBytes,
	}
	before := c.sampled(r, used)
	if passed := used.At.Sub(before.at).Milliseconds(); passed > 0 && used.CPUMs >= before.cpuMs {
		m.CPUUsedPct = 100 * float64(used.CPUMs-before.cpuMs) / float64(passed) / float64(m.CPUCount)
	}
	return m
}

// sampled keeps the CPU time of a sandbox, and returns what was kept before, at first that
// it had used none when it was created.
func (c *call) sampled(r *sandboxes.Record, used *api.SandboxMetrics) sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, ok := c.samples[r.ID]
	if !ok {
		before = sample{at: r.Created}
	}
	if len(c.samples) >= maxSamples {
		clear(c.samples)
	}
	c.samples[r.ID] = sample{used.At, used.CPUMs}
	return before
}

// logs answers that none are kept.
func (c *call) logs() error {
	if _, err := c.sandbox(); err != nil {
		return err
	}
	return c.answer(http.StatusOK, map[string]any{"logs": []string{}, "logEntries": []string{}})
}

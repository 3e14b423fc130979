package metrics

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// maxSeries bounds the label values of one metric: callers that choose them
// could otherwise fill the memory. The others are counted under "other".
const maxSeries = 500

// Registry holds the metrics of one program.
type Registry struct {
	mu      sync.Mutex
	metrics []metric
}

type metric interface {
	describe() *description
	write(b []byte) []byte
}

type description struct{ name, help, kind string }

func (d *description) describe() *description { return d }

func (r *Registry) add(m metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.metrics = append(r.metrics, m)
}

// WriteTo writes all metrics in Prometheus's text format.
func (r *Registry) WriteTo(w io.Writer) (int64, error) {
	r.mu.Lock()
	all := slices.Clone(r.metrics)
	r.mu.Unlock()
	slices.SortFunc(all, func(a, b metric) int { return strings.Compare(a.describe().name, b.describe().name) })
	var b []byte
	for _, m := range all {
		d := m.describe()
		b = fmt.Appendf(b, "# HELP %s %s\n# TYPE %s %s\n", d.name, d.help, d.name, d.kind)
		b = m.write(b)
	}
	n, err := w.Write(b)
	return int64(n), err
}

// ServeHTTP answers a scrape.
func (r *Registry) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = r.WriteTo(w) // a scraper that left needs no answer
}

// family is the series of one metric, by the values of its labels.
type family[T any] struct {
	description
	labels []string
	make   func() *T
	mu     sync.RWMutex
	series map[string]*T
}

func (f *family[T]) with(values []string) *T {
	var space [256]byte
	written := f.appendKey(space[:0], values)
	f.mu.RLock()
	s := f.series[string(written)] // copies nothing
	f.mu.RUnlock()
	if s != nil {
		return s
	}
	key := string(written)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.series) >= maxSeries && f.series[key] == nil {
		key = string(f.appendKey(nil, slices.Repeat([]string{"other"}, len(values))))
	}
	if f.series[key] == nil {
		f.series[key] = f.make()
	}
	return f.series[key]
}

// appendKey appends the labels as they are written.
func (f *family[T]) appendKey(b []byte, values []string) []byte {
	if len(values) != len(f.labels) {
		panic(f.name + ": wrong number of labels")
	}
	for i, value := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, f.labels[i]...), `="`...)
		b = append(appendValue(b, value), '"')
	}
	return b
}

// appendValue escapes and bounds a label's value.
func appendValue(b []byte, value string) []byte {
	const most = 128
	if len(value) > most {
		value = value[:most]
	}
	for _, r := range strings.ToValidUTF8(value, "\ufffd") {
		switch r {
		case '\\', '"':
			b = append(b, '\\', byte(r))
		case '\n':
			b = append(b, `\n`...)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}

func (f *family[T]) each(visit func(labels string, s *T)) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	keys := make([]string, 0, len(f.series))
	for k := range f.series {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		visit(k, f.series[k])
	}
}

func appendSample(b []byte, name, labels string, v float64) []byte {
	b = append(b, name...)
	if labels != "" {
		b = append(append(append(b, '{'), labels...), '}')
	}
	b = append(b, ' ')
	return append(strconv.AppendFloat(b, v, 'g', -1, 64), '\n')
}

// Counter is a metric that only grows.
type Counter struct{ n atomic.Int64 }

// Add adds n, if it is more than zero.
func (c *Counter) Add(n int64) {
	if n > 0 {
		c.n.Add(n)
	}
}

// Inc adds one.
func (c *Counter) Inc() { c.n.Add(1) }

// Counters are a counter for each value of its labels.
type Counters struct{ family[Counter] }

// Counter makes a metric that only grows.
func (r *Registry) Counter(name, help string, labels ...string) *Counters {
	c := &Counters{family[Counter]{description: description{name, help, "counter"}, labels: labels,
		make: func() *Counter { return &Counter{} }, series: map[string]*Counter{}}}
	r.add(c)
	return c
}

// With returns the counter of label values, in the order of the labels.
func (c *Counters) With(values ...string) *Counter { return c.with(values) }

func (c *Counters) write(b []byte) []byte {
	c.each(func(labels string, s *Counter) { b = appendSample(b, c.name, labels, float64(s.n.Load())) })
	return b
}

// Gauge makes a metric whose value is computed when it is scraped.
func (r *Registry) Gauge(name, help string, value func() float64) {
	r.add(&gauge{description{name, help, "gauge"}, value})
}

type gauge struct {
	description
	value func() float64
}

func (g *gauge) write(b []byte) []byte { return appendSample(b, g.name, "", g.value()) }

// Gauges makes a metric with labels whose values are computed when it is scraped:
// values calls set once for each series.
func (r *Registry) Gauges(name, help string, labels []string, values func(set func(value float64, labels ...string))) {
	r.add(&gauges{description{name, help, "gauge"}, labels, values})
}

// Totals is Gauges for values that only grow.
func (r *Registry) Totals(name, help string, labels []string, values func(set func(value float64, labels ...string))) {
	r.add(&gauges{description{name, help, "counter"}, labels, values})
}

type gauges struct {
	description
	labels []string
	values func(set func(value float64, labels ...string))
}

func (g *gauges) write(b []byte) []byte {
	f := family[float64]{description: g.description, labels: g.labels, make: func() *float64 { return new(float64) }, series: map[string]*float64{}}
	g.values(func(value float64, labels ...string) { *f.with(labels) += value })
	f.each(func(labels string, s *float64) { b = appendSample(b, g.name, labels, *s) })
	return b
}

// Histogram counts values by size.
type Histogram struct {
	bounds []float64
	counts []atomic.Int64 // one more than bounds
	sum    atomic.Uint64  // bits of a float64
}

// Observe counts a value.
func (h *Histogram) Observe(v float64) {
	i, _ := slices.BinarySearch(h.bounds, v)
	h.counts[i].Add(1)
	for {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+v)) {
			return
		}
	}
}

// Histograms are a histogram for each value of its labels.
type Histograms struct{ family[Histogram] }

// Histogram makes a metric that counts values by size; bounds grow.
func (r *Registry) Histogram(name, help string, bounds []float64, labels ...string) *Histograms {
	h := &Histograms{family[Histogram]{description: description{name, help, "histogram"}, labels: labels,
		make: func() *Histogram { return &Histogram{bounds: bounds, counts: make([]atomic.Int64, len(bounds)+1)} }, series: map[string]*Histogram{}}}
	r.add(h)
	return h
}

// With returns the histogram of label values, in the order of the labels.
func (h *Histograms) With(values ...string) *Histogram { return h.with(values) }

func (h *Histograms) write(b []byte) []byte {
	h.each(func(labels string, s *Histogram) {
		if labels != "" {
			labels += ","
		}
		var total int64
		for i := range s.counts {
			bound := "+Inf"
			if i < len(s.bounds) {
				bound = strconv.FormatFloat(s.bounds[i], 'g', -1, 64)
			}
			total += s.counts[i].Load()
			b = appendSample(b, h.name+"_bucket", labels+`le="`+bound+`"`, float64(total))
		}
		labels = strings.TrimSuffix(labels, ",")
		b = appendSample(b, h.name+"_sum", labels, math.Float64frombits(s.sum.Load()))
		b = appendSample(b, h.name+"_count", labels, float64(total))
	})
	return b
}

// Seconds are bounds for the time that an answer takes.
func Seconds() []float64 {
	return []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}
}

// Minutes are bounds for the time that work takes.
func Minutes() []float64 {
	return []float64{.1, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14400, 86400}
}

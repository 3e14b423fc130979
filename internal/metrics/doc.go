// Package metrics counts, and writes what it counted in Prometheus's text
// format. It is small on purpose: counters, gauges and histograms with a few
// labels, that cost one atomic addition each. What is counted is up to the
// packages that count.
package metrics

package monitor

import (
	"log/slog"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/logid"
	"github.com/atoll-run/atoll/internal/metrics"
	"github.com/atoll-run/atoll/internal/version"
)

// Process shows which build this is, what the process uses, and how many lines of
// its log are warnings and errors.
func Process(r *metrics.Registry, log *slog.Logger) {
	begun := float64(time.Now().UnixMilli()) / 1000
	r.Gauges("atoll_build_info", "The build that runs; the value is always 1.", []string{"version", "revision", "go", "platform"}, func(set func(float64, ...string)) {
		v := version.Current()
		set(1, v.Version, v.Revision, v.Go, v.Platform)
	})
	r.Gauge("go_goroutines", "Goroutines that there are.", func() float64 { return float64(runtime.NumGoroutine()) })
	r.Gauge("process_open_fds", "Descriptors that are open.", openDescriptors)
	r.Gauge("process_max_fds", "Descriptors that may be open.", maxDescriptors)
	r.Gauge("process_resident_memory_bytes", "Memory of the process.", residentMemory)
	r.Gauge("process_start_time_seconds", "When the gateway was opened, in seconds since 1970.", func() float64 { return begun })
	r.Totals("process_cpu_seconds_total", "Processor time of the process.", nil, func(set func(float64, ...string)) { set(cpuSeconds()) })
	if h, ok := log.Handler().(*logid.Handler); ok {
		r.Totals("atoll_log_lines_total", "Lines of the log that are warnings and errors, by level.", []string{"level"}, func(set func(float64, ...string)) {
			warnings, errors := h.Lines()
			set(float64(warnings), "warn")
			set(float64(errors), "error")
		})
	}
}

// openDescriptors counts those of this process.
func openDescriptors() float64 {
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return math.NaN()
	}
	return float64(len(all) - 1) // without the one that it was read by
}

func maxDescriptors() float64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return math.NaN()
	}
	return float64(limit.Cur)
}

func residentMemory() float64 {
	text, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return math.NaN()
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return math.NaN()
	}
	return float64(pages * int64(os.Getpagesize()))
}

func cpuSeconds() float64 {
	var use syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &use) != nil {
		return math.NaN()
	}
	return float64(use.Utime.Nano()+use.Stime.Nano()) / 1e9
}

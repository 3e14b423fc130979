package guest

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/quota"
	"github.com/atoll-run/atoll/internal/wire"
)

// How often the workspace is checked while a process runs that could write to it: at
// least every checkEvery, and sooner if its limits could be reached by then.
const (
	checkEvery = 5 * time.Second
	// checkNear is for a workspace that is nearly full: statfs takes microseconds.
	checkNear = 10 * time.Millisecond
	// fastestWrite is more than a sandbox writes in a nanosecond, in bytes.
	fastestWrite = 4
	// checkFull is for a workspace that is over its limits.
	checkFull = 100 * time.Millisecond
	// Measuring may take long. At most one part in usualShare of the time is spent on
	// it, and one in urgentShare when a limit may be reached.
	usualShare, urgentShare = 1000, 3
)

// quotaEnforcer keeps the workspace within its quota. While that is exceeded it kills all
// commands whenever the workspace has grown; commands that only remove files go on.
type quotaEnforcer struct {
	server *server
	limits *quota.Limits
	timer  *time.Timer
	armed  atomic.Bool
	over   atomic.Pointer[wire.QuotaLimit] // nil: within the limits
	next   atomic.Int64                    // nanoseconds until the next check
	first  chan struct{}                   // closed after the first measure
	files  unix.Rlimit                     // RLIMIT_FSIZE of the guest

	mu    sync.Mutex
	usage *quota.Usage  // the last measure; nil: none yet
	disks quota.Disks   // at that time
	took  time.Duration // how long it took
	ended time.Time     // when it ended
}

// newQuotaEnforcer returns nil if nothing is limited.
func newQuotaEnforcer(s *server, r *quota.Limits) *quotaEnforcer {
	if r.None() {
		return nil
	}
	w := &quotaEnforcer{server: s, limits: r, first: make(chan struct{})}
	w.next.Store(int64(checkNear))
	_ = unix.Getrlimit(unix.RLIMIT_FSIZE, &w.files)
	go func() { defer close(w.first); w.update() }()
	w.timer = time.AfterFunc(time.Hour, w.check)
	w.timer.Stop()
	return w
}

// schedule starts the timer of the next check, unless it runs.
func (w *quotaEnforcer) schedule() {
	if w != nil && w.armed.CompareAndSwap(false, true) {
		w.timer.Reset(time.Duration(w.next.Load()))
	}
}

// check updates the measure, and schedules the next check for as long as a process runs
// that could write.
func (w *quotaEnforcer) check() {
	w.update()
	if w.server.walker.Procs.Others() {
		w.timer.Reset(time.Duration(w.next.Load()))
		return
	}
	w.armed.Store(false)
	if w.server.walker.Procs.Others() { // one was started meanwhile
		w.schedule()
	}
}

// update measures if that is due, and reports whether the workspace is over its limits.
func (w *quotaEnforcer) update() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	disks := w.limits.Disks()
	if w.due(disks, time.Now()) {
		w.measure(disks)
	}
	w.next.Store(int64(w.pause(disks)))
	return w.over.Load() != nil
}

// measure measures the workspace and enforces the limits. The caller holds mu.
func (w *quotaEnforcer) measure(disks quota.Disks) {
	began := time.Now()
	w.enforce(w.limits.Measure(w.server.walker.Procs.Each), disks)
	w.disks, w.ended = disks, time.Now()
	w.took = w.ended.Sub(began)
}

// pause returns the time until the next check: no limit can be reached sooner. The caller
// holds mu.
func (w *quotaEnforcer) pause(disks quota.Disks) time.Duration {
	if w.over.Load() != nil {
		return checkFull
	}
	left := w.limits.Left(w.usage, w.disks, disks)
	return min(max(time.Duration(left/fastestWrite), checkNear), checkEvery)
}

// due reports whether it is time to measure. The caller holds mu.
func (w *quotaEnforcer) due(disks quota.Disks, now time.Time) bool {
	rested := now.Sub(w.ended)
	switch {
	case w.usage == nil:
		return true
	case w.over.Load() != nil || w.limits.Near(w.usage, w.disks, disks):
		return rested >= urgentShare*w.took
	}
	return disks != w.disks && rested >= usualShare*w.took
}

// enforce kills all commands if the workspace is over a limit and has grown since the
// last measure. The first measure kills nothing. The caller holds mu.
func (w *quotaEnforcer) enforce(now quota.Usage, disks quota.Disks) {
	before := w.usage
	w.usage = &now
	full := w.limits.Exceeded(&now)
	if full == "" {
		w.over.Store(nil)
		return
	}
	w.over.Store(&full)
	if before != nil && (now.Grew(before) || now.Partial && disks.Less(w.disks)) {
		w.server.endFor(full)
	}
}

// endFor kills every process of the sandbox but the guest and its bridges.
func (s *server) endFor(full wire.QuotaLimit) {
	for _, p := range s.table.after("") {
		p.endForQuota(full)
	}
	if isPID1() {
		s.walker.KillAll() // also processes of execs that have ended
	}
}

// growing are the operations that add to a workspace.
var growing = map[wire.Op]bool{wire.OpFileWrite: true, wire.OpFilePush: true, wire.OpFileCopy: true, wire.OpFileMkdir: true}

// allow refuses an operation that adds to a full workspace, and schedules a check of what
// it adds.
func (w *quotaEnforcer) allow(op wire.Op) error {
	if w == nil || !growing[op] {
		return nil
	}
	w.schedule()
	if w.over.Load() == nil || !w.update() { // files may have been removed since
		return nil
	}
	if full := w.over.Load(); full != nil {
		return wire.Fail(wire.CodeNoSpace, "the workspace is over its limit ("+string(*full)+"): remove something first")
	}
	return nil
}

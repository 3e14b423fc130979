package guest

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/quota"
	"github.com/atoll-run/atoll/internal/wire"
)

// How often the workspace is looked at while a process could write to it: at least
// every checkEvery, and sooner if its limits could be reached by then.
const (
	checkEvery = 5 * time.Second
	// checkNear is for one that is nearly full: a look at the disks takes
	// microseconds.
	checkNear = 10 * time.Millisecond
	// fastestWrite is more than is written in a nanosecond, in bytes.
	fastestWrite = 4
	// checkFull is for one that is over its limits.
	checkFull = 100 * time.Millisecond
	// To look at the disks costs nothing, to measure may take long. One part in
	// so many of the time is spent on it: usually, and when there is a reason.
	usualShare, urgentShare = 1000, 3
)

// quotaEnforcer keeps the workspace within its ration. While that is exceeded,
// whatever makes it grow further is ended; what removes files is not.
type quotaEnforcer struct {
	server *server
	limits *quota.Limits
	timer  *time.Timer
	armed  atomic.Bool
	over   atomic.Pointer[wire.QuotaLimit] // nil: all is well
	next   atomic.Int64                    // nanoseconds until the next look
	first  chan struct{}                   // closed after the first measure
	files  unix.Rlimit                     // how large the guest may make a file

	mu    sync.Mutex
	usage *quota.Usage  // as it was measured last; nil: never
	disks quota.Disks   // as they were then
	took  time.Duration // what that took
	ended time.Time     // when that was over
}

// newQuotaEnforcer returns nil where nothing is limited.
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

// schedule has somebody look soon, unless that is so already.
func (w *quotaEnforcer) schedule() {
	if w != nil && w.armed.CompareAndSwap(false, true) {
		w.timer.Reset(time.Duration(w.next.Load()))
	}
}

// check measures, if there is a reason, and acts. It looks again for as long as
// there is a process that could write.
func (w *quotaEnforcer) check() {
	w.update()
	if w.server.walker.Procs.Others() {
		w.timer.Reset(time.Duration(w.next.Load()))
		return
	}
	w.armed.Store(false)
	if w.server.walker.Procs.Others() { // it began while we looked
		w.schedule()
	}
}

// update reports whether the workspace is over its limits.
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

// measure measures. The lock is held.
func (w *quotaEnforcer) measure(disks quota.Disks) {
	began := time.Now()
	w.enforce(w.limits.Measure(w.server.walker.Procs.Each), disks)
	w.disks, w.ended = disks, time.Now()
	w.took = w.ended.Sub(began)
}

// pause returns how long nobody has to look: in that time no limit can be
// reached. The lock is held.
func (w *quotaEnforcer) pause(disks quota.Disks) time.Duration {
	if w.over.Load() != nil {
		return checkFull
	}
	left := w.limits.Left(w.usage, w.disks, disks)
	return min(max(time.Duration(left/fastestWrite), checkNear), checkEvery)
}

// due reports whether it is time to measure. The lock is held.
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

// enforce ends whoever makes a full workspace fuller. Of what there was before
// the first look nobody here is to blame. The lock is held.
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

// endFor kills every process of the sandbox but the guest.
func (s *server) endFor(full wire.QuotaLimit) {
	for _, p := range s.table.after("") {
		p.endForQuota(full)
	}
	if alone() {
		_ = unix.Kill(-1, unix.SIGKILL) // also what left its exec
	}
}

// growing are the operations that add to a workspace.
var growing = map[wire.Op]bool{wire.OpFileWrite: true, wire.OpFilePush: true, wire.OpFileCopy: true, wire.OpFileMkdir: true}

// allow refuses to add to a workspace that is full, and has somebody look at
// what is added.
func (w *quotaEnforcer) allow(op wire.Op) error {
	if w == nil || !growing[op] {
		return nil
	}
	w.schedule()
	if w.over.Load() == nil || !w.update() { // it was, but files may be gone by now
		return nil
	}
	if full := w.over.Load(); full != nil {
		return wire.Fail(wire.CodeNoSpace, "the workspace is over its limit ("+string(*full)+"): remove something first")
	}
	return nil
}

package guest

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/spawn"
	"github.com/atoll-run/atoll/internal/wire"
)

// firstMeasureTimeout is how long a process waits for the first measure, which begins with
// the sandbox. A workspace of some hundred thousand files is measured by then.
const firstMeasureTimeout = time.Second

// fileSize returns RLIMIT_FSIZE of a new process: the workspace's size, and 0 while the
// workspace is full, so that it can read and remove files but not write.
func (w *quotaEnforcer) fileSize() []spawn.Limit {
	if w == nil {
		return nil
	}
	most := uint64(w.limits.Size)
	switch {
	case w.full() != "":
		most = 0
	case w.limits.Size == 0:
		return nil
	}
	return []spawn.Limit{{Resource: unix.RLIMIT_FSIZE, Soft: min(most, w.files.Cur), Hard: min(most, w.files.Max)}}
}

// full returns the limit that the workspace is over, or "". It measures again if it was
// over one, as files may have been removed.
func (w *quotaEnforcer) full() wire.QuotaLimit {
	select {
	case <-w.first:
	case <-time.After(firstMeasureTimeout):
	}
	if w.over.Load() == nil {
		return ""
	}
	return w.measureNow()
}

// measureNow measures and returns the limit that the workspace is over, or "".
func (w *quotaEnforcer) measureNow() wire.QuotaLimit {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.measure(w.limits.Disks())
	if full := w.over.Load(); full != nil {
		return *full
	}
	return ""
}

// blockedBy returns the limit because of which a process failed that ended by itself: a
// file exceeded RLIMIT_FSIZE, or it was started while the workspace was full.
func (w *quotaEnforcer) blockedBy(x *wire.Exit, limits []spawn.Limit) wire.QuotaLimit {
	if w == nil || x.Code == 0 || x.QuotaExceeded != "" || x.TimedOut || x.Ended {
		return x.QuotaExceeded
	}
	tooLarge := x.Code == 128+int(unix.SIGXFSZ)
	none := spawn.Limit{Resource: unix.RLIMIT_FSIZE}
	if !tooLarge && !slices.Contains(limits, none) {
		return ""
	}
	return w.measureNow()
}

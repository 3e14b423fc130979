package guest

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/spawn"
	"github.com/atoll-run/atoll/internal/wire"
)

// firstMeasureTimeout is how long a process waits for the first measure, which begins when
// the sandbox does. A workspace of some hundred thousand files is measured by then.
const firstMeasureTimeout = time.Second

// fileSize returns the limit of the size of files that a new process gets: the
// workspace's, and 0 while that is full. Then it can look and remove, and what
// it writes to fails.
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

// full returns the limit that the workspace is over, if it is. One that was is
// measured again: files may be gone by now.
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

// measureNow measures, whenever that was done last, and returns the limit that
// the workspace is over.
func (w *quotaEnforcer) measureNow() wire.QuotaLimit {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.measure(w.limits.Disks())
	if full := w.over.Load(); full != nil {
		return *full
	}
	return ""
}

// blockedBy returns the limit for which a process failed that ended by itself: a
// file became too large for it, or it was started while the workspace was full.
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

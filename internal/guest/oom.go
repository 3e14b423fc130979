package guest

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// oomFiles are the files in which the kernel counts the kills of the OOM killer: control
// groups version 2 and 1.
var oomFiles = []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"}

// oomFresh is how old the count may be that a process starts with. Reading it for every
// process would cost more than the rest of a start.
const oomFresh = time.Second

// oomWatch tells kills of the OOM killer from others.
type oomWatch struct {
	mu    sync.Mutex
	count int64
	read  time.Time
}

// recent returns the count, not older than oomFresh.
func (w *oomWatch) recent() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.read) > oomFresh {
		w.count, w.read = oomKills(), time.Now()
	}
	return w.count
}

// killed reports whether the OOM killer ended a process: its exit code is that of SIGKILL,
// its own or a child's, the guest has not killed it, and the count has grown.
func (w *oomWatch) killed(x *wire.Exit, before int64) bool {
	const killed = 128 + 9
	if x.Code != killed || x.TimedOut || x.Ended {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count, w.read = oomKills(), time.Now()
	return w.count > before
}

func oomKills() int64 {
	for _, name := range oomFiles {
		content, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(content) {
			if value, ok := bytes.CutPrefix(line, []byte("oom_kill ")); ok {
				n, _ := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
				return n
			}
		}
	}
	return 0
}

package verify

import (
	"slices"
	"strings"
)

// pods is the backend whose sandboxes are pods. What Kubernetes has no setting for is
// reported as a note, not as a gap.
const pods = "kubernetes"

// openInPods are paths of the kernel that container runtimes of nodes leave open: figures
// of the machine's load and of its memory.
var openInPods = []string{"/proc/pressure/", "/sys/kernel/slab"}

// leftToNodes reports whether an attempt on a path is one that nodes decide about.
func leftToNodes(e *Evidence, attempt string) bool {
	return e.Spec.Backend == pods && slices.ContainsFunc(openInPods, func(path string) bool { return strings.Contains(attempt, " "+path) })
}

// ignoresSetUserID reports whether set-user-ID programs have no effect on a file system:
// by its own option or, in a pod, where volumes in memory have none, because no process
// gets new privileges.
func ignoresSetUserID(e *Evidence, nosuid bool) bool {
	return nosuid || e.Spec.Backend == pods && e.Inside.Self.NoNewPrivs
}

package probe

import (
	"bufio"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/wire/findings"
)

func self() findings.Process {
	status := statusFields("/proc/self/status")
	p := findings.Process{
		PID: os.Getpid(), UID: os.Getuid(), GID: os.Getgid(), Capabilities: map[string]string{},
		NoNewPrivs: status["NoNewPrivs"] == "1", Descriptors: descriptors(),
	}
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		p.Capabilities[set] = status[set]
	}
	if own, err := os.Readlink("/proc/self"); err == nil {
		p.InProc, _ = strconv.Atoi(own)
	}
	p.Seccomp, _ = strconv.Atoi(status["Seccomp"])
	p.Filters = filters("/proc/self/status")
	const byItsUser = 1 // 2 is by root alone
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	p.Dumpable = err != nil || dumpable == byItsUser
	return p
}

// statusFields parses a file of "name: value" lines.
func statusFields(path string) map[string]string {
	values := map[string]string{}
	for _, line := range lines(path) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			values[name] = strings.TrimSpace(value)
		}
	}
	return values
}

// lines returns the lines of a file, as many as a report can use, and none of a file that
// is not regular: reading a FIFO that code inside has put there would block.
func lines(path string) (found []string) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	for scanner := bufio.NewScanner(f); scanner.Scan() && len(found) < 4*findings.MaxEntries; {
		found = append(found, scanner.Text())
	}
	return found
}

// descriptors returns the inherited descriptors above standard error.
func descriptors() (left []string) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		target, err := os.Readlink("/proc/self/fd/" + entry.Name())
		if number, _ := strconv.Atoi(entry.Name()); err == nil && number > 2 && !isOwnDescriptor(target) {
			left = append(left, target)
		}
	}
	return capped(left)
}

// isOwnDescriptor reports whether this program opened a descriptor itself: the directory
// being listed, the Go runtime's poller, and the files of the CPU limit.
func isOwnDescriptor(target string) bool {
	return strings.HasPrefix(target, "/proc/") && strings.HasSuffix(target, "/fd") ||
		strings.HasPrefix(target, "anon_inode:") || strings.HasPrefix(target, "/sys/fs/cgroup/")
}

func namespaces() map[string]string {
	found := map[string]string{}
	for _, kind := range []string{"cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"} {
		if id, err := os.Readlink("/proc/self/ns/" + kind); err == nil {
			found[kind] = id
		}
	}
	return found
}

// maxSeen is how many processes a report names.
const maxSeen = findings.MaxEntries / 4

// processes returns up to maxSeen visible processes, and how many more there are. Those
// without a visible parent come first, so that many others cannot hide them.
func processes() (seen []findings.Seen, hidden int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, 0
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		status := statusFields("/proc/" + entry.Name() + "/status")
		parent, _ := strconv.Atoi(status["PPid"])
		seen = append(seen, findings.Seen{PID: pid, Parent: parent, Name: status["Name"]})
	}
	slices.SortStableFunc(seen, func(a, b findings.Seen) int { return min(a.Parent, 1) - min(b.Parent, 1) })
	shown := min(len(seen), maxSeen)
	return seen[:shown], len(seen) - shown
}

// errorText returns the name of an errno, or the text of another error; "" for nil.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	if errno, ok := asErrno(err); ok {
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

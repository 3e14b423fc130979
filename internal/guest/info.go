package guest

import (
	"bufio"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/wire"
	"golang.org/x/sys/unix"
)

// info returns the identity, privileges and resource use of the guest.
func (s *server) info() *wire.Info {
	status := procStatus()
	info := &wire.Info{
		PID: os.Getpid(), UID: os.Getuid(), GID: os.Getgid(), Arch: runtime.GOARCH,
		CapEff: status["CapEff"], CapBnd: status["CapBnd"],
		NoNewPrivs: status["NoNewPrivs"] == "1",
		Namespaces: namespaces(),
	}
	info.Groups, _ = os.Getgroups()
	info.Hostname, _ = os.Hostname()
	info.Seccomp, _ = strconv.Atoi(status["Seccomp"])
	rss, _ := strconv.ParseInt(strings.TrimSuffix(status["VmRSS"], " kB"), 10, 64)
	info.RSS, info.Goroutines = rss<<10, runtime.NumGoroutine()
	info.Threads, _ = strconv.Atoi(status["Threads"])
	info.Descriptors = descriptors()
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	info.Dumpable = err != nil || dumpable != 0
	var uts unix.Utsname
	if unix.Uname(&uts) == nil {
		info.Kernel = unix.ByteSliceToString(uts.Release[:])
	}
	info.Processes = s.table.len()
	return info
}

// procStatus reads /proc/self/status.
func procStatus() map[string]string {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		return nil
	}
	defer file.Close()
	status := map[string]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok {
			status[name] = strings.TrimSpace(value)
		}
	}
	return status
}

// descriptors returns the number of the guest's open descriptors.
func descriptors() int {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return -1
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	return len(names) - 1 // but for the directory itself
}

// namespaces returns the ids of the guest's namespaces.
func namespaces() map[string]string {
	found := map[string]string{}
	for _, name := range []string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"} {
		if id, err := os.Readlink("/proc/self/ns/" + name); err == nil {
			found[name] = id
		}
	}
	return found
}

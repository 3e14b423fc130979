package probe

import (
	"bytes"
	"os"
	"strconv"

	"github.com/atoll-run/atoll/internal/wire/findings"
)

// maxCommandLine bounds what is read of a command line.
const maxCommandLine = 16 << 10

// renderers returns the visible processes of a browser that show pages.
func renderers() (found []findings.Renderer) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err == nil && isRenderer("/proc/"+entry.Name()+"/cmdline") {
			found = append(found, renderer(pid))
		}
	}
	return capped(found)
}

// isRenderer reports whether a command line is that of a Chromium renderer.
func isRenderer(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	line := make([]byte, maxCommandLine)
	n, _ := f.Read(line) // what cannot be read is none
	return bytes.Contains(line[:n], []byte("--type=renderer"))
}

func renderer(pid int) findings.Renderer {
	dir := "/proc/" + strconv.Itoa(pid)
	r := findings.Renderer{PID: pid, Namespaces: map[string]string{}, Filters: filters(dir + "/status")}
	for _, kind := range []string{"user", "pid", "net"} {
		if id, err := os.Readlink(dir + "/ns/" + kind); err == nil {
			r.Namespaces[kind] = id
		}
	}
	return r
}

// filters returns how many filters of system calls a process has.
func filters(status string) int {
	n, _ := strconv.Atoi(statusFields(status)["Seccomp_filters"])
	return n
}

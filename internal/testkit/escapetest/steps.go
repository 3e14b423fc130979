package escapetest

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// step is an attack that leaves the sandbox as it was.
type step struct {
	name string // of the test
	args func(*cell) []string
	// control makes the same without walls, where some step must work. Nil: the
	// step is never harmless outside, or walls of every kernel are in its way.
	control func(*cell) []string
	// needs are capabilities that the control cannot do without.
	needs []int
	// byRoot is promised only by sandboxes that root of the host has made.
	byRoot bool
	// mounted is a read-only directory of the host.
	mounted bool
	// files are the guest's in /proc, which a runtime may leave open to root inside.
	files bool
}

// same are arguments that do not depend on anything.
func same(args ...string) func(*cell) []string { return func(*cell) []string { return args } }

// steps is the list of what hostile code tries first. The control of each is
// made by root of the host, in a mount namespace of its own.
var steps = []step{
	{name: "mount tricks", args: same("mounts", "/tmp"), control: func(c *cell) []string { return []string{"mounts", c.path("host")} }, needs: []int{unix.CAP_SYS_ADMIN}},
	{name: "new user namespaces, unshare and setns", args: same("namespaces"), control: same("namespaces"), needs: []int{unix.CAP_SYS_ADMIN}},
	{name: "keyctl", args: same("keyrings"), control: same("keyrings")},
	{name: "bpf, perf, userfaultfd, fanotify", args: same("kernel-programs"), control: same("kernel-programs"), needs: []int{unix.CAP_SYS_ADMIN}},
	{name: "io_uring", args: same("io-uring"), control: same("io-uring")},
	{name: "ptrace of the guest", args: same("guest-memory")},
	{name: "memory and output of a probe", args: same("guest-helper", guestPath), control: func(c *cell) []string { return []string{"guest-helper", c.path("attack")} }},
	{name: "scheduling and priority of the guest", args: same("schedule", "1", "its user"),
		control: func(c *cell) []string { return []string{"schedule", strconv.Itoa(c.canaryProcess().Process.Pid)} }},
	{name: "scheduling and OOM score by files", args: same("schedule-files", "1"), files: true,
		control: func(c *cell) []string { return []string{"schedule-files", strconv.Itoa(c.canaryProcess().Process.Pid)} }},
	{name: "disk taken in one call", args: same("allocate", workdir, "64"), control: func(c *cell) []string { return []string{"allocate", c.path("state"), "1"} }},
	{name: "proc root", args: canaryFile("read-host-file"), control: canaryFile("read-host-file")},
	{name: "proc sys", args: same("proc-sys"), control: same("proc-sys"), needs: []int{unix.CAP_SYS_ADMIN}},
	{name: "core_pattern", args: same("core-pattern"), control: same("core-pattern"), needs: []int{unix.CAP_SYS_ADMIN}},
	{name: "sysrq", args: same("sysrq")},
	{name: "cgroup release_agent and notify_on_release", args: same("cgroup"), control: same("cgroup"), needs: []int{unix.CAP_SYS_ADMIN}},
	{name: "device nodes and dev mem", args: same("devices", workdir), control: func(c *cell) []string { return []string{"devices", c.path("host")} }, needs: []int{unix.CAP_MKNOD}},
	{name: "open_by_handle_at", args: same("file-handle", workdir+"/attack"), control: func(c *cell) []string { return []string{"file-handle", c.path("host/canary")} }, needs: []int{unix.CAP_DAC_READ_SEARCH}},
	{name: "kernel log", args: same("kernel-log"), control: same("kernel-log"), needs: []int{unix.CAP_SYSLOG, unix.CAP_SYS_ADMIN}},
	{name: "time change", args: same("clock"), control: same("clock"), needs: []int{unix.CAP_SYS_TIME}},
	{name: "more privileges", args: same("privileges")},
	{name: "exe overwrite", args: same("exe-overwrite")},
	{name: "leaked descriptors", args: canaryFile("descriptors"), control: canaryFile("descriptors")},
	{name: "masked paths", args: same("masked-paths"), control: same("masked-paths"), needs: []int{unix.CAP_SYS_ADMIN}},
	{name: "hard links of a read-only mount", mounted: true, args: same("hard-link", "/agent/canary", workdir+"/linked"),
		control: func(c *cell) []string { return []string{"hard-link", c.path("victim"), c.path("linked")} }},
	{name: "set-user-ID files in a directory of the host", args: same("set-id", workdir), control: func(c *cell) []string { return []string{"set-id", c.path("host")} }},
	{name: "socket families", args: same("socket-families"), control: same("socket-families"), needs: []int{unix.CAP_NET_RAW}},
	{name: "shared memory without a process", args: same("shared-memory"), control: same("shared-memory"), byRoot: true},
	{name: "ways to other machines", args: same("network")},
	{name: "stray writes", args: same("stray-writes", workdir, "/tmp", "/.atoll/wire")},
}

func canaryFile(attack string) func(*cell) []string {
	return func(c *cell) []string { return []string{attack, c.path("host/canary"), canaryWords} }
}

func runSteps(t *testing.T, s Subject) {
	newArena(t, s).start().try(t, steps)
}

// try makes the attacks in one sandbox.
func (home *cell) try(t *testing.T, steps []step) {
	t.Helper()
	for _, step := range steps {
		if step.byRoot && os.Geteuid() != 0 || step.files && home.GuestFilesOpen {
			continue
		}
		t.Run(step.name, func(t *testing.T) {
			c := home.in(t, home).atHome()
			if step.mounted && c.Copies {
				c.wantGap(func(s *sandbox.Spec) { s.Mounts = append(s.Mounts, c.readOnlyMount()) })
				return
			}
			c.refused(step.args(c)...)
			c.wantCanary("readonly")
			if step.control != nil && mayControl(step.needs) {
				c.write("victim", canaryWords, 0o666)
				if out, code := outside(t, c.dir, step.control(c)...); code != 1 {
					t.Errorf("without walls no step works either (%d): this test cannot fail\n%s", code, out)
				}
			}
			c.alive()
		})
	}
	t.Run("the canary", func(t *testing.T) {
		home.in(t, home).wantCanary("host")
	})
}

// mayControl reports whether this process could make a step that no wall stops.
func mayControl(needs []int) bool {
	status, _ := os.ReadFile("/proc/self/status")
	_, after, _ := strings.Cut(string(status), "CapEff:\t")
	text, _, _ := strings.Cut(after, "\n")
	bits, err := strconv.ParseUint(text, 16, 64)
	for _, capability := range needs {
		if err != nil || bits&(1<<capability) == 0 {
			return false
		}
	}
	return true
}

package blueprint

import (
	"path/filepath"
	"slices"
	"sync"
)

// masked are files of the kernel that tell of the host or reach into it: runc's
// list, and more. A trigger on a file of /proc/pressure makes the kernel work for
// a sandbox, and its end wait for that.
var masked = []string{
	"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/kmsg",
	"/proc/kallsyms", "/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup", "/proc/latency_stats", "/proc/scsi",
	"/proc/sched_debug", "/proc/timer_list", "/proc/timer_stats", "/proc/vmallocinfo", "/proc/slabinfo",
	"/proc/pressure", "/proc/pagetypeinfo", "/proc/buddyinfo", "/proc/zoneinfo", "/proc/locks", "/proc/iomem", "/proc/ioports", "/proc/mtrr",
	"/sys/firmware", "/sys/devices/virtual/powercap", "/sys/kernel/debug", "/sys/kernel/security", "/sys/kernel/tracing",
	"/sys/kernel/slab", "/sys/fs/bpf", "/sys/fs/selinux",
}

// throttles tell how hot each processor is, and with it what others compute.
// Virtual machines have none.
var throttles = sync.OnceValue(func() []string {
	found, _ := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle")
	return found
})

// Masked returns the files of the kernel that every sandbox sees empty. Those
// that this kernel does not have are among them.
func Masked() []string { return slices.Concat(masked, throttles()) }

// ReadOnly returns the files of the kernel that no sandbox can write. /proc/1 is the
// guest, whose OOM score and scheduling no user inside may change.
func ReadOnly() []string {
	return []string{"/proc/1", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}

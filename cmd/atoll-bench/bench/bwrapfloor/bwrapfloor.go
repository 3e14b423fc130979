// Package bwrapfloor is what bwrap can do of a sandbox, as its arguments.
package bwrapfloor

import "os"

// masks are the kernel's files that a sandbox does not show.
var masks = []string{
	"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/kmsg",
	"/proc/kallsyms", "/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup", "/proc/latency_stats", "/proc/scsi",
	"/proc/sched_debug", "/proc/timer_list", "/proc/timer_stats", "/proc/vmallocinfo", "/proc/slabinfo",
}

// Rest is what a sandbox has besides the few mounts of bwrapRoot: the
// host's files of /etc, places in memory, what is hidden of /proc, the filter.
// bwrap cannot mount /sys, nor the root from layers.
func Rest() []string {
	rest := []string{"--tmpfs", "/run", "--tmpfs", "/var/tmp", "--tmpfs", "/dev/shm", "--mqueue", "/dev/mqueue"}
	for _, file := range []string{"/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/certs/java/cacerts"} {
		rest = append(rest, "--ro-bind-try", file, file)
	}
	for _, path := range []string{"/proc/fs", "/proc/sys"} {
		rest = append(rest, "--ro-bind", path, path)
	}
	for _, path := range masks {
		info, err := os.Stat(path)
		switch {
		case err != nil:
		case info.IsDir():
			rest = append(rest, "--tmpfs", path)
		default:
			rest = append(rest, "--ro-bind", "/dev/null", path)
		}
	}
	return append(rest, "--seccomp", "3")
}

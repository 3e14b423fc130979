package probe

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/wire/findings"
)

func asErrno(err error) (syscall.Errno, bool) { return errors.AsType[syscall.Errno](err) }

// mounts reads the mount table: "… target options [tags] - type source options".
func mounts() (found []findings.Mount) {
	for _, line := range lines("/proc/self/mountinfo") {
		before, after, _ := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if len(left) < 6 || len(right) < 3 {
			continue
		}
		options := append(strings.Split(left[5], ","), keptOptions(right[2])...)
		found = append(found, findings.Mount{
			Target: unescape(left[4]), Type: right[0], Options: strings.Join(options, ","), ReadOnly: slices.Contains(options, "ro"),
		})
	}
	return capped(found)
}

// keptOptions returns the options of a file system that are verified. Others may be long,
// and contain paths of the host.
func keptOptions(list string) (kept []string) {
	for option := range strings.SplitSeq(list, ",") {
		key, _, _ := strings.Cut(option, "=")
		if slices.Contains([]string{"ro", "size", "mode", "nr_inodes"}, key) {
			kept = append(kept, option)
		}
	}
	return kept
}

// unescape decodes the octal escapes of the mount table.
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

// machinePaths belong to the whole machine. None may be opened for writing, and secret
// ones not even for reading.
var machinePaths = []struct {
	path   string
	secret bool
}{
	{"/proc/sysrq-trigger", false}, {"/proc/sys/kernel/core_pattern", false}, {"/proc/sys/kernel/modprobe", false},
	{"/proc/sys/kernel/randomize_va_space", false}, {"/proc/sys/vm/panic_on_oom", false}, {"/proc/sys/fs/binfmt_misc/register", false},
	{"/proc/irq/0/smp_affinity", false}, {"/proc/bus/pci", false}, {"/proc/fs/xfs", false}, {"/proc/acpi", true}, {"/proc/asound", true},
	{"/proc/kcore", true}, {"/proc/keys", true}, {"/proc/timer_list", true}, {"/proc/latency_stats", true}, {"/proc/kmsg", true},
	{"/proc/sched_debug", true}, {"/proc/scsi", true}, {"/sys/firmware", true}, {"/sys/kernel/uevent_helper", false},
	{"/proc/pressure/memory", true}, {"/proc/pressure/io", true}, {"/proc/pagetypeinfo", true}, {"/sys/kernel/slab", true},
	{"/sys/kernel/debug", true}, {"/sys/kernel/security", false}, {"/sys/power/state", false}, {"/sys/module", false},
	{"/dev/mem", true}, {"/dev/kmem", true}, {"/dev/port", true}, {"/dev/kmsg", true}, {"/dev/kvm", true}, {"/dev/fuse", true}, {"/dev/net/tun", true},
}

// paths tries to open machinePaths. Nothing is written.
func paths() (tried []findings.Attempt) {
	for _, p := range machinePaths {
		tried = append(tried, findings.Attempt{Name: "write " + p.path, Error: errorText(open(p.path, true))})
		if p.secret {
			tried = append(tried, findings.Attempt{Name: "read " + p.path, Error: errorText(readable(p.path))})
		}
	}
	for _, pattern := range []string{"/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/*/release_agent", "/sys/fs/cgroup/*/notify_on_release", "/sys/fs/cgroup/cgroup.procs"} {
		found, _ := filepath.Glob(pattern)
		for _, path := range found {
			tried = append(tried, findings.Attempt{Name: "write " + path, Error: errorText(open(path, true))})
		}
	}
	return capped(tried)
}

// open tries to open a file, with write for writing, or checks whether a directory is
// writable.
func open(path string, write bool) error {
	info, err := os.Stat(path)
	if err != nil {
		return errnoOf(err)
	}
	if info.IsDir() {
		return unix.Access(path, unix.W_OK)
	}
	flags := unix.O_NONBLOCK | unix.O_CLOEXEC
	if write {
		flags |= unix.O_WRONLY
	}
	fd, err := unix.Open(path, flags, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if unix.Fstat(fd, &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFCHR && stat.Rdev == unix.Mkdev(1, 3) {
		return errMasked // by /dev/null
	}
	return nil
}

// errMasked is reported for a path that is masked: /dev/null, or an empty file or
// directory.
var errMasked = syscall.ENODATA

// readable returns why nothing can be read from a file or directory.
func readable(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return errnoOf(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		if names, _ := f.Readdirnames(1); len(names) > 0 {
			return nil
		}
		return errMasked
	}
	if n, err := f.Read(make([]byte, 1)); n == 0 {
		return errors.Join(errMasked, errnoOf(err))
	}
	return nil
}

// errnoOf returns the errno of an error, without its path.
func errnoOf(err error) error {
	if errno, ok := asErrno(err); ok {
		return errno
	}
	return err
}

// writable returns the writable directories near the root, and the writable mounts.
// Directories below a writable one are left out: programs may have created many.
func writable() (found []string) {
	candidates := []string{"/"}
	for _, dir := range []string{"/", "/var/", "/usr/", "/etc/", "/run/", "/sys/", "/dev/", "/sys/fs/cgroup/"} {
		if unix.Access(dir, unix.W_OK) == nil {
			continue
		}
		entries, _ := os.ReadDir(dir)
		for _, entry := range entries {
			if entry.IsDir() {
				candidates = append(candidates, dir+entry.Name())
			}
		}
	}
	for _, m := range mounts() {
		candidates = append(candidates, m.Target)
	}
	slices.Sort(candidates)
	for _, dir := range slices.Compact(candidates) {
		if !strings.HasPrefix(dir, "/proc/") && unix.Access(dir, unix.W_OK) == nil {
			found = append(found, dir)
		}
	}
	return capped(found)
}

// devices returns the device nodes below /dev, except terminals, and those that are
// mounted elsewhere. It examines every file: a device may be mounted on a regular one.
func devices() (found []findings.Device) {
	add := func(path string) {
		if device, ok := deviceAt(path); ok {
			found = append(found, device)
		}
	}
	_ = filepath.WalkDir("/dev", func(path string, entry os.DirEntry, err error) error {
		if path == "/dev/pts" || err != nil && entry != nil && entry.IsDir() {
			return filepath.SkipDir
		}
		if err == nil && len(found) < findings.MaxEntries {
			add(path)
		}
		return nil
	})
	for _, m := range mounts() {
		if !strings.HasPrefix(m.Target, "/dev/") {
			add(m.Target)
		}
	}
	return capped(found)
}

func deviceAt(path string) (findings.Device, bool) {
	var stat unix.Stat_t
	if unix.Lstat(path, &stat) != nil {
		return findings.Device{}, false
	}
	kind := stat.Mode & unix.S_IFMT
	device := findings.Device{Path: path, Block: kind == unix.S_IFBLK, Major: unix.Major(stat.Rdev), Minor: unix.Minor(stat.Rdev)}
	return device, kind == unix.S_IFCHR || kind == unix.S_IFBLK
}

// engineSockets returns the existing sockets of container engines and other services of
// a host, and every socket that is mounted.
func engineSockets() (found []string) {
	candidates := []string{
		"/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock",
		"/run/crio/crio.sock", "/run/k3s/containerd/containerd.sock", "/run/buildkit/buildkitd.sock", "/run/dbus/system_bus_socket", "/run/systemd/private",
		"/run/systemd/resolve/io.systemd.Resolve", "/run/nscd/socket", "/var/run/nscd/socket",
	}
	for _, m := range mounts() {
		candidates = append(candidates, m.Target)
	}
	slices.Sort(candidates)
	for _, path := range slices.Compact(candidates) {
		if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
			found = append(found, path)
		}
	}
	return capped(found)
}

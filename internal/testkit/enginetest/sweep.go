//go:build linux

package enginetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// privatePrefix begins the name of a private engine's directory; the id of the
// test process that owns it follows.
const privatePrefix = "private-"

const sweepTimeout = 10 * time.Second

func netnsName(dir string) string { return "atoll-" + filepath.Base(dir) }
func netnsPath(dir string) string { return "/run/netns/" + netnsName(dir) }

// makeNetns gives the engine a network namespace of its own, so that its
// bridges and routes are nobody else's. It has a name because it must outlive
// the daemon: containers that survive a restart keep their interfaces in it.
func (e *Engine) makeNetns() error {
	name := netnsName(e.dir)
	return errors.Join(run("ip", "netns", "add", name), run("ip", "-n", name, "link", "set", "lo", "up"))
}

func run(name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), sweepTimeout)
	defer cancel()
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// sweepAbandoned removes the engines of test processes that were killed before
// they could clean up.
func sweepAbandoned() error {
	dirs, err := filepath.Glob(filepath.Join(engineDir(), privatePrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), privatePrefix), "-")
		if _, err := os.Stat("/proc/" + owner); errors.Is(err, os.ErrNotExist) {
			if err := sweep(dir); err != nil {
				return fmt.Errorf("abandoned engine: %w", err)
			}
		}
	}
	return nil
}

// sweep removes what an engine in dir left: processes, control groups, mounts,
// network namespace, files.
func sweep(dir string) error {
	for _, step := range []func(string) error{killAll, removeCgroups, unmountBelow, removeNetns} {
		if err := step(dir); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}

func removeNetns(dir string) error {
	if _, err := os.Stat(netnsPath(dir)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return run("ip", "netns", "delete", netnsName(dir))
}

// killAll ends every process of the engine, and waits until none is left.
func killAll(dir string) error {
	deadline := time.Now().Add(sweepTimeout)
	for {
		victims, err := processesOf(dir)
		if err != nil || len(victims) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v of %s do not end", victims, dir)
		}
		for _, pid := range victims {
			_ = syscall.Kill(pid, syscall.SIGKILL) // gone already is as good
		}
		time.Sleep(pollInterval)
	}
}

// processesOf lists what runs in the engine's control groups, its containers,
// and what names dir on its command line: the daemons and their shims.
func processesOf(dir string) ([]int, error) {
	var pids []int
	for _, group := range cgroupsOf(dir) {
		procs, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
		if err != nil {
			continue // removed meanwhile
		}
		for line := range strings.Lines(string(procs)) {
			pids = appendPid(pids, strings.TrimSpace(line))
		}
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		// An exited process that nobody reaped has an empty command line.
		if cmdline, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline")); err == nil && bytes.Contains(cmdline, []byte(dir+"/")) {
			pids = appendPid(pids, entry.Name())
		}
	}
	return pids, nil
}

// appendPid adds a process to end, never this one.
func appendPid(pids []int, s string) []int {
	pid, err := strconv.Atoi(s)
	if err != nil || pid <= 1 || pid == os.Getpid() || slices.Contains(pids, pid) {
		return pids
	}
	return append(pids, pid)
}

// cgroupParent is the control group, in every hierarchy, that holds the
// engine's containers.
func cgroupParent(dir string) string { return "/atoll-test-" + filepath.Base(dir) }

// cgroupsOf lists the engine's control groups, children before parents: in one
// tree on cgroup v2, in one tree a controller on v1.
func cgroupsOf(dir string) []string {
	var groups []string
	for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		tops, _ := filepath.Glob(pattern + cgroupParent(dir)) // the pattern is valid
		for _, top := range tops {
			_ = filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
				if err == nil && entry.IsDir() {
					groups = append(groups, path)
				}
				return nil // a group removed meanwhile is no error
			})
		}
	}
	slices.Reverse(groups)
	return groups
}

func removeCgroups(dir string) error {
	var errs []error
	for _, group := range cgroupsOf(dir) {
		if err := unix.Rmdir(group); err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("control group %s: %w", group, err))
		}
	}
	return errors.Join(errs...)
}

func unmountBelow(dir string) error {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	var targets []string
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			targets = append(targets, fields[4])
		}
	}
	for _, target := range slices.Backward(targets) { // the last mounted is on top
		if err := unix.Unmount(target, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("unmount %s: %w", target, err)
		}
	}
	return nil
}

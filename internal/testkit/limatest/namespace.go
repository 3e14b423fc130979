//go:build linux

package limatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// namespace is a virtual machine that is a mount namespace: sandboxes can be made in it.
type namespace struct{}

func (namespace) end(name string) error { return End(dirOf(name)) }

// End ends the processes inside of the virtual machines below a directory, sandboxes too,
// and waits until they are gone: each has the overlay of its virtual machine among its
// mounts.
func End(dir string) error {
	for range 500 {
		left, err := killInside(dir)
		if err != nil || left == 0 {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("processes below %s do not end", dir)
}

// killInside kills the processes inside and returns how many there were.
func killInside(dir string) (n int, err error) {
	all, err := filepath.Glob("/proc/[0-9]*/mountinfo")
	if err != nil {
		return 0, err
	}
	for _, file := range all {
		text, err := os.ReadFile(file)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || pid <= 1 || !strings.Contains(string(text), "upperdir="+dir+"/") {
			continue // it has ended, or is another's
		}
		n++
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return n, err
		}
	}
	return n, nil
}

// start starts this program again in a mount namespace of its own, which stays while the
// virtual machine runs.
func (namespace) start(name string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program := filepath.Join(dirOf(name), "limactl")
	if err := os.Symlink(self, program); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	cmd := exec.CommandContext(context.Background(), "unshare", "--mount", "--propagation", "private", program)
	cmd.Env = append(os.Environ(), insideVariable+"="+dirOf(name))
	ready, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		return fmt.Errorf("the root could not be made: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dirOf(name), "pid"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600); err != nil {
		return err
	}
	return boot(name)
}

// boot starts the gateway of a virtual machine that has its unit, if it is really to run.
func boot(name string) error {
	enabled := filepath.Join(dirOf(name), "upper/var/lib/limatest/atoll-gateway.service.enabled")
	if _, err := os.Stat(enabled); err != nil || os.Getenv(GatewayVariable) == "" {
		return nil
	}
	return namespace{}.shell(name, "/", []string{"systemctl", "restart", "atoll-gateway.service"})
}

// inside makes the root of a virtual machine and stays until it is stopped.
func inside(dir string) error {
	root := filepath.Join(dir, "root")
	options := fmt.Sprintf("lowerdir=/,upperdir=%s/upper,workdir=%[1]s/work", dir)
	if err := unix.Mount("overlay", root, "overlay", 0, options); err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	for _, d := range []string{"/proc", "/dev", "/sys"} {
		if err := unix.Mount(d, root+d, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("%s: %w", d, err)
		}
	}
	if err := mounts(dir, root); err != nil {
		return err
	}
	state, err := os.OpenRoot(dir) // which the new root does not have
	if err != nil {
		return err
	}
	defer state.Close()
	if err := pivot(root); err != nil {
		return err
	}
	_, _ = os.Stdout.Write([]byte("."))
	for {
		if is, err := state.ReadFile("state"); err != nil || string(is) != "Running" {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// shell runs a command in a directory inside.
func (namespace) shell(name, workdir string, argv []string) error {
	pid, err := os.ReadFile(filepath.Join(dirOf(name), "pid"))
	if err != nil {
		return err
	}
	if argv[0] == "sudo" {
		argv = argv[1:]
	}
	if usesSSH() {
		return overSSH(name, workdir, argv)
	}
	cmd := exec.CommandContext(context.Background(), "nsenter", append([]string{"--mount", "--target", string(pid), "--", "/bin/sh", "-c", `cd "$0" && exec "$@"`, workdir}, argv...)...)
	cmd.Env = []string{"PATH=" + searchPath, "HOME=/root"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

// pivot makes a directory the root. In a mere chroot no user namespace could be made, and
// so no sandbox.
func pivot(root string) error {
	if err := unix.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	return unix.Unmount(".", unix.MNT_DETACH)
}

// mounts mounts what the Lima file declares, and puts the stand-ins in place.
func mounts(dir, root string) error {
	list, err := declared(dir)
	if err != nil {
		return err
	}
	for _, m := range list {
		at := root + m.MountPoint
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.Location, at, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("%s: %w", m.Location, err)
		}
		if !m.Writable {
			if err := unix.Mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
				return err
			}
		}
	}
	if err := copyStandIns(root + standInDir); err != nil || os.Getenv(GatewayVariable) == "" {
		return err
	}
	return os.WriteFile(root+standInDir+"/gateway", nil, 0o600)
}

//go:build linux

// Package limatest is a limactl for tests. It keeps its virtual machines as directories,
// and runs commands "inside" in a mount namespace with a root of its own: this
// machine's files below, a directory of the virtual machine above, and the mounts that
// the Lima file declares. systemctl and nft there only note what they were asked: the
// network is this machine's own.
package limatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"
)

// The variables of the stand-in.
const (
	HomeVariable    = "LIMA_HOME"    // where virtual machines are
	VersionVariable = "LIMA_VERSION" // what --version says
	insideVariable  = "LIMATEST_INSIDE"
)

// Install puts a limactl into a directory that is the calling test program, whose
// TestMain calls Main if its name is limactl.
func Install(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return os.Symlink(self, filepath.Join(dir, "limactl"))
}

// Called reports whether this process was started as limactl.
func Called() bool { return filepath.Base(os.Args[0]) == "limactl" }

// Main is the program limactl; it returns the exit code.
func Main(args []string) int {
	err := run(args)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "limactl:", err)
		return 1
	}
	return 0
}

// run carries out one command line.
func run(args []string) error {
	if dir := os.Getenv(insideVariable); dir != "" {
		return inside(dir)
	}
	if slices.Equal(args, []string{"--version"}) {
		fmt.Fprintln(os.Stdout, "limactl version", os.Getenv(VersionVariable))
		return nil
	}
	name := args[len(args)-1]
	switch args[0] {
	case "list":
		return list()
	case "create":
		return create(strings.TrimPrefix(args[2], "--name="), name)
	case "start":
		return start(name)
	case "stop":
		return errors.Join(setState(name, "Stopped"), End(dirOf(name)))
	case "delete":
		return errors.Join(End(dirOf(name)), os.RemoveAll(dirOf(name)))
	case "shell":
		return shell(args[2], strings.TrimPrefix(args[1], "--workdir="), args[3:])
	}
	return fmt.Errorf("unknown command %q", args[0])
}

// End ends the processes inside of the virtual machines below a directory, sandboxes too:
// each has the overlay of its virtual machine among its mounts.
func End(dir string) error {
	all, err := filepath.Glob("/proc/[0-9]*/mountinfo")
	if err != nil {
		return err
	}
	for _, file := range all {
		text, err := os.ReadFile(file)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || pid <= 1 || !strings.Contains(string(text), "upperdir="+dir+"/") {
			continue // it has ended, or is another's
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

func dirOf(name string) string { return filepath.Join(os.Getenv(HomeVariable), name) }

func list() error {
	entries, err := os.ReadDir(os.Getenv(HomeVariable))
	if err != nil {
		return err
	}
	for _, e := range entries {
		state, err := os.ReadFile(filepath.Join(dirOf(e.Name()), "state"))
		if err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode(map[string]string{"name": e.Name(), "status": string(state), "dir": dirOf(e.Name())}); err != nil {
			return err
		}
	}
	return nil
}

func create(name, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, dir := range []string{"upper", "work", "root"} {
		if err := os.MkdirAll(filepath.Join(dirOf(name), dir), 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dirOf(name), "lima.yaml"), text, 0o600); err != nil {
		return err
	}
	return setState(name, "Stopped")
}

func setState(name, state string) error {
	return os.WriteFile(filepath.Join(dirOf(name), "state"), []byte(state), 0o600)
}

// start starts this program again in a mount namespace of its own, which stays while the
// virtual machine runs.
func start(name string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program := filepath.Join(dirOf(name), "limactl")
	if err := os.Symlink(self, program); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := setState(name, "Running"); err != nil {
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
	return os.WriteFile(filepath.Join(dirOf(name), "pid"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600)
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
func shell(name, workdir string, argv []string) error {
	pid, err := os.ReadFile(filepath.Join(dirOf(name), "pid"))
	if err != nil {
		return err
	}
	if argv[0] == "sudo" {
		argv = argv[1:]
	}
	cmd := exec.CommandContext(context.Background(), "nsenter", append([]string{"--mount", "--target", string(pid), "--", "/bin/sh", "-c", `cd "$0" && exec "$@"`, workdir}, argv...)...)
	cmd.Env = []string{"PATH=/opt/limatest:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
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

// mounts mounts what the Lima file declares, and puts the stand-in of systemctl in place.
func mounts(dir, root string) error {
	text, err := os.ReadFile(filepath.Join(dir, "lima.yaml"))
	if err != nil {
		return err
	}
	var file struct {
		Mounts []struct {
			Location   string `yaml:"location"`
			MountPoint string `yaml:"mountPoint"`
			Writable   bool   `yaml:"writable"`
		} `yaml:"mounts"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return err
	}
	for _, m := range file.Mounts {
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
	return installSystemctl(root)
}

// systemctl notes which units are enabled and run.
const systemctl = `#!/bin/sh
mkdir -p /var/lib/limatest
for unit; do :; done
case $1 in
is-enabled) [ -e "/var/lib/limatest/$unit.enabled" ] ;;
is-active) [ -e "/var/lib/limatest/$unit.active" ] ;;
enable) [ -e "/etc/systemd/system/$unit" ] || [ -e "/lib/systemd/system/$unit" ] || exit 1; : >"/var/lib/limatest/$unit.enabled" ;;
restart) echo "$unit" >>/var/lib/limatest/restarts; : >"/var/lib/limatest/$unit.active" ;;
esac
`

// nft has a table while the unit that loads it runs.
const nft = `#!/bin/sh
[ "$*" = "list table inet atoll" ] && [ -e /var/lib/limatest/atoll-firewall.service.active ]
`

func installSystemctl(root string) error {
	if err := os.MkdirAll(root+"/opt/limatest", 0o755); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(root+"/opt/limatest/systemctl", []byte(systemctl), 0o755), os.WriteFile(root+"/opt/limatest/nft", []byte(nft), 0o755))
}

package linux

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/advice"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/walls"
)

// try builds the walls of a sandbox with nothing in it, and takes them down. No
// reading of settings tells as surely what this machine lets us do.
func (r *Runtime) try() []sandbox.Gap {
	err := r.tryOnce()
	if err == nil {
		return nil
	}
	return []sandbox.Gap{{Field: "backend", Reason: "this machine does not let us build a sandbox: " + err.Error(), Remedy: advice.Of(err)}}
}

func (r *Runtime) tryOnce() error {
	guest, err := r.shelf.program()
	if err != nil {
		return err
	}
	filter, err := r.filter()
	if err != nil {
		return err
	}
	user := account{os.Geteuid(), os.Getegid()}
	d := &draft{spec: &sandbox.Spec{}, Blueprint: walls.Blueprint{
		Hostname: "probe", UID: user.uid, GID: user.gid, Become: privileged(), ProbeOnly: true, Filter: filter,
		Root:   walls.Mount{Kind: walls.Tmpfs, Target: "/"},
		Mounts: []walls.Mount{{Kind: walls.Tmpfs, Target: "/dev"}, {Kind: walls.Proc, Target: "/proc"}, {Kind: walls.Sysfs, Target: "/sys"}},
	}}
	e, err := conceive(guest, d, nil)
	if err != nil {
		return err
	}
	err = e.deliver(&d.Blueprint)
	_ = e.abort()
	return hinted(err)
}

// hinted adds what to do about a host that refuses.
func hinted(err error) error {
	failed, ok := errors.AsType[*buildError](err)
	if !ok {
		return err
	}
	switch {
	case failed.Step == "mounts" && errors.Is(err, syscall.EPERM):
		return advice.With(err, "inside a container, /proc must be fully visible: run that container with --security-opt systempaths=unconfined, or use sandbox.backend docker")
	case errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.EINVAL):
		return advice.With(err, "Linux 5.12 or newer is needed")
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		return advice.With(err, Restriction().hint())
	}
	return err
}

// forbidden explains a start that the kernel refused.
func forbidden(err error) error {
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EUSERS) {
		return advice.With(fmt.Errorf("user namespaces: %w: %w", sandbox.ErrUnsupported, err), Restriction().hint())
	}
	return err
}

// Restrict is a setting of the host that keeps ordinary users from making user
// namespaces.
type Restrict struct {
	Name  string // "" if none was found
	Path  string // of the setting
	Value string // that lifts it
}

// restrictions by the files that hold them.
var restrictions = []struct {
	name, path string
	restricts  func(string) bool
	remedy     string
}{
	{"user.max_user_namespaces", "/proc/sys/user/max_user_namespaces", func(v string) bool { return v == "0" }, "15000"},
	{"kernel.unprivileged_userns_clone", "/proc/sys/kernel/unprivileged_userns_clone", func(v string) bool { return v == "0" }, "1"},
	{"kernel.apparmor_restrict_unprivileged_userns", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", func(v string) bool { return v != "0" }, "0"},
}

// Restriction finds the setting that stands in the way.
func Restriction() Restrict {
	for _, r := range restrictions {
		value, err := os.ReadFile(r.path)
		if err == nil && r.restricts(strings.TrimSpace(string(value))) && (r.remedy == "15000" || unix.Geteuid() != 0) {
			return Restrict{Name: r.name, Path: r.path, Value: r.remedy}
		}
	}
	return Restrict{}
}

// hint is what to do about it.
func (r Restrict) hint() string {
	if r.Name == "" {
		return "the host, or the container this runs in, forbids user namespaces: allow them (seccomp, --privileged), or use sandbox.backend docker"
	}
	return fmt.Sprintf("atoll doctor --fix, or: sudo sysctl -w %s=%s", r.Name, r.Value)
}

func selinuxEnabled() bool {
	_, err := os.Stat("/sys/fs/selinux/enforce")
	return err == nil
}

package setup

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"syscall"

	"github.com/atoll-run/atoll/internal/runtime/blueprint"
	"golang.org/x/sys/unix"
)

// Run reads the blueprint, builds the sandbox, and executes the guest. It returns only if
// that failed, after it has reported why, or if the blueprint is only a probe.
func Run() error {
	runtime.LockOSThread() // capabilities, limits and filters belong to threads
	// No inherited descriptor reaches the guest.
	if err := unix.CloseRange(blueprint.Control, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return err
	}
	control := os.NewFile(blueprint.Control, "control")
	var plan blueprint.Blueprint
	if err := blueprint.Receive(control, &plan); err != nil {
		return err // the runtime has ended
	}
	files, err := blueprint.ReceiveFiles(control, plan.Files)
	if err != nil {
		return err
	}
	err = build(&plan, files)
	if err == nil {
		err = step("report", blueprint.Send(control, &blueprint.Report{OK: true}))
	}
	if err == nil && plan.ProbeOnly {
		return nil
	}
	if err == nil {
		err = step("guest", unix.Exec(plan.Argv[0], plan.Argv, plan.Env))
	}
	return errors.Join(err, blueprint.Send(control, reportOf(err)))
}

// build performs all steps before the exec of the guest.
func build(plan *blueprint.Blueprint, files []int) error {
	b := &builder{plan: plan, files: files, sources: map[*blueprint.Source]int{}}
	for _, s := range []struct {
		name string
		do   func() error
	}{
		{"quotas", setQuotas},
		{"namespaces", b.unshareCgroupAndTime},
		{"sources", b.openSources},
		{"user", b.becomeUser},
		{"root", b.makeRoot},
		{"mounts", b.makeTree},
		{"pivot", b.pivot},
		{"hostname", b.setHostname},
		{"loopback", EnableLoopback},
		{"limits", b.setLimits},
		{"socket", b.listen},
		{"capabilities", dropCapabilities},
		{"workdir", b.enterWorkdir},
		{"landlock", b.installLandlock},
		{"seccomp", b.installFilter},
	} {
		if err := step(s.name, s.do()); err != nil {
			return err
		}
	}
	return nil
}

// builder holds the state between the steps.
type builder struct {
	plan     *blueprint.Blueprint
	files    []int                     // descriptors that the runtime has passed
	sources  map[*blueprint.Source]int // detached mounts
	scratch  int                       // a tmpfs for the time of the set-up
	root     int                       // the future root
	overlays int                       // how many were mounted, for names in the scratch file system
	empty    int                       // an empty, read-only file system to hide things with; 0 if there is none yet
}

// stepError is an error with the step that failed.
type stepError struct {
	step string
	err  error
}

func (e *stepError) Error() string { return e.step + ": " + e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

func step(name string, err error) error {
	if err == nil {
		return nil
	}
	return &stepError{name, err}
}

func reportOf(err error) *blueprint.Report {
	r := &blueprint.Report{Error: err.Error()}
	if s, ok := errors.AsType[*stepError](err); ok {
		r.Step, r.Error = s.step, s.err.Error()
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		r.Errno = int(errno)
	}
	return r
}

// unshareCgroupAndTime creates the namespaces that clone could not: that of control
// groups, because the process had to be in its group before, and that of time.
func (b *builder) unshareCgroupAndTime() error {
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	err := unix.Unshare(unix.CLONE_NEWTIME)
	if err == unix.EINVAL { // before Linux 5.6; the clocks cannot be set from inside anyhow
		return nil
	}
	if err != nil {
		return fmt.Errorf("time: %w", err)
	}
	return nil
}

// becomeUser switches to the sandbox's user if root started the process; otherwise the
// mapping has made it that user. Only this thread switches: the others end with execve.
func (b *builder) becomeUser() error {
	if !b.plan.Become {
		return nil
	}
	// User 0 of the namespace would lose its capabilities with its number.
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, noSetuidFixup, 0, 0, 0); err != nil {
		return fmt.Errorf("securebits: %w", err)
	}
	if err := unix.Setgroups(nil); err != nil {
		return fmt.Errorf("groups: %w", err)
	}
	uid, gid := uintptr(b.plan.UID), uintptr(b.plan.GID)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, gid, gid, gid); errno != 0 {
		return fmt.Errorf("gid %d: %w", gid, errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid); errno != 0 {
		return fmt.Errorf("uid %d: %w", uid, errno)
	}
	return nil
}

func (b *builder) setHostname() error { return unix.Sethostname([]byte(b.plan.Hostname)) }

func (b *builder) setLimits() error {
	for _, l := range b.plan.Limits {
		if err := unix.Prlimit(0, l.Resource, &unix.Rlimit{Cur: l.Soft, Max: l.Hard}, nil); err != nil {
			return fmt.Errorf("resource %d: %w", l.Resource, err)
		}
	}
	return nil
}

func (b *builder) enterWorkdir() error {
	if b.plan.Workdir == "" {
		return nil
	}
	if err := unix.Chdir(b.plan.Workdir); err != nil {
		return fmt.Errorf("%s: %w", b.plan.Workdir, err)
	}
	return nil
}

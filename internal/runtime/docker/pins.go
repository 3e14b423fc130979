package docker

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// pin remembers which file was checked. An engine takes a bind source as a path, and
// follows it when the container starts: what was checked may by then be something
// else. A pin is compared when the container has been created, and again with what
// really appeared inside when it has been started; until then only the guest runs
// there, and no command has been sent to it.
type pin struct {
	source string // canonical
	target string
	id     hostpath.ID
}

// errSourceReplaced is the reason of every mismatch.
var errSourceReplaced = errors.New("is no longer the file that was checked")

func sourceReplaced(source string) error {
	return errhint.With(fmt.Errorf("mount source %s: %w: %w", source, errSourceReplaced, sandbox.ErrDenied),
		"find out who can replace that path; if it was you, use the sandbox again and it is made anew")
}

var errProcessGone = errors.New("its first process is gone")

// pinMount looks up one mount of a spec.
func pinMount(m sandbox.Mount) (pin, error) {
	p, err := pinPath(m.Source, m.Target)
	if err != nil {
		return p, err
	}
	if checked := (hostpath.ID{Device: m.Device, Inode: m.Inode}); checked != (hostpath.ID{}) && checked != p.id {
		return p, sourceReplaced(m.Source)
	}
	return p, nil
}

func pinPath(source, target string) (pin, error) {
	facts, err := hostpath.Identify(source)
	if err != nil {
		return pin{}, fmt.Errorf("mount source: %w", err)
	}
	if !facts.Exists {
		return pin{}, errhint.With(fmt.Errorf("mount source %s: %w", source, fs.ErrNotExist), "create it first")
	}
	return pin{source: facts.Canonical, target: target, id: facts.ID()}, nil
}

// mount is the pinned source as the engine mounts it. A read-only mount leaves
// out the file systems mounted below its source: engines before Docker 25 would
// bring them in writable.
func (p pin) mount(readOnly bool) mount.Mount {
	return mount.Mount{
		Type: mount.TypeBind, Source: p.source, Target: p.target, ReadOnly: readOnly,
		BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate, NonRecursive: readOnly},
	}
}

// hold checks that the path still leads where it did, through no link.
func (p pin) hold() error {
	now, err := pinPath(p.source, p.target)
	if err != nil {
		return err
	}
	if now != p {
		return sourceReplaced(p.source)
	}
	return nil
}

// pinsOf reads the bind mounts that an engine recorded for a container.
func pinsOf(found *container.InspectResponse) ([]pin, error) {
	var pins []pin
	for _, m := range found.Mounts {
		if m.Type != mount.TypeBind {
			continue
		}
		p, err := pinPath(m.Source, m.Destination)
		if err != nil {
			return nil, err
		}
		if p.source != m.Source {
			return nil, sourceReplaced(m.Source)
		}
		pins = append(pins, p)
	}
	return pins, nil
}

// checkUnchanged compares what was checked with what the engine is about to mount. A
// hard link, or a directory in the place of another, shows nowhere else.
func checkUnchanged(checked, now []pin) error {
	for _, p := range now {
		for _, then := range checked {
			if then.target == p.target && then.id != p.id {
				return sourceReplaced(p.source)
			}
		}
	}
	return nil
}

// checkMounted compares what is mounted in the container of process pid with the
// pins. Only root may look there; others rely on the checks before the start.
func checkMounted(pid int, pins []pin) error {
	root, err := unix.Open(fmt.Sprintf("/proc/%d/root", pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return nil
	}
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
		return errProcessGone
	}
	if err != nil {
		return fmt.Errorf("root of process %d: %w", pid, err)
	}
	defer unix.Close(root)
	for _, p := range pins {
		if id, err := identifyIn(root, p.target); err != nil {
			return fmt.Errorf("mount %s: %w", p.target, err)
		} else if id != p.id {
			return sourceReplaced(p.source)
		}
	}
	return nil
}

// Keeps reports whether the sources of mounts, as they were checked, are what the
// running sandbox has mounted; true if this user may not read its mounts.
func (i *Instance) Keeps(mounts []sandbox.Mount) bool {
	var pins []pin
	for _, m := range mounts {
		// The root of an overlay has an identity of its own; package overlay looks at the base's.
		if id := (hostpath.ID{Device: m.Device, Inode: m.Inode}); id != (hostpath.ID{}) && m.Overlay == nil {
			pins = append(pins, pin{source: m.Source, target: m.Target, id: id})
		}
	}
	return !errors.Is(checkMounted(i.firstProcess(), pins), errSourceReplaced)
}

// identifyIn looks up a path as a process with that root sees it.
func identifyIn(root int, path string) (hostpath.ID, error) {
	fd, err := unix.Openat2(root, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return hostpath.ID{}, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return hostpath.ID{}, err
	}
	return hostpath.ID{Device: st.Dev, Inode: st.Ino}, nil
}

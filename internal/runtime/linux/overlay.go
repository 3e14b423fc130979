package linux

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/runtime/blueprint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// addMount adds one mount of the spec.
func (d *draft) addMount(m sandbox.Mount) error {
	target, want := path.Clean(m.Target), hostpath.ID{Device: m.Device, Inode: m.Inode}
	if m.Overlay == nil {
		return d.bind(m.Source, target, m.ReadOnly, want)
	}
	if err := overlay.BeforeMount(m.Overlay.Dir); err != nil {
		return err
	}
	base, err := d.sources.add(m.Source, want)
	if err != nil {
		return err
	}
	changes, err := d.sources.add(m.Overlay.Dir, hostpath.ID{})
	if err != nil {
		return err
	}
	return d.overlay(m.Overlay, target, base, changes)
}

// bindChanges shows the guest what is above the bases of overlays, which it
// measures. Nothing is written there but through the overlays.
func (d *draft) bindChanges() error {
	for i, m := range d.spec.Mounts {
		if m.Overlay == nil {
			continue
		}
		if err := d.bind(filepath.Join(m.Overlay.Dir, "upper"), sandbox.ChangesTarget(i), true, hostpath.ID{}); err != nil {
			return err
		}
	}
	return nil
}

// mountOverlay mounts an overlay that is attached nowhere, of two sources that are
// open. Root does so outside of the sandbox's user namespace: the kernel can then
// copy files of every owner and rename directories.
func (s *sources) mountOverlay(o *sandbox.OverlayMount, base, changes *blueprint.Source) (*blueprint.Source, error) {
	dir := s.fdPath(changes)
	options := []string{"lowerdir", s.fdPath(base), "upperdir", dir + "/upper", "workdir", dir + "/work"}
	flags := []string{"userxattr"}
	if o.Marks == overlay.MarksTrusted {
		options, flags = append(options, "redirect_dir", "on"), nil
	}
	if o.Volatile {
		flags = append(flags, "volatile")
	}
	fd, err := newOverlay(options, flags)
	if err != nil {
		return nil, err
	}
	s.files = append(s.files, os.NewFile(uintptr(fd), o.Dir))
	return &blueprint.Source{File: len(s.files)}, nil
}

// fdPath returns a path to a source that cannot be exchanged: it names a descriptor.
func (s *sources) fdPath(source *blueprint.Source) string {
	return fmt.Sprintf("/proc/self/fd/%d", s.files[source.File-1].Fd())
}

// newOverlay makes a detached mount. Options are names and values in turn.
func newOverlay(options, flags []string) (int, error) {
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fs)
	for i := 0; i < len(options); i += 2 {
		if err := unix.FsconfigSetString(fs, options[i], options[i+1]); err != nil {
			return 0, fmt.Errorf("option %s: %w", options[i], err)
		}
	}
	for _, flag := range flags {
		if err := unix.FsconfigSetFlag(fs, flag); err != nil {
			return 0, fmt.Errorf("option %s: %w", flag, err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return 0, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}

// settleOverlays brings what a sandbox that has ended changed to disk: its mounts
// are volatile.
func (i *Instance) settleOverlays() error {
	for _, m := range i.record.Spec.Mounts {
		if m.Overlay == nil {
			continue
		}
		if err := overlay.AfterStop(m.Overlay.Dir); err != nil && !errors.Is(err, overlay.ErrNone) {
			return err
		}
	}
	return nil
}

func volatileOption(o *sandbox.OverlayMount) string {
	if o.Volatile {
		return "volatile"
	}
	return ""
}

// OverlayMarks returns in which namespace the kernel can mark the files of an
// overlay that this process, or the sandbox that it starts, mounts.
func OverlayMarks() overlay.Marks {
	if privileged() && inFirstUserNamespace() {
		return overlay.MarksTrusted
	}
	return overlay.MarksUser
}

// inFirstUserNamespace reports whether this process is in the user namespace that
// the kernel began with: only there does it honour trusted attributes.
func inFirstUserNamespace() bool {
	var st unix.Stat_t
	const first = 0xEFFFFFFD // PROC_USER_INIT_INO
	return unix.Stat("/proc/self/ns/user", &st) == nil && st.Ino == first
}

// overlayGaps returns overlays that cannot be mounted here.
func overlayGaps(spec *sandbox.Spec) (gaps []sandbox.Gap) {
	for _, m := range spec.Mounts {
		if m.Overlay == nil || m.Overlay.Marks == "" { // not prepared yet
			continue
		}
		if marks := OverlayMarks(); m.Overlay.Marks != marks {
			gaps = append(gaps, sandbox.Gap{Field: "overlay.kind",
				Reason: fmt.Sprintf("the changes in %s were made with %s attributes, and this process can mount with %s ones only", filepath.Dir(m.Overlay.Dir), m.Overlay.Marks, marks),
				Remedy: "run it as the user who made it, or discard the changes with atoll sync reset"})
		}
	}
	return gaps
}

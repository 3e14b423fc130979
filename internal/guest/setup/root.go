package setup

import (
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/runtime/blueprint"
	"golang.org/x/sys/unix"
)

// mountPoints are directories of which every host has at least one. The scratch file
// system is mounted over it, in this mount namespace only.
var mountPoints = []string{"/mnt", "/tmp", "/usr", "/"}

// makeRoot mounts the future root below the scratch file system.
func (b *builder) makeRoot() (err error) {
	if b.scratch, err = b.mountScratch(); err != nil {
		return fmt.Errorf("scratch: %w", err)
	}
	made, err := b.rootMount()
	if err != nil {
		return err
	}
	place, err := makeDir(b.scratch, "root", 0o755)
	if err != nil {
		return err
	}
	defer unix.Close(place)
	if err := attach(made, place); err != nil {
		return err
	}
	b.root = made
	return nil
}

func (b *builder) rootMount() (int, error) {
	switch root := &b.plan.Root; root.Kind {
	case blueprint.Overlay:
		return b.overlay(root)
	case blueprint.Tmpfs:
		return tmpfs(root)
	default:
		return 0, fmt.Errorf("a root of kind %q: %w", root.Kind, unix.EINVAL)
	}
}

func (b *builder) mountScratch() (int, error) {
	scratch, err := newFilesystem("tmpfs", "mode=0755", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return 0, err
	}
	for _, dir := range mountPoints {
		place, openErr := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err = openErr; err != nil {
			continue
		}
		err = attach(scratch, place)
		unix.Close(place)
		if err == nil {
			return scratch, nil
		}
	}
	return 0, err
}

// overlay mounts an overlay of directories. Each is attached below the scratch file system
// first: the kernel takes them by path in this mount namespace.
func (b *builder) overlay(m *blueprint.Mount) (int, error) {
	b.overlays++
	var lowers []string
	for i := range m.Lowers {
		path, err := b.attachScratch(fmt.Sprintf("l%d.%d", b.overlays, i), &m.Lowers[i])
		if err != nil {
			return 0, fmt.Errorf("layer %d: %w", i, err)
		}
		lowers = append(lowers, path)
	}
	upper, err := b.upper(m)
	if err != nil {
		return 0, fmt.Errorf("upper: %w", err)
	}
	attributes := 0
	if m.Target != "/" {
		attributes = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	}
	options := []string{"userxattr", m.Options, "upperdir=" + upper + "/upper", "workdir=" + upper + "/work"}
	return newFilesystem("overlay", strings.Join(append(options, lowerOptions(lowers)...), ","), attributes)
}

// longestValue is the longest value of a mount option.
const longestValue = 255

// lowerOptions returns the layers as one option, or, if that is too long, as one option
// each, which needs Linux 6.7.
func lowerOptions(lowers []string) []string {
	if all := strings.Join(lowers, ":"); len(all) <= longestValue {
		return []string{"lowerdir=" + all}
	}
	var options []string
	for _, lower := range lowers {
		options = append(options, "lowerdir+="+lower)
	}
	return options
}

// upper returns the directory for an overlay's changes: that of the blueprint, or one in
// memory for a root that becomes read-only.
func (b *builder) upper(m *blueprint.Mount) (string, error) {
	dir := fmt.Sprintf("u%d", b.overlays)
	if m.Source != nil {
		return b.attachScratch(dir, m.Source)
	}
	for _, name := range []string{dir, dir + "/upper", dir + "/work"} {
		if err := unix.Mkdirat(b.scratch, name, 0o755); err != nil {
			return "", err
		}
	}
	return fdPath(b.scratch) + "/" + dir, nil
}

// attachScratch mounts a source below the scratch file system, and returns its path.
func (b *builder) attachScratch(name string, s *blueprint.Source) (string, error) {
	place, err := makeDir(b.scratch, name, 0o755)
	if err != nil {
		return "", err
	}
	defer unix.Close(place)
	if err := attach(b.sources[s], place); err != nil {
		return "", err
	}
	return fdPath(b.scratch) + "/" + name, nil
}

func fdPath(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// pivot changes the root directory, and unmounts the host's files.
func (b *builder) pivot() error {
	if err := unix.Fchdir(b.root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	// The old root is mounted over the new one now.
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("old root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	if b.plan.ReadOnly {
		return seal("/", 0)
	}
	return nil
}

// seal makes a mount read-only.
func seal(path string, flags uint) error {
	return unix.MountSetattr(unix.AT_FDCWD, path, flags, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

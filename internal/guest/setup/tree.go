package setup

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/atoll-run/atoll/internal/runtime/blueprint"
	"golang.org/x/sys/unix"
)

// makeTree performs the mounts of the blueprint.
func (b *builder) makeTree() error {
	for i := range b.plan.Mounts {
		m := &b.plan.Mounts[i]
		if err := b.makeMount(m); err != nil {
			return fmt.Errorf("%s %s: %w", m.Kind, m.Target, err)
		}
	}
	return nil
}

func (b *builder) makeMount(m *blueprint.Mount) error {
	switch m.Kind {
	case blueprint.Dir:
		fd, err := b.makeDirs(m.Target, m.Mode)
		if err == nil {
			unix.Close(fd)
		}
		return err
	case blueprint.File:
		return b.writeFile(m)
	case blueprint.Link:
		return b.link(m)
	case blueprint.Mask:
		return b.mask(m.Target)
	case blueprint.Seal:
		return b.sealPath(m.Target)
	case blueprint.SealTree:
		return b.sealMount(m.Target)
	case blueprint.Bind:
		return b.bind(m)
	}
	return b.mountNew(m)
}

// mountNew mounts a new file system.
func (b *builder) mountNew(m *blueprint.Mount) error {
	made, err := b.filesystem(m)
	if err != nil {
		return err
	}
	defer unix.Close(made)
	place, err := b.makeDirs(m.Target, 0o755)
	if err != nil {
		return err
	}
	defer unix.Close(place)
	return attach(made, place)
}

func (b *builder) filesystem(m *blueprint.Mount) (int, error) {
	const closed = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC
	switch m.Kind {
	case blueprint.Tmpfs:
		return tmpfs(m)
	case blueprint.Proc:
		return newProc(m.Options, closed)
	case blueprint.Sysfs:
		return newFilesystem("sysfs", m.Options, closed|unix.MOUNT_ATTR_RDONLY)
	case blueprint.Mqueue:
		return newFilesystem("mqueue", m.Options, closed)
	case blueprint.Devpts:
		return newFilesystem("devpts", m.Options, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
	case blueprint.Overlay:
		return b.overlay(m)
	}
	return 0, fmt.Errorf("kind %q: %w", m.Kind, unix.EINVAL)
}

func tmpfs(m *blueprint.Mount) (int, error) {
	attributes := unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	if m.NoExec {
		attributes |= unix.MOUNT_ATTR_NOEXEC
	}
	if m.ReadOnly {
		attributes |= unix.MOUNT_ATTR_RDONLY
	}
	return newFilesystem("tmpfs", m.Options, attributes)
}

// newFilesystem creates a file system and returns its detached mount.
func newFilesystem(kind, options string, attributes int) (int, error) {
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", kind, err)
	}
	defer unix.Close(fs)
	for option := range strings.SplitSeq(options, ",") {
		if err := setOption(fs, option); err != nil {
			return 0, fmt.Errorf("%s option %q: %w", kind, option, err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return 0, fmt.Errorf("%s: %w", kind, err)
	}
	mount, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attributes)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", kind, err)
	}
	return mount, nil
}

func setOption(fs int, option string) error {
	name, value, hasValue := strings.Cut(option, "=")
	switch {
	case option == "":
		return nil
	case hasValue:
		return unix.FsconfigSetString(fs, name, value)
	}
	return unix.FsconfigSetFlag(fs, name)
}

// attach attaches a detached mount at a directory or file.
func attach(mount, place int) error {
	return unix.MoveMount(mount, "", place, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// bind mounts a source recursively, without set-user-ID and device files, except for the
// devices that are bound one by one.
func (b *builder) bind(m *blueprint.Mount) error {
	tree := b.sources[m.Source]
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID, Propagation: unix.MS_PRIVATE}
	kind, err := kindOf(tree)
	if err != nil {
		return err
	}
	if kind != unix.S_IFCHR {
		attr.Attr_set |= unix.MOUNT_ATTR_NODEV
	}
	if m.ReadOnly {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if m.NoExec {
		attr.Attr_set |= unix.MOUNT_ATTR_NOEXEC
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return err
	}
	place, err := b.mountPointFor(m.Target, kind)
	if err != nil {
		return err
	}
	defer unix.Close(place)
	return attach(tree, place)
}

func kindOf(fd int) (uint32, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return st.Mode & unix.S_IFMT, err
}

// mountPointFor creates a directory for a directory, and an empty file for other files.
func (b *builder) mountPointFor(target string, kind uint32) (int, error) {
	if kind == unix.S_IFDIR {
		return b.makeDirs(target, 0o755)
	}
	if fd, err := b.lookup(target, unix.O_PATH); err == nil {
		return fd, nil
	}
	parent, err := b.makeDirs(path.Dir(target), 0o755)
	if err != nil {
		return 0, err
	}
	defer unix.Close(parent)
	fd, err := unix.Openat(parent, path.Base(target), unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_WRONLY, 0o644)
	if err != nil {
		return 0, err
	}
	unix.Close(fd)
	return b.lookup(target, unix.O_PATH)
}

// lookup opens a path as the sandbox will see it: links are resolved within the root.
func (b *builder) lookup(target string, flags uint64) (int, error) {
	return unix.Openat2(b.root, target, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
}

// makeDirs creates a directory and those above it, and opens it.
func (b *builder) makeDirs(target string, mode uint32) (int, error) {
	fd, err := b.lookup(target, unix.O_PATH|unix.O_DIRECTORY)
	if !errors.Is(err, unix.ENOENT) || target == "/" {
		return fd, err
	}
	parent, err := b.makeDirs(path.Dir(target), 0o755)
	if err != nil {
		return 0, err
	}
	defer unix.Close(parent)
	return makeDir(parent, path.Base(target), mode)
}

func makeDir(parent int, name string, mode uint32) (int, error) {
	if err := unix.Mkdirat(parent, name, mode); err != nil && !errors.Is(err, unix.EEXIST) {
		return 0, err
	}
	if mode&^0o777 != 0 { // mkdir takes no more than the permissions
		if err := unix.Fchmodat(parent, name, mode, 0); err != nil {
			return 0, err
		}
	}
	return unix.Openat(parent, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

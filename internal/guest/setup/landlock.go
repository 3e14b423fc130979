package setup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock is a second protection beside read-only mounts: files can be changed only below
// the writable paths, and device nodes cannot be created. On a kernel without Landlock the
// mounts are the only one; doctor reports that.

// landlockRights are the rights that are restricted, by the version of Landlock that
// introduced them.
var landlockRights = []struct {
	version int
	rights  uint64
}{
	{1, unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM},
	{2, unix.LANDLOCK_ACCESS_FS_REFER},
	{3, unix.LANDLOCK_ACCESS_FS_TRUNCATE},
}

// neverGranted are rights that no path has.
const neverGranted = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK

// scopes keep signals and abstract sockets inside; since version 6.
const (
	scopeVersion = 6
	scopes       = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
)

// rulesetAttr is struct landlock_ruleset_attr as of version 6.
type rulesetAttr struct{ fs, net, scoped uint64 }

// fileRights are the rights that apply to files that are not directories.
const fileRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE

func (b *builder) installLandlock() error {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno == unix.ENOSYS || errno == unix.EOPNOTSUPP {
		return nil
	}
	if errno != 0 {
		return errno
	}
	var granted uint64
	for _, c := range landlockRights {
		if int(version) >= c.version {
			granted |= c.rights
		}
	}
	ruleset, err := newRuleset(int(version), granted|neverGranted)
	if err != nil {
		return err
	}
	defer unix.Close(ruleset)
	for _, path := range b.plan.Writable {
		if err := allow(ruleset, path, granted); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return errno
	}
	return nil
}

func newRuleset(version int, handled uint64) (int, error) {
	attr := rulesetAttr{fs: handled}
	size := unsafe.Sizeof(attr.fs)
	if version >= scopeVersion {
		attr.scoped, size = scopes, unsafe.Sizeof(attr)
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(fd), nil
}

// allow grants rights below a path, if it exists.
func allow(ruleset int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	kind, err := kindOf(fd)
	if err != nil {
		return err
	}
	if kind != unix.S_IFDIR {
		rights &= fileRights
	}
	// struct landlock_path_beneath_attr is packed.
	var rule [12]byte
	binary.NativeEndian.PutUint64(rule[:], rights)
	binary.NativeEndian.PutUint32(rule[8:], uint32(fd))
	const pathBeneath = 1
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), pathBeneath, uintptr(unsafe.Pointer(&rule[0])), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

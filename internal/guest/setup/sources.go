package setup

import (
	"fmt"

	"github.com/atoll-run/atoll/internal/runtime/blueprint"
	"golang.org/x/sys/unix"
)

// openSources opens all host directories that are mounted, before the first mount covers
// any of them.
func (b *builder) openSources() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := b.openSourcesOf(&b.plan.Root); err != nil {
		return err
	}
	for i := range b.plan.Mounts {
		if err := b.openSourcesOf(&b.plan.Mounts[i]); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) openSourcesOf(m *blueprint.Mount) error {
	if m.Source != nil {
		if err := b.openSource(m.Source); err != nil {
			return fmt.Errorf("%s: %w", m.Target, err)
		}
	}
	for i := range m.Lowers {
		if err := b.openSource(&m.Lowers[i]); err != nil {
			return fmt.Errorf("layer %s: %w", m.Lowers[i].Path, err)
		}
	}
	return nil
}

// openSource clones the mount of a source, or takes the descriptor that the runtime passed.
func (b *builder) openSource(s *blueprint.Source) error {
	if s.File > len(b.files) {
		return fmt.Errorf("file %d of %d: %w", s.File, len(b.files), unix.EINVAL)
	}
	if s.File > 0 {
		b.sources[s] = b.files[s.File-1]
		return nil
	}
	at, err := unix.Openat2(unix.AT_FDCWD, s.Path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return fmt.Errorf("%s: %w", s.Path, err)
	}
	defer unix.Close(at)
	if err := checkUnchanged(at, s); err != nil {
		return err
	}
	tree, err := unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Path, err)
	}
	b.sources[s] = tree
	return nil
}

// checkUnchanged fails if a path is not the file that the runtime has checked.
func checkUnchanged(fd int, s *blueprint.Source) error {
	if s.Inode == 0 {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("%s: %w", s.Path, err)
	}
	if st.Dev != s.Device || st.Ino != s.Inode {
		return fmt.Errorf("%s is no longer the file that was checked: %w", s.Path, unix.ESTALE)
	}
	return nil
}

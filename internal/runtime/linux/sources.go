package linux

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/runtime/blueprint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// sources opens the host's files that a sandbox is made of. Root makes a detached
// mount of each, which cannot be replaced any more; for other users the new process
// does so before it enters its root, and checks device and inode.
type sources struct {
	files []*os.File // descriptors for the new process
}

// errSourceReplaced is the reason of every mismatch.
var errSourceReplaced = errors.New("is no longer the file that was checked")

func sourceReplaced(path string) error {
	return errhint.With(fmt.Errorf("mount source %s: %w: %w", path, errSourceReplaced, sandbox.ErrDenied),
		"find out who can replace that path; if it was you, use the sandbox again and it is made anew")
}

// add opens a path; want is what it must be, zero if that is not known.
func (s *sources) add(path string, want hostpath.ID) (*blueprint.Source, error) {
	facts, err := hostpath.Identify(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("mount source: %w", err)
	case !facts.Exists:
		return nil, errhint.With(fmt.Errorf("mount source %s: %w", path, os.ErrNotExist), "create it first")
	case want != (hostpath.ID{}) && facts.ID() != want:
		return nil, sourceReplaced(path)
	}
	source := &blueprint.Source{Path: facts.Canonical, Device: facts.Device, Inode: facts.Inode}
	if !privileged() {
		return source, nil
	}
	if source.File, err = s.detach(source); err != nil {
		return nil, fmt.Errorf("mount source %s: %w", path, err)
	}
	return source, nil
}

// detach makes a mount of a source that is attached nowhere, and returns which
// of the files it is.
func (s *sources) detach(source *blueprint.Source) (int, error) {
	at, err := unix.Openat2(unix.AT_FDCWD, source.Path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return 0, err
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return 0, err
	}
	if st.Dev != source.Device || st.Ino != source.Inode {
		return 0, sourceReplaced(source.Path)
	}
	tree, err := unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return 0, err
	}
	s.files = append(s.files, os.NewFile(uintptr(tree), source.Path))
	return len(s.files), nil
}

func (s *sources) close() {
	for _, f := range s.files {
		_ = f.Close()
	}
}

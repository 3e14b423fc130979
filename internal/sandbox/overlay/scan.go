package overlay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// tick is longer than the clock of any file system stands still.
const tick = 20 * time.Millisecond

// scan is one walk through a tree that writes a manifest of it.
type scan struct {
	ctx     context.Context
	out     *manifestWriter
	device  uint64 // mounts below the tree are not entered
	left    int
	limit   Limit // of regular files; zero: none
	files   int
	bytes   int64
	look    func(Candidate) // decides whether a file is hidden; nil: none is
	hashNew bool            // hash what changed a moment ago
	empty   emptyDirs       // are not entered
}

// errLimit means that a tree is larger than the limit of the scan.
var errLimit = errors.New("larger than the limit")

// run writes the manifest of the tree at root.
func (s *scan) run(root *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(root.Fd()), &st); err != nil {
		return err
	}
	s.device, s.left = st.Dev, MaxBase
	if err := s.dir(root, "", hostpath.ID{Device: st.Dev, Inode: st.Ino}, 0); err != nil {
		return err
	}
	return s.out.finish()
}

type subdirectory struct {
	name string
	id   hostpath.ID
}

func (s *scan) dir(dir *os.File, rel string, id hostpath.ID, depth int) error {
	names, err := sortedNames(dir, s.left)
	if err != nil {
		return fmt.Errorf("%.300q: %w", rel, err)
	}
	s.left -= len(names)
	var below []subdirectory
	for _, name := range names {
		st, err := statAt(dir, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return fmt.Errorf("%.300q: %w", path.Join(rel, name), err)
		}
		if err := s.entry(dir, name, rel, &st); err != nil {
			return fmt.Errorf("%.300q: %w", path.Join(rel, name), err)
		}
		if st.Mode&unix.S_IFMT == unix.S_IFDIR && st.Dev == s.device && !s.empty.has(int(dir.Fd()), name) {
			below = append(below, subdirectory{name, hostpath.ID{Device: st.Dev, Inode: st.Ino}})
		}
	}
	if err := errors.Join(s.ctx.Err(), s.out.endDir(rel, id)); err != nil {
		return err
	}
	return s.enter(dir, rel, below, depth+1)
}

func (s *scan) enter(dir *os.File, rel string, below []subdirectory, depth int) error {
	for _, sub := range below {
		at := path.Join(rel, sub.name)
		if depth > MaxDepth {
			return fmt.Errorf("%.300q: more than %d directories within each other", at, MaxDepth)
		}
		child, err := openDirAt(dir, sub.name)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
			continue // no one inside can read it either
		} else if err != nil {
			return fmt.Errorf("%.300q: %w", at, err)
		}
		err = s.dir(child, at, sub.id, depth)
		closeFile(child)
		if err != nil {
			return err
		}
	}
	return nil
}

// entry notes one entry.
func (s *scan) entry(dir *os.File, name, rel string, st *unix.Stat_t) (err error) {
	e := entryOf(st)
	switch {
	case e.isLink():
		e.Link, err = linkAt(dir, name)
	case e.isRegular():
		s.files++
		s.bytes += st.Blocks * 512
		if s.hashNew && time.Since(time.Unix(0, e.Ctime)) < tick {
			e.Sum, err = sumAt(dir, name)
		}
		if s.look != nil {
			s.look(Candidate{Path: path.Join(rel, name), Size: st.Size, dir: dir, name: name})
		}
	}
	if s.limit != (Limit{}) && (s.files > s.limit.Files || s.bytes > s.limit.Bytes) {
		return errLimit
	}
	s.out.add(name, e)
	return err
}

// sumAt returns the SHA-256 of a file's content.
func sumAt(dir *os.File, name string) (string, error) {
	file, err := openFileAt(dir, name)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	defer file.Close()
	return sumOf(file)
}

func sumOf(r io.Reader) (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

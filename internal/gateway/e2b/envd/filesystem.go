package envd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
)

// The kinds of files, in E2B's words.
const (
	typeFile    = "FILE_TYPE_FILE"
	typeDir     = "FILE_TYPE_DIRECTORY"
	typeSymlink = "FILE_TYPE_SYMLINK"
	typeOther   = "FILE_TYPE_UNSPECIFIED"
)

func typeOf(k guestfs.FileKind) string {
	switch k {
	case guestfs.KindFile:
		return typeFile
	case guestfs.KindDir:
		return typeDir
	case guestfs.KindSymlink:
		return typeSymlink
	}
	return typeOther
}

// entry describes a file.
type entry struct {
	Name          string    `json:"name"`
	Type          string    `json:"type"`
	Path          string    `json:"path"`
	Size          string    `json:"size"` // Connect writes 64 bits as text
	Mode          uint32    `json:"mode"`
	Permissions   string    `json:"permissions"`
	Owner         string    `json:"owner"`
	Group         string    `json:"group"`
	ModifiedTime  time.Time `json:"modifiedTime"`
	SymlinkTarget string    `json:"symlinkTarget,omitempty"`
}

func newEntry(at string, kind guestfs.FileKind, size int64, mode fs.FileMode) *entry {
	shown := mode.Perm()
	switch kind {
	case guestfs.KindDir:
		shown |= fs.ModeDir
	case guestfs.KindSymlink:
		shown |= fs.ModeSymlink
	}
	return &entry{Name: path.Base(at), Path: at, Type: typeOf(kind), Size: strconv.FormatInt(size, 10), Mode: uint32(mode.Perm()), Permissions: shown.String()}
}

// describe returns the entry of a path. A link has the kind of what it leads to, if there is
// such a thing.
func (b *box) describe(ctx context.Context, at string) (*entry, error) {
	var info *guestfs.FileInfo
	err := b.through(ctx, at, false, func(at string) (err error) {
		info, err = b.files.Stat(ctx, at)
		return err
	})
	if err != nil {
		return nil, err
	}
	e := newEntry(at, info.Kind, info.Size, info.Mode)
	e.ModifiedTime, e.Owner, e.Group = info.ModTime.UTC(), b.nameOf(ctx, info.UID), b.nameOf(ctx, info.GID)
	if info.Kind == guestfs.KindSymlink {
		e.SymlinkTarget = info.Target
		if plain, err := b.real(ctx, at, true); err == nil {
			if target, err := b.files.Stat(ctx, plain); err == nil {
				e.Type, e.SymlinkTarget = typeOf(target.Kind), plain
			}
		}
	}
	return e, nil
}

// nameOf returns the name of a user or a group inside: the owner of the workspace is user.
func (b *box) nameOf(ctx context.Context, id int) string {
	if home, err := b.files.Stat(ctx, b.Details.Workdir); err == nil && (home.UID == id || home.GID == id) {
		return user
	}
	if id == 0 {
		return "root"
	}
	return strconv.Itoa(id)
}

// through does something with a path, and again with where it leads if links are in the way.
// What it does follows none itself.
func (b *box) through(ctx context.Context, at string, last bool, do func(at string) error) error {
	err := do(at)
	if !errors.Is(err, machine.ErrSymlink) {
		return err
	}
	plain, realErr := b.real(ctx, at, last)
	if realErr != nil || plain == at {
		return errors.Join(realErr, err)
	}
	return do(plain)
}

// maxLinks bounds the links of one path, as Linux does.
const maxLinks = 40

// real returns a path without links, the last one's target among it if last.
func (b *box) real(ctx context.Context, at string, last bool) (string, error) {
	done, rest, links := "/", strings.Split(strings.Trim(at, "/"), "/"), 0
	for len(rest) > 0 {
		next := path.Join(done, rest[0])
		rest = rest[1:]
		info, err := b.files.Stat(ctx, next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return path.Join(append([]string{next}, rest...)...), nil
		case err != nil:
			return "", err
		case info.Kind != guestfs.KindSymlink || len(rest) == 0 && !last:
			done = next
			continue
		}
		if links++; links > maxLinks || len(info.Target) > maxPath {
			return "", &fault{failedPrecondition, "the path has too many links"}
		}
		if path.IsAbs(info.Target) {
			done = "/"
		}
		if target := strings.Trim(path.Join(done, info.Target), "/"); target != "" {
			rest = append(strings.Split(target, "/"), rest...)
		}
		done = "/"
	}
	return done, nil
}

// pathOnly is a message that names a path.
type pathOnly struct {
	Path string `json:"path"`
}

// readPath reads a message that names a path.
func (c *rpc) readPath() (string, error) {
	var q pathOnly
	if err := c.read(&q); err != nil {
		return "", err
	}
	return c.path(q.Path)
}

// answerEntry answers with the entry of a path.
func (c *rpc) answerEntry(at string) error {
	e, err := c.describe(c.Ctx, at)
	if err != nil {
		return err
	}
	return c.answer(map[string]*entry{"entry": e})
}

func (c *rpc) stat() error {
	at, err := c.readPath()
	if err != nil {
		return err
	}
	return c.answerEntry(at)
}

func (c *rpc) makeDir() error {
	at, err := c.readPath()
	if err != nil {
		return err
	}
	if _, err := c.describe(c.Ctx, at); err == nil {
		return &fault{alreadyExists, at + " exists already"}
	}
	err = c.through(c.Ctx, at, true, func(at string) error {
		return c.files.Mkdir(c.Ctx, at, &guestfs.MkdirOptions{Parents: true})
	})
	if err != nil {
		return err
	}
	return c.answerEntry(at)
}

func (c *rpc) move() error {
	var q struct {
		Source      string `json:"source"`
		Destination string `json:"destination"`
	}
	if err := c.read(&q); err != nil {
		return err
	}
	from, err := c.path(q.Source)
	if err != nil {
		return err
	}
	to, err := c.path(q.Destination)
	if err != nil {
		return err
	}
	err = c.through(c.Ctx, from, false, func(from string) error {
		return c.through(c.Ctx, to, false, func(to string) error {
			return c.files.Rename(c.Ctx, from, to, &guestfs.RenameOptions{MkdirAll: true})
		})
	})
	if err != nil {
		return err
	}
	return c.answerEntry(to)
}

// remove removes a file, or a directory with all that is in it.
func (c *rpc) remove() error {
	at, err := c.readPath()
	if err != nil {
		return err
	}
	err = c.through(c.Ctx, at, false, func(at string) error {
		_, err := c.files.Remove(c.Ctx, at, &guestfs.RemoveOptions{Recursive: true, Missing: true})
		return err
	})
	if err != nil {
		return err
	}
	return c.answer(struct{}{})
}

// maxListed bounds the entries of a list.
const maxListed = 20_000

// maxDepth bounds the levels of a list.
const maxDepth = 128

// listDir lists a directory. Owners are not listed: Stat tells them.
func (c *rpc) listDir() error {
	var q struct {
		Path  string `json:"path"`
		Depth int    `json:"depth"`
	}
	if err := c.read(&q); err != nil {
		return err
	}
	at, err := c.path(q.Path)
	if err != nil {
		return err
	}
	if q.Depth < 0 {
		return &fault{invalidArgument, "depth must be at least 1"}
	}
	list := []*entry{}
	err = c.through(c.Ctx, at, true, func(from string) error {
		list = list[:0]
		return c.walk(from, max(q.Depth, 1), func(e *guestfs.FileEntry) {
			found := newEntry(path.Join(at, e.Path), e.Kind, e.Size, e.Mode)
			found.ModifiedTime = e.ModTime.UTC()
			list = append(list, found)
		})
	})
	if err != nil {
		return err
	}
	return c.answer(map[string][]*entry{"entries": list})
}

// walk visits what is in a directory, and so many levels below it.
func (c *rpc) walk(at string, depth int, visit func(*guestfs.FileEntry)) error {
	left, level := maxListed, []string{"."}
	for range min(depth, maxDepth) {
		var below []string
		for _, dir := range level {
			listing, err := c.files.List(c.Ctx, path.Join(at, dir), &guestfs.ListOptions{Max: left + 1})
			if err != nil {
				return err
			}
			if left -= len(listing.Entries); left < 0 || listing.More {
				return &fault{resourceExhausted, fmt.Sprintf("the directory has more than %d entries", maxListed)}
			}
			for i := range listing.Entries {
				e := &listing.Entries[i]
				if e.Path = path.Join(dir, e.Path); e.Kind == guestfs.KindDir && !e.Mount {
					below = append(below, e.Path)
				}
				visit(e)
			}
		}
		level = below
	}
	return nil
}

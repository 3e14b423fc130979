package provide

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/hostpath/archive"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/machine/guestfs/hosttree"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// Stream stands for standard input or output in the place of a host path: an
// archive.
const Stream = "-"

// Copy is one copy between the host and a session's sandbox.
type Copy struct {
	Inside string // path in the sandbox, relative ones to the workspace
	Host   string // path on the host, or Stream
	Stream io.ReadWriter
}

// CopyOut copies a file or directory out of the sandbox, as cp -r would: into
// the target if that is a directory, else to it. Links and the like are left
// out, and returned.
func (s *ReadySandbox) CopyOut(ctx context.Context, c Copy) (skipped []string, err error) {
	files, inside, err := s.reach(c.Inside)
	if err != nil {
		return nil, err
	}
	return CopyOut(ctx, files, inside, c)
}

// CopyOut copies out of files that a sandbox has, as ReadySandbox.CopyOut does.
func CopyOut(ctx context.Context, files *guestfs.Files, inside string, c Copy) (skipped []string, err error) {
	if c.Host == Stream {
		return hosttree.Read(ctx, files, inside, c.Stream)
	}
	target, err := outTarget(inside, c)
	if err != nil {
		return nil, err
	}
	return hosttree.Fetch(ctx, files, inside, target)
}

// outTarget is where a copy goes on the host.
func outTarget(inside string, c Copy) (archive.Target, error) {
	host := filepath.Clean(c.Host)
	info, err := os.Stat(host)
	switch {
	case err == nil && info.IsDir() && strings.HasSuffix(c.Inside, "/."):
		return archive.Target{Dir: host, Rename: "."}, nil
	case err == nil && info.IsDir():
		return archive.Target{Dir: host, Rename: topName(inside)}, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return archive.Target{}, err
	case strings.HasSuffix(c.Host, "/"):
		return archive.Target{}, fmt.Errorf("%s is not a directory", c.Host)
	case err == nil && !info.Mode().IsRegular(): // a copy takes the place of what is there, and that may be /dev/null
		return archive.Target{}, fmt.Errorf("%s is neither a directory nor a regular file", c.Host)
	}
	return archive.Target{Dir: filepath.Dir(host), Rename: filepath.Base(host)}, nil
}

// topName is what a copy of inside is called.
func topName(inside string) string {
	if name := path.Base(inside); name != "/" {
		return name
	}
	return "root"
}

// CopyIn copies a file or directory into the sandbox, as cp -r would.
func (s *ReadySandbox) CopyIn(ctx context.Context, c Copy) (skipped []string, err error) {
	files, inside, err := s.reach(c.Inside)
	if err != nil {
		return nil, err
	}
	return CopyIn(ctx, files, inside, c)
}

// CopyIn copies into files that a sandbox has, as ReadySandbox.CopyIn does.
func CopyIn(ctx context.Context, files *guestfs.Files, inside string, c Copy) (skipped []string, err error) {
	if c.Host == Stream {
		totals, err := files.WriteTar(ctx, inside, c.Stream, &guestfs.TarOptions{SkipRefused: true, MkdirAll: true})
		return hosttree.Refused(totals), err
	}
	info, err := os.Stat(c.Host)
	if err != nil {
		return nil, err
	}
	dir, top, err := inTarget(ctx, files, inside, c, info.IsDir())
	if err != nil {
		return nil, err
	}
	return hosttree.Send(ctx, files, archive.Source{Path: c.Host, Top: top}, dir)
}

// inTarget is the directory inside that a copy goes into, and the name that it
// gets there; "." if the copy becomes the directory itself.
func inTarget(ctx context.Context, files *guestfs.Files, inside string, c Copy, isDir bool) (dir, top string, err error) {
	existing, err := files.Stat(ctx, inside)
	switch {
	case err == nil && existing.Kind == guestfs.KindDir && strings.HasSuffix(c.Host, "/."):
		return inside, ".", nil
	case err == nil && existing.Kind == guestfs.KindDir:
		name, err := filepath.Abs(c.Host)
		return inside, filepath.Base(name), err
	case err == nil && isDir:
		return "", "", fmt.Errorf("%s exists inside and is not a directory", inside)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", "", err
	case isDir:
		return inside, ".", nil
	case strings.HasSuffix(c.Inside, "/"):
		return inside, filepath.Base(c.Host), nil
	}
	return path.Dir(inside), path.Base(inside), nil
}

// reach finds a path of the sandbox among what the host may reach there.
func (s *ReadySandbox) reach(inside string) (*guestfs.Files, string, error) {
	if inside == "" {
		inside = "."
	}
	p, err := s.Plan.PathMap().Resolve(inside, "")
	if err != nil {
		return nil, "", err
	}
	files, err := FilesOf(s.Handle, s.Plan.Spec)
	return files, p.Container, err
}

// FilesOf are the files of a sandbox that the host may reach: those below its
// mounts, as the engine was told to make them.
func FilesOf(h *sandbox.Handle, spec *sandbox.Spec) (*guestfs.Files, error) {
	roots := make([]guestfs.Root, len(spec.Mounts))
	for i, m := range spec.Mounts {
		roots[i] = guestfs.Root{Path: m.Target, ReadOnly: m.ReadOnly}
	}
	return guestfs.New(h.Machine, roots)
}

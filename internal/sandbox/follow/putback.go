package follow

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// Rejected is a change of the agent's that is taken back inside.
type Rejected struct {
	Path   string
	Kind   guestfs.FileKind // of what the agent has there; "" if it removed the host's
	SHA256 string           // of a file
	Link   string           // text of a link
}

// putBack is one call of PutBack.
type putBack struct {
	*Follower
	root   *os.File
	covers map[string]overlay.Cover
	inside map[string]*guestfs.FileInfo // what is still as it was rejected; nil for nothing
	left   []string
}

// PutBack makes inside what the base has where the agent has something else. It
// returns the paths that it left: those that the agent changed since they were
// rejected, directories that are not empty, links of the base and files above MaxFile.
func (f *Follower) PutBack(ctx context.Context, rejected []Rejected) (left []string, err error) {
	root, err := hostpath.OpenDir(f.Tree.Base)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // it was only read
	rejected = slices.SortedFunc(slices.Values(rejected), func(a, b Rejected) int { return strings.Compare(a.Path, b.Path) })
	var paths []string
	for i := range rejected {
		paths = append(paths, rejected[i].Path)
	}
	p := &putBack{Follower: f, root: root, inside: map[string]*guestfs.FileInfo{}}
	if p.covers, err = f.Tree.Covers(ctx, paths, f.Hide); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handed = map[string]string{}
	for i := range slices.Backward(rejected) {
		p.note(ctx, &rejected[i], p.clear(ctx, &rejected[i]))
	}
	for i := range rejected {
		if _, cleared := p.inside[rejected[i].Path]; cleared {
			p.note(ctx, &rejected[i], p.fill(ctx, rejected[i].Path))
		}
	}
	return p.left, errors.Join(ctx.Err(), f.Tree.NoteHanded(f.handed))
}

// note notes a path that is left as it is.
func (p *putBack) note(ctx context.Context, r *Rejected, err error) {
	if err == nil {
		return
	}
	p.left = append(p.left, r.Path)
	if !errors.Is(err, errTouched) && ctx.Err() == nil {
		p.Log.WarnContext(ctx, "a rejected change stays in the sandbox", "path", r.Path, "error", err)
	}
}

// clear removes what the agent has at a path, if it is what was rejected, unless the
// base's file is written over it.
func (p *putBack) clear(ctx context.Context, r *Rejected) error {
	inside := path.Join(p.Tree.Target, r.Path)
	info, err := p.stat(ctx, inside)
	if err != nil {
		return err
	}
	if same, err := p.isRejected(ctx, r, info); err != nil || !same {
		return errors.Join(err, errTouched)
	}
	kind, err := p.baseKind(r.Path)
	switch {
	case err != nil || kind != "" && kind != hostpath.KindFile && kind != hostpath.KindDirectory:
		return errors.Join(err, errTouched) // a link of the base cannot be made through the guest
	case info == nil || kind == hostpath.KindFile && info.Kind == guestfs.KindFile || kind == hostpath.KindDirectory && info.Kind == guestfs.KindDir:
		p.inside[r.Path] = info
		return nil
	}
	if _, err := p.Files.Remove(ctx, inside, &guestfs.RemoveOptions{Missing: true, IfVersion: info.Version}); err != nil {
		return err
	}
	p.inside[r.Path] = nil
	return nil
}

// stat returns what the guest has at a path; nil if nothing, or no directory above.
func (p *putBack) stat(ctx context.Context, inside string) (*guestfs.FileInfo, error) {
	info, err := p.Files.Stat(ctx, inside)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, machine.ErrNotDir) || errors.Is(err, machine.ErrSymlink) {
		return nil, nil
	}
	return info, err
}

// isRejected reports whether the agent still has what was rejected.
func (p *putBack) isRejected(ctx context.Context, r *Rejected, info *guestfs.FileInfo) (bool, error) {
	switch {
	case info == nil || info.Kind != r.Kind:
		return info == nil && r.Kind == "", nil
	case r.Kind == guestfs.KindSymlink:
		return info.Target == r.Link, nil
	case r.Kind != guestfs.KindFile:
		return true, nil
	case info.Size > MaxFile:
		return false, nil
	}
	content, err := p.Files.Read(ctx, path.Join(p.Tree.Target, r.Path), nil)
	return err == nil && sum(content.Data) == r.SHA256, err
}

// baseKind returns what the sandbox may see of the base at a path; "" if nothing.
func (p *putBack) baseKind(rel string) (hostpath.Kind, error) {
	if _, covered := p.covers[rel]; covered || p.Tree.IsHidden(rel) {
		return "", nil
	}
	facts, err := hostpath.IdentifyBeneath(p.root, rel)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, hostpath.ErrNotDirectory) {
		return "", nil
	}
	return facts.Kind, err
}

// fill makes what the base has at a path.
func (p *putBack) fill(ctx context.Context, rel string) error {
	kind, err := p.baseKind(rel)
	info, inside := p.inside[rel], path.Join(p.Tree.Target, rel)
	switch {
	case err != nil:
		return err
	case kind == "":
		p.handed[rel] = ""
		return nil
	case kind == hostpath.KindDirectory && info == nil:
		return p.Files.Mkdir(ctx, inside, nil)
	case kind == hostpath.KindDirectory:
		return nil
	case kind != hostpath.KindFile:
		return errTouched // the host has put it there meanwhile
	}
	content, err := hostpath.ReadRegularBeneath(p.root, rel, MaxFile)
	if err != nil {
		return err
	}
	facts, err := hostpath.IdentifyBeneath(p.root, rel)
	if err != nil {
		return err
	}
	options := &guestfs.WriteOptions{Mode: facts.Mode.Perm(), Exclusive: info == nil, MkdirAll: true}
	if info != nil {
		options.IfVersion = info.Version
	}
	if _, err := p.Files.Write(ctx, inside, content, options); err != nil {
		return err
	}
	p.handed[rel] = sum(content)
	return nil
}

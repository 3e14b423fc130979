package gate

import (
	"errors"
	"fmt"
	"path"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// plan makes the steps of entries. It refuses, with all paths, what is not as begun.
func (g *Gate) plan(base *baseDir, entries []*Entry) ([]step, error) {
	var steps []step
	var changed []string
	for _, e := range entries {
		more, err := g.planOne(base, e)
		if conflict, is := errors.AsType[*ConflictError](err); is {
			changed = append(changed, conflict.Paths...)
		} else if err != nil {
			return nil, err
		}
		steps = append(steps, more...)
	}
	if len(changed) > 0 {
		return nil, &ConflictError{changed}
	}
	implied, err := base.impliedDirs(steps)
	if err != nil {
		return nil, err
	}
	return order(append(steps, implied...)), nil
}

// planOne makes the steps of one entry: one, or two where a directory becomes
// something else or is made of it.
func (g *Gate) planOne(base *baseDir, e *Entry) ([]step, error) {
	before, err := base.lookAt(e.Path)
	if err != nil {
		return nil, errors.Join(&ConflictError{[]string{e.Path}}, err)
	}
	why, err := g.conflict(base, e)
	if err != nil {
		return nil, err
	}
	again, err := base.lookAt(e.Path)
	if why != "" || err != nil || !again.same(before, false) {
		return nil, &ConflictError{[]string{e.Path}}
	}
	after, err := base.wanted(e, before)
	if err != nil {
		return nil, err
	}
	isDir := func(c *content) bool { return c != nil && c.Type == typeDir }
	if after != nil && before != nil && (isDir(before) || isDir(after)) {
		if isDir(before) && isDir(after) {
			return nil, nil
		}
		return []step{{Path: e.Path, Before: before}, {Path: e.Path, After: after}}, nil
	}
	if before == nil && after == nil {
		return nil, &ConflictError{[]string{e.Path}}
	}
	return []step{{Path: e.Path, Before: before, After: after}}, nil
}

// lookAt returns what the base has at a path; nil if nothing.
func (b *baseDir) lookAt(rel string) (*content, error) {
	dir, leaf, err := b.parent(rel)
	if isGone(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer dir.Close()
	return look(dir, leaf)
}

// wanted returns what an entry makes of a path; nil if nothing. Of the mode inside
// only the executable bit counts, and no owner comes from there.
func (b *baseDir) wanted(e *Entry, before *content) (*content, error) {
	if e.Kind == overlay.Deleted {
		return nil, nil
	}
	owner, err := b.ownerAbove(e.Path)
	if err != nil {
		return nil, err
	}
	after := &content{UID: owner.UID, GID: owner.GID, SHA256: e.SHA256}
	switch {
	case e.Mode.IsDir():
		after.Type, after.Mode, after.SHA256 = typeDir, 0o755, ""
	case e.Mode.Type() != 0:
		after.Type, after.Link, after.SHA256 = typeLink, e.Link, ""
	case before != nil && before.Type == typeFile:
		after.Type, after.UID, after.GID = typeFile, before.UID, before.GID
		after.Mode = withExecutable(before.Mode&0o777, executable(e.Mode))
	default:
		after.Type, after.Mode = typeFile, withExecutable(0o644, executable(e.Mode))
	}
	return after, nil
}

// withExecutable lets those who may read a file execute it, or takes that from all.
func withExecutable(mode uint32, is bool) uint32 {
	if is == (mode&0o111 != 0) {
		return mode
	}
	if !is {
		return mode &^ 0o111
	}
	return mode | mode&0o444>>2
}

// ownerAbove returns the deepest directory above a path that exists.
func (b *baseDir) ownerAbove(rel string) (*content, error) {
	for dir := path.Dir(rel); ; dir = path.Dir(dir) {
		opened, _, err := b.parent(path.Join(dir, "x"))
		if isGone(err) && dir != "." {
			continue
		}
		if err != nil {
			return nil, err
		}
		var st unix.Stat_t
		err = unix.Fstat(int(opened.Fd()), &st)
		return contentOf(&st), errors.Join(err, opened.Close())
	}
}

// impliedDirs makes the steps for directories that new files need.
func (b *baseDir) impliedDirs(steps []step) ([]step, error) {
	made := map[string]bool{}
	for i := range steps {
		if s := &steps[i]; s.After != nil && s.After.Type == typeDir {
			made[s.Path] = true
		}
	}
	var implied []step
	for i := range steps {
		if steps[i].After == nil {
			continue
		}
		for dir := path.Dir(steps[i].Path); dir != "." && !made[dir]; dir = path.Dir(dir) {
			there, err := b.lookAt(dir)
			if err != nil {
				return nil, errors.Join(&ConflictError{[]string{dir}}, err)
			}
			if there != nil && there.Type == typeDir {
				break
			}
			if there != nil {
				return nil, errors.Join(&ConflictError{[]string{dir}}, fmt.Errorf("%q is no directory", dir))
			}
			made[dir] = true
			owner, err := b.ownerAbove(dir)
			if err != nil {
				return nil, err
			}
			implied = append(implied, step{Path: dir, After: &content{Type: typeDir, Mode: 0o755, UID: owner.UID, GID: owner.GID}, Implied: true})
		}
	}
	return implied, nil
}

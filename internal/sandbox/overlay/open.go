package overlay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// Open opens what the sandbox has at a path: a regular file, through no link,
// without waiting. A file with several names is opened too: content is judged
// under each name.
func (t *Tree) Open(rel string) (*os.File, error) {
	file, err := t.open(rel)
	if err != nil {
		return nil, fmt.Errorf("%.300q above %q: %w", rel, t.Base, err)
	}
	return file, nil
}

func (t *Tree) open(rel string) (*os.File, error) {
	if !isPath(rel) {
		return nil, hostpath.ErrEscapes
	}
	base, err := t.openBase()
	if err != nil {
		return nil, err
	}
	defer base.Close()
	above, err := hostpath.OpenDir(t.above())
	if err != nil {
		return nil, err
	}
	l := layers{above: above}
	if t.Kind == Kernel {
		if l.lower, err = openDirAt(base, "."); err != nil {
			closeFile(above)
			return nil, err
		}
	}
	return t.descend(&reader{ctx: context.Background(), tree: t, base: base}, l, rel)
}

// descend opens a file below the layers, which it closes.
func (t *Tree) descend(r *reader, l layers, rel string) (*os.File, error) {
	defer func() { l.close() }()
	for {
		name, rest, more := strings.Cut(rel, "/")
		if !more {
			return t.openIn(l, name)
		}
		next, err := r.next(l, name)
		if err != nil {
			next.close()
			return nil, err
		}
		l.close()
		l, rel = next, rest
	}
}

// next opens the layers of a directory, in the upper or in the base.
func (r *reader) next(l layers, name string) (layers, error) {
	if l.above != nil {
		st, err := statAt(l.above, name)
		switch {
		case err == nil && r.tree.Kind == Copy:
			dir, err := openDirAt(l.above, name)
			return layers{above: dir}, err
		case err == nil && isWhiteout(&st):
			return layers{}, fs.ErrNotExist
		case err != nil:
			l.above = nil // closed by the caller, who keeps the original
		}
	}
	next, err := r.open(l, name)
	if err == nil && next.above == nil && next.lower == nil {
		err = fs.ErrNotExist
	}
	return next, err
}

// openIn opens a file of the upper, or of the base where the upper has none.
func (t *Tree) openIn(l layers, name string) (*os.File, error) {
	if l.above != nil {
		st, err := statAt(l.above, name)
		if err == nil && t.Kind == Kernel {
			if isWhiteout(&st) {
				return nil, fs.ErrNotExist
			}
			err = t.Marks.checkFile(l.above, name)
		}
		if err == nil {
			return openFileAt(l.above, name)
		}
		if l.lower == nil || !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if l.lower == nil {
		return nil, fs.ErrNotExist
	}
	return openFileAt(l.lower, name)
}

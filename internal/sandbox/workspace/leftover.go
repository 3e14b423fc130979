package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/hostpath"
)

// temporaryName holds an empty file for every copy that ends with its sandbox.
const temporaryName = "temporary"

// Copies lists the private copies below a workspaceRoot. Directories that Atoll
// has no record of are not listed: a person may have made them.
func Copies(root string) ([]Layout, error) {
	v, err := openRootForReading(Layout{Params: Params{Root: root}})
	if err != nil {
		return nil, ignoreMissing(err)
	}
	defer v.close()
	records, err := v.names(manifestsName)
	if err != nil {
		return nil, err
	}
	var list []Layout
	for _, record := range records {
		slug, ok := strings.CutSuffix(record, ".json")
		if !ok || strings.HasSuffix(record, skillsSuffix) || checkSlug(slug) != nil {
			continue
		}
		l := copyLayout(root, slug)
		v.layout = l
		if dir, err := v.openCopy(); err == nil {
			closeAll(dir)
			if m, err := v.loadManifest(); err == nil {
				l.ScopeKey = m.ScopeKey
			}
			list = append(list, l)
		}
	}
	return list, nil
}

// Temporaries lists the copies below a workspaceRoot that are to end with their
// sandbox, also those that were never filled.
func Temporaries(root string) ([]Layout, error) {
	v, err := openRootForReading(Layout{Params: Params{Root: root}})
	if err != nil {
		return nil, ignoreMissing(err)
	}
	defer v.close()
	names, err := v.names(temporaryName)
	if err != nil {
		return nil, err
	}
	var list []Layout
	for _, slug := range names {
		if checkSlug(slug) == nil {
			list = append(list, copyLayout(root, slug))
		}
	}
	return list, nil
}

// CopyAt is the layout of a copy, of which only the directory is known. It is no
// copy unless its parent directory holds Atoll's records of copies.
func CopyAt(dir string) (Layout, bool) {
	l := copyLayout(filepath.Dir(dir), filepath.Base(dir))
	if !filepath.IsAbs(dir) || checkSlug(l.Slug) != nil {
		return Layout{}, false
	}
	v, err := openRootForReading(l)
	if err != nil {
		return Layout{}, false
	}
	defer v.close()
	return l, v.private != nil
}

// copyLayout is enough of a layout to find and remove a copy.
func copyLayout(root, slug string) Layout {
	dir := filepath.Join(root, slug)
	return Layout{Params: Params{Access: config.AccessNone, Root: root, Slug: slug}, SandboxDir: dir, WorkspaceDir: dir}
}

// names lists a directory of .atoll in order; nothing if it does not exist.
func (v *lockedRoot) names(part string) ([]string, error) {
	if v.private == nil {
		return nil, nil
	}
	dir, err := openDirAt(v.private, part)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	defer closeAll(dir)
	names, err := dir.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// markTemporary records, before the copy is made, that it ends with its sandbox.
func (v *lockedRoot) markTemporary() error {
	if !v.layout.Temporary {
		return nil
	}
	dir, err := v.openPart(temporaryName)
	if err != nil {
		return err
	}
	defer closeAll(dir)
	_, err = hostpath.WriteBeneath(dir, v.layout.Slug, bytes.NewReader(nil), hostpath.WriteOptions{Replace: true})
	if err != nil {
		return rootError(v.layout, fmt.Errorf("mark the copy as temporary: %w", err))
	}
	return nil
}

func (v *lockedRoot) unmarkTemporary() error {
	dir, err := openDirAt(v.private, temporaryName)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer closeAll(dir)
	return unlinkAt(dir, v.layout.Slug)
}

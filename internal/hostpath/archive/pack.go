package archive

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Source says what is packed.
type Source struct {
	Path string // a file or directory; a link is followed
	Top  string // what names in the archive begin with, "." for nothing
	// Links makes symbolic links below Path part of the archive, as links.
	Links bool
}

// Pack writes files to w. Pipes and the like, and links if they are not asked for, are
// left out, and returned.
func Pack(ctx context.Context, from Source, w io.Writer) (skipped []string, err error) {
	info, err := os.Stat(from.Path)
	if err != nil {
		return nil, err
	}
	p := &packer{ctx: ctx, archive: tar.NewWriter(w), top: from.Top, links: from.Links}
	if info.IsDir() {
		err = p.tree(from.Path)
	} else {
		err = p.single(from.Path)
	}
	if err != nil {
		return p.skipped, err
	}
	return p.skipped, p.archive.Close()
}

type packer struct {
	ctx     context.Context
	archive *tar.Writer
	top     string
	links   bool
	skipped []string
}

func (p *packer) single(file string) error {
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer root.Close()
	return p.file(root, filepath.Base(file), p.top)
}

// tree packs a directory. It holds the directory open, so that nothing that is
// exchanged meanwhile leads elsewhere.
func (p *packer) tree(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		if err != nil {
			return err
		}
		return p.entry(root, name, entry)
	})
}

func (p *packer) entry(root *os.Root, name string, entry fs.DirEntry) error {
	full := path.Join(p.top, name)
	switch {
	case entry.IsDir() && full == ".":
		return nil
	case entry.IsDir():
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return p.archive.WriteHeader(&tar.Header{
			Format: tar.FormatPAX, Typeflag: tar.TypeDir, Name: full + "/", Mode: int64(info.Mode().Perm()), ModTime: info.ModTime(),
		})
	case entry.Type().IsRegular():
		return p.file(root, name, full)
	case entry.Type() == fs.ModeSymlink && p.links:
		return p.link(root, name, full)
	}
	p.skipped = append(p.skipped, name)
	return nil
}

// link packs a symbolic link.
func (p *packer) link(root *os.Root, name, full string) error {
	target, err := root.Readlink(name)
	if err != nil {
		return err
	}
	return p.archive.WriteHeader(&tar.Header{Format: tar.FormatPAX, Typeflag: tar.TypeSymlink, Name: full, Linkname: target, Mode: 0o777})
}

// file packs one regular file, in the size that it has when it is opened.
func (p *packer) file(root *os.Root, name, full string) error {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", name)
	}
	err = p.archive.WriteHeader(&tar.Header{
		Format: tar.FormatPAX, Typeflag: tar.TypeReg, Name: full, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime(), Size: info.Size(),
	})
	if err != nil {
		return err
	}
	_, err = io.CopyN(p.archive, f, info.Size())
	if err == io.EOF { //nolint:errorlint // that of CopyN, and not one of the archive's writer
		return fmt.Errorf("%s became shorter while it was read", name)
	}
	return err
}

package local

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/runtime/image"
)

// extra is a symbolic link, or a file with a text, that a layer has beside the content
// of its directory.
type extra struct{ name, to, text string }

// epoch is the time of every file, so that the same packages make the same layer.
var epoch = time.Unix(0, 0)

// place copies the archive of a directory's content, with every name below prefix, and
// adds more files. The archive comes from inside a sandbox: names that lead out of the
// directory are refused here, all else by the store.
func place(w io.Writer, archive io.Reader, prefix string, extras []extra) error {
	in, out := tar.NewReader(archive), tar.NewWriter(w)
	p := placer{out: out, made: map[string]bool{}}
	if err := p.dirs(prefix); err != nil {
		return err
	}
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("the archive of the sandbox: %w", err)
		}
		if err := p.copy(h, in, prefix); err != nil {
			return fmt.Errorf("the archive of the sandbox: %.200q: %w", h.Name, err)
		}
	}
	// The archive is complete only if its writer ended well.
	if _, err := io.Copy(io.Discard, archive); err != nil {
		return err
	}
	for _, e := range extras {
		if err := p.add(e); err != nil {
			return err
		}
	}
	return out.Close()
}

type placer struct {
	out  *tar.Writer
	made map[string]bool // directories above prefix and links
}

// dirs writes the directories of a path, outer ones first.
func (p *placer) dirs(name string) error {
	for at := range parents(name) {
		if p.made[at] {
			continue
		}
		p.made[at] = true
		if err := p.out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: at + "/", Mode: 0o755, ModTime: epoch}); err != nil {
			return err
		}
	}
	return nil
}

// parents yields each directory of a path, and the path.
func parents(name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := range name {
			if name[i] == '/' && !yield(name[:i]) {
				return
			}
		}
		if name != "" {
			yield(name)
		}
	}
}

var errOutside = errors.New("leads out of its directory")

// inside is a name of the archive, below prefix.
func inside(prefix, name string) (string, error) {
	clean := path.Clean(name)
	if path.IsAbs(name) || clean == ".." || strings.HasPrefix(clean, "../") {
		return "", errOutside
	}
	return path.Join(prefix, clean), nil
}

func (p *placer) copy(h *tar.Header, content io.Reader, prefix string) error {
	name, err := inside(prefix, h.Name)
	if err != nil {
		return err
	}
	if path.Clean(h.Name) == "." {
		return nil
	}
	placed := &tar.Header{Typeflag: h.Typeflag, Name: name, Linkname: h.Linkname, Size: h.Size, Mode: h.Mode & 0o1777, ModTime: epoch}
	switch h.Typeflag {
	case tar.TypeDir:
		placed.Name += "/"
	case tar.TypeLink:
		if placed.Linkname, err = inside(prefix, h.Linkname); err != nil {
			return err
		}
	}
	if err := p.out.WriteHeader(placed); err != nil {
		return err
	}
	_, err = io.Copy(p.out, content)
	return err
}

func (p *placer) add(e extra) error {
	if err := p.dirs(path.Dir(e.name)); err != nil {
		return err
	}
	if e.to != "" {
		return p.out.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: e.name, Linkname: e.to, Mode: 0o777, ModTime: epoch})
	}
	if err := p.out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: e.name, Size: int64(len(e.text)), Mode: image.FileMode(e.text), ModTime: epoch}); err != nil {
		return err
	}
	_, err := io.WriteString(p.out, e.text)
	return err
}

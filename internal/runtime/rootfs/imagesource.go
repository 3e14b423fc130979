package rootfs

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// imageSource is where the parts of an image lie by name: a directory or an archive.
type imageSource interface {
	open(name string) (io.ReadCloser, int64, error) // fs.ErrNotExist if there is none
}

// document reads one small part whole, and compares it with a digest unless
// that is "".
func document(s imageSource, name, digest string, limit int64) ([]byte, error) {
	part, size, err := s.open(name)
	if err != nil {
		return nil, fmt.Errorf("%.200q: %w", name, err)
	}
	defer part.Close()
	if size > limit {
		return nil, fmt.Errorf("%.200q: %w: %d bytes", name, ErrTooMuch, limit)
	}
	data, err := io.ReadAll(io.LimitReader(part, limit))
	if err != nil {
		return nil, fmt.Errorf("%.200q: %w", name, truncated(err))
	}
	if digest != "" && digestOf(data) != digest {
		return nil, fmt.Errorf("%.200q: %w", name, ErrDigest)
	}
	return data, nil
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// part returns a layer of an image source.
func part(s imageSource, name, digest string) (blob, error) {
	opened, size, err := s.open(name)
	if err != nil {
		return blob{}, fmt.Errorf("%.200q: %w", name, err)
	}
	return blob{digest: digest, size: size, open: func(context.Context) (io.ReadCloser, error) {
		again, _, err := s.open(name)
		return again, err
	}}, opened.Close()
}

// directory is an image source in a directory. Links are not followed: the author of the
// directory would choose what we read.
type directory struct{ root *os.File }

func (d directory) open(name string) (io.ReadCloser, int64, error) {
	f, err := hostpath.OpenBeneath(d.root, name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("is not a file")
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// maxParts is how many entries an archive of images may have, and maxPartName
// how long their names are. One with more is the archive of a root directory.
const (
	maxParts    = 4096
	maxPartName = 512
)

// archiveIndex is an image source in an uncompressed archive.
type archiveIndex struct {
	file  *os.File
	parts map[string]archiveEntry
}

// archiveEntry is where in the archive a part's bytes are, or which other part it is.
type archiveEntry struct {
	offset, size int64
	sameAs       string
}

// indexArchive notes where the parts of an archive are. Nothing but plain files,
// and links among them, can be part of an image's archive.
func indexArchive(ctx context.Context, f *os.File) (*archiveIndex, error) {
	p := &archiveIndex{file: f, parts: map[string]archiveEntry{}}
	reader := tar.NewReader(f)
	for len(p.parts) <= maxParts {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return p, nil
		}
		if err = errors.Join(ctx.Err(), truncated(err)); err != nil {
			return nil, err
		}
		if len(header.Name)+len(header.Linkname) > maxPartName {
			break
		}
		if err := p.note(header); err != nil {
			return nil, err
		}
	}
	return &archiveIndex{file: f}, nil
}

func (p *archiveIndex) note(h *tar.Header) error {
	name := path.Clean(h.Name)
	switch h.Typeflag {
	case tar.TypeReg:
		offset, err := p.file.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		p.parts[name] = archiveEntry{offset: offset, size: h.Size}
	case tar.TypeSymlink: // older engines write a layer that is there twice only once
		p.parts[name] = archiveEntry{sameAs: path.Join(path.Dir(name), h.Linkname)} //nolint:gosec // a key of this map, never a path on disk
	case tar.TypeLink:
		p.parts[name] = archiveEntry{sameAs: path.Clean(h.Linkname)}
	default:
		p.parts[name] = archiveEntry{size: -1}
	}
	return nil
}

func (p *archiveIndex) open(name string) (io.ReadCloser, int64, error) {
	at, ok := p.parts[path.Clean(name)]
	if ok && at.sameAs != "" {
		at, ok = p.parts[at.sameAs]
	}
	if !ok || at.size < 0 || at.sameAs != "" {
		return nil, 0, fs.ErrNotExist
	}
	return io.NopCloser(io.NewSectionReader(p.file, at.offset, at.size)), at.size, nil
}

// has tells whether a part of that name is there.
func has(s imageSource, name string) bool {
	f, _, err := s.open(name)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}

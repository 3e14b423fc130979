package rootfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath"
)

// AddOptions say how an image is taken in.
type AddOptions struct {
	Name   string         // reference to give it; "" is the source's own
	Report func(Progress) // may be nil
}

// Import takes in the images of a directory (an OCI layout) or a file: an
// archive as `docker save` or `podman save` write it, an OCI layout in a tar,
// or the tar of a root directory, each also compressed by gzip or zstd.
func (s *Store) Import(ctx context.Context, path string, o AddOptions) ([]*Image, error) {
	images, err := s.importPath(ctx, path, o)
	if err != nil {
		return nil, fmt.Errorf("import %s: %w", path, err)
	}
	return images, nil
}

func (s *Store) importPath(ctx context.Context, path string, o AddOptions) ([]*Image, error) {
	info, err := os.Stat(path)
	if err != nil {
		if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
			err = pathErr.Err
		}
		return nil, errhint.With(err, "name a file or directory; `atoll images pull` fetches from a registry")
	}
	source := absolute(path)
	switch {
	case info.IsDir():
		return s.importDir(ctx, path, source, o)
	case info.Mode().IsRegular():
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return s.importFile(ctx, f, source, o)
	}
	return nil, errhint.With(errors.New("neither a file nor a directory"), "`atoll images import -` reads standard input")
}

func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// ImportFrom takes in the images of an archive that is read only once, such as
// standard input or the answer of an engine.
func (s *Store) ImportFrom(ctx context.Context, r io.Reader, source string, o AddOptions) ([]*Image, error) {
	f, err := s.spool(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("import %s: %w", source, err)
	}
	defer f.Close()
	images, err := s.importArchive(ctx, f, source, o)
	if err != nil {
		return nil, fmt.Errorf("import %s: %w", source, err)
	}
	return images, nil
}

// spool keeps a stream, uncompressed, in an unlinked file.
func (s *Store) spool(ctx context.Context, r io.Reader) (_ *os.File, err error) {
	content, err := s.openArchive(ctx, r, &usage{}, nil)
	if err != nil {
		return nil, err
	}
	defer content.close()
	f, err := s.tempFile(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	if _, err := io.Copy(f, content); err != nil {
		return f, spaceHint(s.dir, truncated(err))
	}
	_, err = f.Seek(0, io.SeekStart)
	return f, err
}

func (s *Store) tempFile(ctx context.Context) (*os.File, error) {
	content, err := s.locks.Share(ctx, contentLock) // keeps a collection from removing it
	if err != nil {
		return nil, err
	}
	defer content.Release()
	f, err := os.CreateTemp(s.path("tmp"), "spool-")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

func (s *Store) importDir(ctx context.Context, path, source string, o AddOptions) ([]*Image, error) {
	root, err := hostpath.OpenDir(path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if !isLayout(directory{root}) {
		return nil, errhint.With(errors.New("not an OCI image layout: it has no index.json and oci-layout"),
			"for a root directory, pack it: tar -C "+path+" -c . | atoll images import - NAME")
	}
	found, err := s.readLayout(directory{root}, source)
	if err != nil {
		return nil, err
	}
	return s.addAll(ctx, found, o)
}

// importFile uncompresses what is compressed first: parts are found by offset.
func (s *Store) importFile(ctx context.Context, f *os.File, source string, o AddOptions) ([]*Image, error) {
	var start [4]byte
	if n, err := io.ReadFull(f, start[:]); err != nil {
		return nil, fmt.Errorf("%w after %d bytes", ErrTruncated, n)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	if !isCompressed(start[:]) {
		return s.importArchive(ctx, f, source, o)
	}
	plain, err := s.spool(ctx, f)
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	return s.importArchive(ctx, plain, source, o)
}

func (s *Store) importArchive(ctx context.Context, f *os.File, source string, o AddOptions) ([]*Image, error) {
	on, err := indexArchive(ctx, f)
	if err != nil {
		return nil, errhint.With(err, "import takes OCI layouts, archives of `docker save`, and tars of a root directory")
	}
	list, err := s.listSaved(on)
	if err != nil {
		return nil, err
	}
	var found []named
	switch {
	case len(list) > 0:
		found, err = s.readSaved(on, list, source)
	case isLayout(on):
		found, err = s.readLayout(on, source)
	default:
		found, err = s.readTar(ctx, f, source)
	}
	if err != nil {
		return nil, err
	}
	return s.addAll(ctx, found, o)
}

func (s *Store) addAll(ctx context.Context, found []named, o AddOptions) ([]*Image, error) {
	if o.Name != "" && len(found) > 1 {
		return nil, errhint.With(fmt.Errorf("%d images in it, but one name for them", len(found)), "leave the name out: each keeps its own")
	}
	var images []*Image
	for _, c := range found {
		names := c.names
		if o.Name != "" {
			names = []string{o.Name}
		}
		if err := checkNames(names); err != nil {
			return nil, err
		}
		image, err := s.add(ctx, c.candidate, names, o.Report)
		if err != nil {
			return nil, err
		}
		images = append(images, image)
	}
	return images, nil
}

func checkNames(names []string) error {
	if len(names) == 0 {
		return errhint.With(errors.New("it does not say what it is called"), "give a name: atoll images import PATH NAME")
	}
	for _, n := range names {
		if IsHost(n) {
			return errhint.With(fmt.Errorf("the name %q stands for the host's own programs", n), "give another name")
		}
		if _, err := canonical(n); err != nil {
			return err
		}
	}
	return nil
}

// readTar takes the archive of a root directory for an image of one layer.
func (s *Store) readTar(ctx context.Context, f *os.File, source string) ([]named, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	end := &trailer{}
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(sum, end), &meter{Reader: f, ctx: ctx, stop: s.Limits.tooLong})
	if err != nil {
		return nil, err
	}
	if !end.complete() {
		return nil, fmt.Errorf("no end-of-archive mark: %w", ErrTruncated)
	}
	config := &v1.ConfigFile{OS: "linux", Architecture: runtime.GOARCH, RootFS: v1.RootFS{
		Type: "layers", DiffIDs: []v1.Hash{{Algorithm: "sha256", Hex: hex.EncodeToString(sum.Sum(nil))}},
	}}
	data, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	layer := blob{size: size, open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(f, 0, size)), nil
	}}
	return []named{{&candidate{id: digestOf(data), source: source, config: config, layers: []blob{layer}}, nil}}, nil
}

// trailer remembers the last two blocks, which are zero at the end of an archive
// that is complete.
type trailer struct {
	last []byte
	n    int64
}

const endMark = 1024

func (e *trailer) Write(p []byte) (int, error) {
	e.n += int64(len(p))
	e.last = append(e.last, p[max(0, len(p)-endMark):]...)
	e.last = e.last[max(0, len(e.last)-endMark):]
	return len(p), nil
}

func (e *trailer) complete() bool {
	for _, b := range e.last {
		if b != 0 {
			return false
		}
	}
	return e.n >= endMark
}

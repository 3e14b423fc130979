package rootfs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

var longAgo = time.Unix(1_000_000_000, 0)

// item is one entry of a test's archive.
type item struct {
	tar.Header
	data string
}

func tarDir(name string) item {
	return item{tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}, ""}
}
func tarFile(name, data string) item {
	return item{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644}, data}
}
func tarLink(name, to string) item {
	return item{tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777}, ""}
}
func tarHard(name, to string) item {
	return item{tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: to, Mode: 0o644}, ""}
}
func tarKind(name string, kind byte) item {
	return item{tar.Header{Typeflag: kind, Name: name, Mode: 0o644, Devmajor: 1, Devminor: 3}, ""}
}

func pack(t testing.TB, items ...item) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, i := range items {
		h := i.Header
		h.Size, h.ModTime = int64(len(i.data)), longAgo
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, i.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zip(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unpackInto unpacks an archive with small limits.
func unpackInto(ctx context.Context, data []byte, dir string, limits Limits) (Layer, error) {
	root, err := os.Open(dir)
	if err != nil {
		return Layer{}, err
	}
	defer root.Close()
	limits = limits.orDefaults()
	s, image := &Store{Options: Options{Limits: limits}}, &usage{}
	s.Limits.Size = DefaultLimits().Size // of the archive itself
	content, err := s.openArchive(ctx, bytes.NewReader(data), image, nil)
	if err != nil {
		return Layer{}, err
	}
	defer content.close()
	return unpack(ctx, content, root, limits, image)
}

// imageOf is an image whose layers hold the given archives.
func imageOf(t testing.TB, archives ...[]byte) v1.Image {
	t.Helper()
	image := mutate.MediaType(empty.Image, "application/vnd.docker.distribution.manifest.v2+json")
	for _, data := range archives {
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
		if err != nil {
			t.Fatal(err)
		}
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			t.Fatal(err)
		}
	}
	image, err := mutate.Config(image, v1.Config{Env: []string{"A=b"}, WorkingDir: "/work", Cmd: []string{"/bin/sh"}})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func save(t testing.TB, path string, data []byte) string {
	t.Helper()
	path = filepath.Join(t.TempDir(), path)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// leftovers are the names in a directory of the store.
func leftovers(t testing.TB, s *Store, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(s.path(dir))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

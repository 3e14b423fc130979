package rootfs

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/klauspost/compress/zstd"

	"github.com/atoll-run/atoll/internal/errhint"
)

// twoLayers are a base and a layer that removes and adds.
func twoLayers(t testing.TB) (base, upper []byte) {
	return pack(t, tarDir("bin"), tarFile("bin/sh", "shell"), tarFile("old", "")), pack(t, tarFile(".wh.old", ""), tarFile("new", "n"))
}

func savedArchive(t testing.TB, image v1.Image, ref string) []byte {
	t.Helper()
	tag, err := name.NewTag(ref)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := tarball.Write(tag, image, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func layoutDir(t testing.TB, image v1.Image, ref string) string {
	t.Helper()
	dir := t.TempDir()
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := path.AppendImage(image, layout.WithAnnotations(map[string]string{layoutRefName: ref})); err != nil {
		t.Fatal(err)
	}
	return dir
}

func idOf(t testing.TB, image v1.Image) string {
	t.Helper()
	id, err := image.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	return id.String()
}

// tree packs a directory as tar does.
func treeOf(t testing.TB, dir string) []byte {
	t.Helper()
	var items []item
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		items = append(items, tarFile(rel, string(data)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pack(t, items...)
}

func zstandard(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestImportTakesEveryForm(t *testing.T) {
	base, upper := twoLayers(t)
	image := imageOf(t, base, upper)
	dir := layoutDir(t, image, "team/image:tag")
	archive := savedArchive(t, image, "team/image:tag")
	for form, path := range map[string]string{
		"OCI layout":              dir,
		"OCI layout in a tar":     save(t, "layout.tar", treeOf(t, dir)),
		"docker save":             save(t, "saved.tar", archive),
		"docker save gzipped":     save(t, "saved.tar.gz", zip(t, archive)),
		"docker save zstd":        save(t, "saved.tar.zst", zstandard(t, archive)),
		"a layer as zstd":         layoutDir(t, withZstdLayers(t, base, upper), "team/image:tag"),
		"docker save in OCI form": save(t, "both.tar", bothForms(t, dir, archive)),
	} {
		t.Run(form, func(t *testing.T) {
			s := open(t, Options{})
			images, err := s.Import(t.Context(), path, AddOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(images) != 1 || !slices.Equal(images[0].Names, []string{"team/image:tag"}) && !slices.Equal(images[0].Names, []string{"index.docker.io/team/image:tag"}) {
				t.Fatalf("images = %+v", images)
			}
			if form != "a layer as zstd" && images[0].ID != idOf(t, image) {
				t.Errorf("id = %s, want %s", images[0].ID, idOf(t, image))
			}
			checkRoot(t, s, "docker.io/team/image:tag")
		})
	}
}

// bothForms is the archive that current engines write: a layout that also has
// the older manifest.
func bothForms(t testing.TB, dir string, archive []byte) []byte {
	t.Helper()
	f, err := os.Open(save(t, "x", archive))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	on, err := indexArchive(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := document(on, savedManifest, "", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var list []saved
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	list[0].Config = "blobs/sha256/" + strings.TrimPrefix(list[0].Config, "sha256:")
	for i, l := range list[0].Layers {
		list[0].Layers[i] = "blobs/sha256/" + strings.TrimSuffix(l, ".tar.gz")
	}
	if data, err = json.Marshal(list); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, savedManifest), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return treeOf(t, dir)
}

func withZstdLayers(t testing.TB, archives ...[]byte) v1.Image {
	t.Helper()
	image := empty.Image
	for _, data := range archives {
		layer := &zstdLayer{plain: data, packed: zstandard(t, data)}
		var err error
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			t.Fatal(err)
		}
	}
	image, err := mutate.Config(image, v1.Config{WorkingDir: "/work"})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// checkRoot resolves an image of twoLayers and looks at what it would mount.
func checkRoot(t *testing.T, s *Store, ref string) {
	t.Helper()
	root, pin, err := s.Resolve(t.Context(), ref, Identity{Dirs: []string{"/workspace"}})
	if err != nil {
		t.Fatal(err)
	}
	defer pin.Release()
	if len(root.Layers) != 3 || root.Config.Workdir != "/work" || root.Name != ref {
		t.Fatalf("root = %+v", root)
	}
	want := "bin d\nbin/sh f\ndev d\netc d\netc/hostname f\netc/hosts f\netc/resolv.conf f\nnew f\nproc d\nsys d\nworkspace d\n"
	if got := merged(t, root.Layers...); got != want {
		t.Errorf("merged:\n%s", got)
	}
}

func TestImportOfARootDirectory(t *testing.T) {
	s := open(t, Options{})
	data := pack(t, tarFile("bin/sh", "shell"), tarFile("manifest.json", "[]"))
	for _, content := range [][]byte{data, zip(t, data)} {
		images, err := s.Import(t.Context(), save(t, "rootfs.tar", content), AddOptions{Name: "mine"})
		if err != nil {
			t.Fatal(err)
		}
		if images[0].Size != 7 || images[0].Files != 2 {
			t.Errorf("image = %+v", images[0])
		}
	}
	list, err := s.List(t.Context())
	if err != nil || len(list) != 1 {
		t.Errorf("the same archive is %d images, %v", len(list), err)
	}
	images, err := s.ImportFrom(t.Context(), bytes.NewReader(data), "standard input", AddOptions{Name: "again:1"})
	if err != nil || !slices.Equal(images[0].Names, []string{"mine", "again:1"}) {
		t.Errorf("names = %v, %v", images, err)
	}
}

func TestImportRefusesWhatLies(t *testing.T) {
	base, upper := twoLayers(t)
	image := imageOf(t, base, upper)
	good := savedArchive(t, image, "a:b")
	damaged := func(change func(dir string, m *v1.Manifest)) string {
		dir := layoutDir(t, image, "a:b")
		m, err := image.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		change(dir, m)
		return dir
	}
	blobPath := func(dir string, h v1.Hash) string { return filepath.Join(dir, "blobs/sha256", h.Hex) }
	overwrite := func(path string, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		path string
		want error
	}{
		"another layer in place of one": {damaged(func(dir string, m *v1.Manifest) {
			overwrite(blobPath(dir, m.Layers[0].Digest), zip(t, pack(t, tarFile("bin/sh", "evil"))))
		}), ErrDigest},
		"another configuration": {damaged(func(dir string, m *v1.Manifest) {
			overwrite(blobPath(dir, m.Config.Digest), []byte(`{"rootfs":{"diff_ids":[]}}`))
		}), ErrDigest},
		"half a layer": {damaged(func(dir string, m *v1.Manifest) {
			data, err := os.ReadFile(blobPath(dir, m.Layers[1].Digest))
			if err != nil {
				t.Fatal(err)
			}
			overwrite(blobPath(dir, m.Layers[1].Digest), data[:len(data)/2])
		}), ErrTruncated},
		"a layer with something after it": {damaged(func(dir string, m *v1.Manifest) {
			data, err := os.ReadFile(blobPath(dir, m.Layers[1].Digest))
			if err != nil {
				t.Fatal(err)
			}
			overwrite(blobPath(dir, m.Layers[1].Digest), append(data, zip(t, []byte("more"))...))
		}), ErrDigest},
		"a layer that is a link": {damaged(func(dir string, m *v1.Manifest) {
			path := blobPath(dir, m.Layers[0].Digest)
			if err := errors.Join(os.Rename(path, filepath.Join(dir, "aside")), os.Symlink(filepath.Join(dir, "aside"), path)); err != nil {
				t.Fatal(err)
			}
		}), nil},
		"a layer that is missing": {damaged(func(dir string, m *v1.Manifest) {
			if err := os.Remove(blobPath(dir, m.Layers[0].Digest)); err != nil {
				t.Fatal(err)
			}
		}), os.ErrNotExist},
		"half a docker save":       {save(t, "half.tar", good[:len(good)-3*512]), ErrTruncated},
		"half a gzip":              {save(t, "half.gz", zip(t, good)[:200]), ErrTruncated},
		"half a root directory":    {save(t, "half.tar", base[:3*512]), ErrTruncated},
		"an empty file":            {save(t, "empty", nil), ErrTruncated},
		"no archive":               {save(t, "text", []byte(strings.Repeat("not a tar\n", 100))), nil},
		"a directory of something": {t.TempDir(), nil},
		"nothing":                  {"/nowhere/at/all", os.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{})
			_, err := s.Import(t.Context(), c.path, AddOptions{Name: "x"})
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("error = %v, want %v", err, c.want)
			}
			if left := append(leftovers(t, s, "layers"), leftovers(t, s, "tmp")...); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestImportKeepsItsLimits(t *testing.T) {
	zeros := pack(t, tarFile("zeros", strings.Repeat("\x00", 4<<20)))
	many := make([][]byte, 4)
	for i := range many {
		many[i] = pack(t, tarFile("f", strings.Repeat("x", i+1)))
	}
	for name, c := range map[string]struct {
		image  v1.Image
		limits Limits
	}{
		"ratio":                {imageOf(t, zeros), Limits{Ratio: 100, RatioFree: 1 << 20}},
		"size of all layers":   {imageOf(t, many...), Limits{Size: 6000}},
		"files of all layers":  {imageOf(t, many...), Limits{Files: 3}},
		"layers":               {imageOf(t, many...), Limits{Layers: 3}},
		"configuration's size": {imageOf(t, many...), Limits{Document: 100}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{save(t, "a.tar", savedArchive(t, c.image, "a:b")), layoutDir(t, c.image, "a:b")} {
				s := open(t, Options{Limits: c.limits})
				if _, err := s.Import(t.Context(), path, AddOptions{Name: "x"}); !errors.Is(err, ErrTooMuch) {
					t.Errorf("error = %v", err)
				}
				if left := append(leftovers(t, s, "layers"), leftovers(t, s, "tmp")...); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
				if _, err := open(t, Options{}).Import(t.Context(), path, AddOptions{Name: "x"}); err != nil {
					t.Errorf("with the usual limits: %v", err)
				}
			}
		})
	}
}

func TestImportOfAnotherPlatformIsRefused(t *testing.T) {
	image := imageOf(t, pack(t, tarFile("a", "")))
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", "riscv64"
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	_, err = open(t, Options{}).Import(t.Context(), save(t, "a.tar", savedArchive(t, image, "a:b")), AddOptions{})
	if err == nil || !strings.Contains(err.Error(), "linux/riscv64") || !strings.Contains(err.Error(), runtime.GOARCH) || errhint.Of(err) == "" {
		t.Errorf("error = %v", err)
	}
}

func TestImportNeedsAName(t *testing.T) {
	s := open(t, Options{})
	path := save(t, "r.tar", pack(t, tarFile("a", "")))
	for _, bad := range []string{"", "host", "Not A Name"} {
		if _, err := s.Import(t.Context(), path, AddOptions{Name: bad}); err == nil || errhint.Of(err) == "" {
			t.Errorf("name %q: %v", bad, err)
		}
	}
}

func TestALayerThatIsTwiceInAnImageIsMountedOnce(t *testing.T) {
	s := open(t, Options{})
	base, upper := twoLayers(t)
	if _, err := s.Import(t.Context(), save(t, "a.tar", savedArchive(t, imageOf(t, base, upper, base), "a:b")), AddOptions{}); err != nil {
		t.Fatal(err)
	}
	root, pin, err := s.Resolve(t.Context(), "a:b", Identity{})
	if err != nil {
		t.Fatal(err)
	}
	defer pin.Release()
	want := "bin d\nbin/sh f\ndev d\netc d\netc/hostname f\netc/hosts f\netc/resolv.conf f\nnew f\nold f\nproc d\nsys d\n"
	if got := merged(t, root.Layers...); got != want {
		t.Errorf("merged:\n%s", got)
	}
}

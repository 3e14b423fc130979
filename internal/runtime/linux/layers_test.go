package linux_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

func tarOf(t *testing.T, files map[string][]byte, mode int64) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, data := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(data)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// savedImage is an archive, as `docker save` writes it, of an image with many
// layers: the first has a shell, each of the others a file.
func savedImage(t *testing.T, layers int) string {
	t.Helper()
	box := need.Program(t, "busybox", "busybox-static")
	program, err := os.ReadFile(box)
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string][]byte{}
	var names, digests []string
	for n := range layers {
		layer := tarOf(t, map[string][]byte{fmt.Sprintf("file-%d", n): []byte("x\n")}, 0o644)
		if n == 0 {
			layer = tarOf(t, map[string][]byte{"bin/sh": program}, 0o755)
		}
		sum := sha256.Sum256(layer)
		name := fmt.Sprintf("%d/layer.tar", n)
		parts[name], names, digests = layer, append(names, name), append(digests, "sha256:"+hex.EncodeToString(sum[:]))
	}
	config := map[string]any{"os": "linux", "architecture": runtime.GOARCH, "rootfs": map[string]any{"type": "layers", "diff_ids": digests}}
	manifest := []map[string]any{{"Config": "config.json", "RepoTags": []string{"many:1"}, "Layers": names}}
	if parts["config.json"], err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	if parts["manifest.json"], err = json.Marshal(manifest); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "saved.tar")
	if err := os.WriteFile(path, tarOf(t, parts, 0o644), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestImagesWithManyLayersAreMounted(t *testing.T) {
	for _, layers := range []int{3, 60} {
		t.Run(fmt.Sprint(layers), func(t *testing.T) {
			l := newLab(t)
			roots, err := rootfs.Open(filepath.Join(l.state, "images"), rootfs.Options{Volatile: true})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := roots.Import(t.Context(), savedImage(t, layers), rootfs.AddOptions{}); err != nil {
				t.Fatal(err)
			}
			l.image = "many:1"
			script := fmt.Sprintf("n=0; for f in /file-*; do n=$((n+1)); done; echo $n; test -e /usr || echo no host; read a </file-%d; echo $a", layers-1)
			if got, want := l.sh("one", script), fmt.Sprintf("%d\nno host\nx", layers-1); got != want {
				t.Errorf("inside: %q, want %q", got, want)
			}
		})
	}
}

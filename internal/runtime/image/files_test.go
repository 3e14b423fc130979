package image

import (
	"archive/tar"
	"errors"
	"io"
	"testing"
)

// The context of a recipe has what its Dockerfile copies into the root; scripts can be
// run there.
func TestFilesOfARecipe(t *testing.T) {
	recipe := find(t, "code-interpreter")
	files, err := recipe.Files()
	if err != nil {
		t.Fatal(err)
	}
	packed, err := packContext(contextFiles("FROM scratch", files, nil))
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]int64{}
	for r := tar.NewReader(packed); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		modes[h.Name] = h.Mode
	}
	for name, mode := range map[string]int64{"Dockerfile": 0o644, "files/etc/atoll/start": 0o755, "files/etc/atoll/ready": 0o755, "files/opt/atoll/code-interpreter/main.py": 0o644} {
		if modes[name] != mode {
			t.Errorf("%s: %o, want %o", name, modes[name], mode)
		}
	}
	if none, err := find(t, "sandbox").Files(); err != nil || len(none) > 0 {
		t.Errorf("%v %v", none, err)
	}
	if got, want := defaultsOf(t, "code-interpreter")[ArgBaseImage], debian(t); got != want {
		t.Errorf("base %s, want that of the plain sandbox, %s", got, want)
	}
}

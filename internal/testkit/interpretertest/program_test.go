package interpretertest_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// addImage adds an image of busybox with more programs, by their paths.
func addImage(t *testing.T, a *app.App, name string, programs map[string]string) {
	t.Helper()
	busybox, err := os.ReadFile(need.Program(t, "busybox", "busybox-static"))
	if err != nil {
		t.Fatal(err)
	}
	var root bytes.Buffer
	w := tar.NewWriter(&root)
	write := func(path, text string) {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	write("bin/sh", string(busybox))
	for path, text := range programs {
		write(path, text)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	store, err := a.Images()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.AddLayer(t.Context(), &root, rootfs.LayerOptions{Names: []string{name}, Source: "test"}); err != nil {
		t.Fatal(err)
	}
}

// An image without a program needs none; one that ends before it is ready is an error
// with what it said, at once; one whose image says nothing of readiness is ready.
func TestPrograms(t *testing.T) {
	t.Parallel()
	need.Root(t, "works in the directory that keeps the image")
	a, _ := openApp(t, func(*testing.T, string) {})
	addImage(t, a, "plain:1", nil)
	addImage(t, a, "ends:1", map[string]string{"etc/atoll/start": "#!/bin/sh\necho broken >&2\nexit 3\n", "etc/atoll/ready": "#!/bin/sh\nsleep 50 # and is ready, if it is waited for\n"})
	addImage(t, a, "never:1", map[string]string{"etc/atoll/start": "#!/bin/sh\necho waiting >&2\nsleep 600\n", "etc/atoll/ready": "#!/bin/sh\nexit 1\n"})
	addImage(t, a, "quiet:1", map[string]string{"etc/atoll/start": "#!/bin/sh\nsleep 600\n"})
	service := openService(t, a)
	for image, said := range map[string]string{"plain:1": "", "quiet:1": "", "ends:1": "broken", "never:1": ""} {
		err := service.StartProgram(t.Context(), create(t, service, image))
		if wrong := image == "ends:1" || image == "never:1"; errors.Is(err, sandboxes.ErrProgram) != wrong || (err != nil) != wrong {
			t.Errorf("%s: %v", image, err)
		}
		if err != nil && !strings.Contains(err.Error(), said) {
			t.Errorf("%s: %v", image, err)
		}
	}
}

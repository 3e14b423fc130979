// Package browserimage gives tests the image of browsers, which has Chromium with a
// window, on the engine of an installation. It belongs to tests only.
package browserimage

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"testing"

	"github.com/atoll-run/atoll/images"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/runtime/image"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

// Build returns the image of browsers on Docker. It is built once for each version of its
// files, and kept.
func Build(t *testing.T, a *app.App) string {
	t.Helper()
	ref := "atoll-test-browser:" + version(t)
	engine, err := a.ImageEngine(t.Context(), "docker")
	if err != nil {
		t.Fatal(err)
	}
	if has, err := engine.HasImage(t.Context(), ref); err != nil || has {
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	recipe, err := image.Find("browser")
	if err != nil {
		t.Fatal(err)
	}
	var progress bytes.Buffer
	if _, err := image.Build(t.Context(), engine, recipe, image.Options{Target: ref, Network: "host"}, &progress); err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	return ref
}

// OnPodman returns the image of browsers on Podman, copied from Docker once for each
// version of its files.
func OnPodman(t *testing.T, docker *app.App) string {
	t.Helper()
	ref := Build(t, docker)
	enginetest.CopyImage(t, enginetest.Docker(t), enginetest.Podman(t), ref)
	return ref
}

// version is made of the image's files.
func version(t *testing.T) string {
	t.Helper()
	sum := sha256.New()
	err := fs.WalkDir(images.Files, "browser", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(images.Files, name)
		_, _ = sum.Write(append([]byte(name+"\n"), text...)) // a hash takes everything
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

package docker

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/runtime/image"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

// seeded is a shared volume that goes with the test.
func (l *lab) seeded(t *testing.T, from, path string) string {
	t.Helper()
	name, err := l.SeedVolume(t.Context(), "test", from, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.removeVolume(context.WithoutCancel(t.Context()), name); err != nil {
			t.Error(err)
		}
	})
	return name
}

func sharing(volume string) func(*sandbox.Spec) {
	return func(s *sandbox.Spec) {
		s.User = "1000:1000"
		s.Volumes = []sandbox.Volume{{Name: volume, Target: "/shared", Private: true}}
	}
}

// What a sandbox writes to a shared volume no other sandbox sees, and it goes with it.
func TestPrivateLayers(t *testing.T) {
	t.Run("docker", func(t *testing.T) { privateLayers(t, newLab(t, enginetest.Docker(t), Docker)) })
	t.Run("podman", func(t *testing.T) { privateLayers(t, newLab(t, enginetest.Podman(t), Podman)) })
}

func privateLayers(t *testing.T, l *lab) {
	t.Helper()
	shared := l.seeded(t, enginetest.TinyImage, "/home")
	first, second := l.start(t, sharing(shared)), l.start(t, sharing(shared))
	if got := sh(t, first, "echo mine >/shared/sandbox/note; cat /shared/sandbox/note"); got != "mine" {
		t.Errorf("its own note: %q", got)
	}
	if got := sh(t, second, "ls -A /shared /shared/sandbox"); strings.Contains(got, "note") {
		t.Errorf("another sandbox sees it: %q", got)
	}
	users, err := l.LayersOn(t.Context(), shared)
	if err != nil || len(users) != 2 {
		t.Errorf("layers of %v, %v", users, err)
	}
	if err := l.RemoveShared(t.Context(), shared); !errors.Is(err, sandbox.ErrBusy) {
		t.Errorf("the volume was removed below two sandboxes: %v", err)
	}
	if _, err := l.Create(t.Context(), l.spec(sharing(shared), func(s *sandbox.Spec) { s.Name = first.name })); !errors.Is(err, sandbox.ErrExists) {
		t.Errorf("a second sandbox of the same name: %v", err)
	}
	if got := sh(t, first, "cat /shared/sandbox/note"); got != "mine" {
		t.Errorf("its note is gone: %q", got)
	}
	for _, i := range []*Instance{first, second} {
		if err := i.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if left, err := l.volumesWith(t.Context(), labelLayer); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	third := l.start(t, sharing(shared))
	if got := sh(t, third, "ls -A /shared/sandbox"); got != "" {
		t.Errorf("the shared volume was changed: %q", got)
	}
	if err := third.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestVolumesThatCannotBe(t *testing.T) {
	l := newLab(t, enginetest.Docker(t), Docker)
	if _, err := l.SeedVolume(t.Context(), "test", enginetest.TinyImage, "/workspace"); err == nil || !strings.Contains(err.Error(), "nothing at /workspace") {
		t.Errorf("seed of nothing: %v", err)
	}
	if left, err := l.SharedVolumes(t.Context(), "test"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := l.Create(t.Context(), l.spec(sharing("nowhere"))); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("layer on nothing: %v", err)
	}
	other := newLab(t, enginetest.Docker(t), Docker)
	shared := other.seeded(t, enginetest.TinyImage, "/home")
	if _, err := l.Create(t.Context(), l.spec(sharing(shared))); !errors.Is(err, sandbox.ErrForeign) {
		t.Errorf("layer on another installation's volume: %v", err)
	}
	p := newLab(t, enginetest.Podman(t), Podman)
	if _, err := p.SeedVolume(t.Context(), "test", enginetest.TinyImage, "/workspace"); err == nil || !strings.Contains(err.Error(), "nothing at /workspace") {
		t.Errorf("seed of nothing, on Podman: %v", err)
	}
	if _, err := p.Create(t.Context(), p.spec(sharing("nowhere"))); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("layer on nothing, on Podman: %v", err)
	}
}

// Packages are installed without a network, from the store of their lockfile, in
// a sandbox with a read-only root. `make openclaw` makes the image.
func TestPnpmInstallsWithoutANetwork(t *testing.T) {
	l := newLab(t, enginetest.Docker(t), Docker)
	lockfile, err := os.ReadFile("../image/testdata/pnpm-lock.yaml")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := image.Find("pnpm-store")
	if err != nil {
		t.Fatal(err)
	}
	var progress bytes.Buffer
	store, err := image.Build(t.Context(), l, recipe, image.Options{Lockfile: lockfile, Network: "host"}, &progress)
	if err != nil {
		t.Fatalf("%v: run make openclaw\n%s", err, &progress)
	}
	shared := l.seeded(t, store, image.StorePath)
	i := l.start(t, func(s *sandbox.Spec) {
		s.Image, s.User = "cogni-sandbox-openclaw:latest", "1001:1001"
		s.Volumes = []sandbox.Volume{{Name: shared, Target: image.StorePath, Private: true}}
	})
	run(t, i, "sh", "-c", "mkdir /tmp/p && cd /tmp/p && printf %s \"$0\" >pnpm-lock.yaml && echo '{\"private\":true,\"dependencies\":{\"is-number\":\"7.0.0\"}}' >package.json", string(lockfile))
	if got := sh(t, i, "cd /tmp/p && export HOME=/tmp && pnpm install --offline --frozen-lockfile && node -p 'require(\"is-number\")(5)'"); !strings.HasSuffix(got, "true") {
		t.Errorf("pnpm says %s", got)
	}
	if got := sh(t, i, "cd /tmp/p && rm -rf node_modules && HOME=/tmp pnpm install --offline --frozen-lockfile --store-dir /tmp/empty 2>&1 || true"); !strings.Contains(got, "NO_OFFLINE_TARBALL") {
		t.Errorf("without the store it works as well: %s", got)
	}
	if err := i.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

package linux_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/runtime/linux"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// packagesImage adds an image with a store of packages, and returns the store of images
// and the image's id.
func (l *site) packagesImage() (*rootfs.Store, string) {
	l.t.Helper()
	store, err := rootfs.Open(filepath.Join(l.state, "images"), rootfs.Options{Volatile: true, PinGrace: -1})
	if err != nil {
		l.t.Fatal(err)
	}
	archive := tarOf(l.t, map[string][]byte{"packages/one": []byte("published"), "packages/two": []byte("published")}, 0o666)
	image, err := store.AddLayer(l.t.Context(), bytes.NewReader(archive), rootfs.LayerOptions{Names: []string{"packages:1"}, Source: "a test"})
	if err != nil {
		l.t.Fatal(err)
	}
	return store, image.ID
}

func withVolume(image string) func(*sandbox.Spec) {
	return func(s *sandbox.Spec) {
		s.Volumes = []sandbox.Volume{{Name: image, Target: "/packages", Private: true}}
	}
}

// Sandboxes share a volume; each writes to a layer of its own, which stays when it is
// stopped, and is removed with it. The volume never changes.
func TestPrivateVolumes(t *testing.T) {
	l := newSite(t)
	_, image := l.packagesImage()
	writer, reader := l.start(withVolume(image)), l.start(withVolume(image))
	l.sh(writer, "echo changed >/packages/one && rm /packages/two && mkdir /packages/dir && echo new >/packages/dir/three && mv /packages/dir /packages/moved")
	if got := l.sh(reader, "cat /packages/one /packages/two; ls /packages"); got != "publishedpublishedone\ntwo" {
		t.Errorf("the other sandbox sees %q", got)
	}
	if err := errors.Join(writer.Stop(t.Context(), 0), writer.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got := l.sh(writer, "cat /packages/one; ls /packages; cat /packages/moved/three"); got != "changed\nmoved\none\nnew" {
		t.Errorf("after a stop it has %q", got)
	}
	if err := writer.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := l.sh(l.start(withVolume(image)), "cat /packages/one /packages/two"); got != "publishedpublished" {
		t.Errorf("a new sandbox sees %q", got)
	}
	if _, err := os.Lstat(filepath.Join(l.state, "linux", writer.Seen().Name)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the sandbox's directory: %v", err)
	}
}

// The image of a volume may be removed: what a sandbox stands on stays until the sandbox
// is gone.
func TestVolumeOutlivesItsImage(t *testing.T) {
	l := newSite(t)
	store, image := l.packagesImage()
	user := l.start(withVolume(image))
	if _, err := store.Remove(t.Context(), image); err != nil {
		t.Fatal(err)
	}
	alive := map[string]bool{user.Seen().Name: true}
	collect := func() rootfs.Collected {
		done, err := store.Collect(t.Context(), func(owner string) bool { return alive[owner] })
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	if done := collect(); done.Bytes > 0 {
		t.Errorf("collected %+v below a sandbox", done)
	}
	if err := errors.Join(user.Stop(t.Context(), 0), user.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	l.sh(user, "cat /packages/one")
	if err := user.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if done := collect(); done.Bytes == 0 {
		t.Errorf("collected %+v after the sandbox", done)
	}
	if _, err := l.Create(t.Context(), l.spec(withVolume(image))); !errors.Is(err, rootfs.ErrNoImage) {
		t.Errorf("a volume without its image: %v", err)
	}
}

// A volume may not cover what the sandbox itself needs, its image must have it, and a
// sandbox with one is not forked.
func TestVolumesRefused(t *testing.T) {
	l := newSite(t)
	store, image := l.packagesImage()
	for _, target := range []string{"/", "/proc", "/dev/null", "/.atoll", "relative"} {
		spec := l.spec(withVolume(image))
		spec.Volumes[0].Target = target
		if _, err := l.Create(t.Context(), spec); !errors.Is(err, sandbox.ErrDenied) {
			t.Errorf("%s: %v", target, err)
		}
	}
	archive := tarOf(t, map[string][]byte{"other": nil}, 0o644)
	if _, err := store.AddLayer(t.Context(), bytes.NewReader(archive), rootfs.LayerOptions{Names: []string{"empty:1"}, Source: "a test"}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Create(t.Context(), l.spec(withVolume("empty:1"))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an image without the directory: %v", err)
	}
	forked := l.start(withVolume(image))
	if _, err := l.Runtime.(*linux.Runtime).Fork(t.Context(), forked.Seen().Name, l.spec()); !errors.Is(err, sandbox.ErrUnsupported) {
		t.Errorf("a fork: %v", err)
	}
}

// Volumes as an ordinary user.
func TestUserVolumes(t *testing.T) {
	asSomeone(t, "TestPrivateVolumes", "^TestPrivateVolumes$", nil, unlimitedVariable+"=1")
}

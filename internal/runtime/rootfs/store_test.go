package rootfs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/errhint"
)

// take imports an image of one layer that holds one file.
func take(t testing.TB, s *Store, name, content string) *Image {
	t.Helper()
	images, err := s.Import(t.Context(), save(t, "r.tar", pack(t, tarFile("f", content))), AddOptions{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return images[0]
}

func collect(t testing.TB, s *Store, alive func(string) bool) Collected {
	t.Helper()
	done, err := s.Collect(t.Context(), alive)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func TestMissingImageIsNamedInKnownWords(t *testing.T) {
	_, _, err := open(t, Options{}).Resolve(t.Context(), "openclaw-sandbox:bookworm-slim", Identity{})
	if !errors.Is(err, ErrNoImage) || err.Error() != "Sandbox image not found: openclaw-sandbox:bookworm-slim. Build or pull it first." || errhint.Of(err) == "" {
		t.Errorf("error = %v, hint %q", err, errhint.Of(err))
	}
}

func TestNames(t *testing.T) {
	s := open(t, Options{})
	one := take(t, s, "team/tool:1", "one")
	for _, ref := range []string{"team/tool:1", "docker.io/team/tool:1", "index.docker.io/team/tool:1", one.ID, strings.TrimPrefix(one.ID, "sha256:")[:12]} {
		if got, err := s.Find(t.Context(), ref); err != nil || got.ID != one.ID {
			t.Errorf("%s: %v, %v", ref, got, err)
		}
	}
	for _, ref := range []string{"team/tool", "tool:1", "sha256:0123456789ab", "0123456789ab"} {
		if _, err := s.Find(t.Context(), ref); !errors.Is(err, ErrNoImage) {
			t.Errorf("%s: %v", ref, err)
		}
	}
	two := take(t, s, "docker.io/team/tool:1", "two") // the name moves on
	if got, err := s.Find(t.Context(), "team/tool:1"); err != nil || got.ID != two.ID {
		t.Errorf("after a second import: %v, %v", got, err)
	}
	if _, err := s.Find(t.Context(), one.ID); !errors.Is(err, ErrNoImage) {
		t.Errorf("an image without a name is still listed: %v", err)
	}
	if err := s.Tag(t.Context(), "team/tool:1", "mine:latest"); err != nil {
		t.Fatal(err)
	}
	if removed, err := s.Remove(t.Context(), "team/tool:1"); err != nil || removed.Gone {
		t.Errorf("removed = %+v, %v", removed, err)
	}
	if got, err := s.Find(t.Context(), "mine"); err != nil || !slices.Equal(got.Names, []string{"mine:latest"}) {
		t.Errorf("by its other name: %v, %v", got, err)
	}
	if removed, err := s.Remove(t.Context(), two.ID); err != nil || !removed.Gone {
		t.Errorf("removed = %+v, %v", removed, err)
	}
}

func TestCollectTakesWhatNobodyNeeds(t *testing.T) {
	s := open(t, Options{})
	take(t, s, "keep", "k")
	gone := take(t, s, "gone", "12345")
	if _, err := s.Remove(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	if done := collect(t, s, nil); done != (Collected{Layers: 1, Bytes: 5}) {
		t.Errorf("collected %+v", done)
	}
	if s.hasLayer(gone.Layers[0].name()) {
		t.Error("the layer is still there")
	}
	if _, _, err := s.Resolve(t.Context(), "keep", Identity{}); err != nil {
		t.Error(err)
	}
}

func TestPinsKeepLayers(t *testing.T) {
	s := open(t, Options{})
	image := take(t, s, "used", "u")
	root, pin, err := s.Resolve(t.Context(), "used", Identity{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Remove(t.Context(), "used"); err != nil {
		t.Fatal(err)
	}
	if done := collect(t, s, nil); !done.Busy {
		t.Errorf("collected while a root was being used: %+v", done)
	}
	if err := pin.Keep("box-1"); err != nil {
		t.Fatal(err)
	}
	pin.Release()
	pin.Release()
	another, err := Open(s.dir, Options{}) // another process, much later
	if err != nil {
		t.Fatal(err)
	}
	if done := collect(t, another, func(owner string) bool { return owner == "box-1" }); done != (Collected{}) {
		t.Errorf("collected %+v", done)
	}
	for _, layer := range root.Layers {
		if _, err := os.Stat(layer); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(another.Unpin("box-1"), another.Unpin("box-1")); err != nil {
		t.Error(err)
	}
	if done := collect(t, another, nil); done.Layers != 2 || s.hasLayer(image.Layers[0].name()) {
		t.Errorf("collected %+v", done)
	}
}

func TestCollectDropsPinsOfOwnersThatAreGone(t *testing.T) {
	s := open(t, Options{PinGrace: -1})
	take(t, s, "used", "u")
	for _, owner := range []string{"alive", "dead"} {
		_, pin, err := s.Resolve(t.Context(), "used", Identity{Hostname: owner})
		if err == nil {
			err = pin.Keep(owner)
		}
		if err != nil {
			t.Fatal(err)
		}
		pin.Release()
	}
	list, err := s.List(t.Context())
	if err != nil || !slices.Equal(list[0].UsedBy, []string{"alive", "dead"}) {
		t.Errorf("list = %+v, %v", list, err)
	}
	patient, err := Open(s.dir, Options{}) // it may be the pin of a sandbox that is being made
	if err != nil {
		t.Fatal(err)
	}
	if done := collect(t, patient, func(string) bool { return false }); done != (Collected{}) {
		t.Errorf("collected %+v of pins made just now", done)
	}
	if done := collect(t, s, func(owner string) bool { return owner == "alive" }); done.Pins != 1 || done.Layers != 1 {
		t.Errorf("collected %+v", done)
	}
	if left := leftovers(t, s, "pins"); !slices.Equal(left, []string{"alive"}) {
		t.Errorf("pins = %v", left)
	}
}

func TestCollectTouchesNothingWhenAPinCannotBeRead(t *testing.T) {
	s := open(t, Options{PinGrace: -1})
	image := take(t, s, "gone", "x")
	if err := os.WriteFile(s.path("pins", "box"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Remove(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Collect(t.Context(), nil); err == nil || !s.hasLayer(image.Layers[0].name()) {
		t.Errorf("error = %v", err)
	}
	if done := collect(t, s, func(string) bool { return false }); done.Layers != 1 {
		t.Errorf("collected %+v", done)
	}
}

func TestPinsHaveSafeOwners(t *testing.T) {
	s := open(t, Options{})
	for _, owner := range []string{"", ".", "..", "../index.json", "a/b", "-x", strings.Repeat("x", 200)} {
		if err := s.Unpin(owner); err == nil {
			t.Errorf("owner %q was accepted", owner)
		}
	}
	if _, err := os.Stat(s.path("lock")); err != nil {
		t.Error(err)
	}
}

func TestMountPointsAreRealDirectories(t *testing.T) {
	s := open(t, Options{})
	data := pack(t, tarLink("workspace", "/etc"), tarLink("srv", "/var"), tarFile("etc/os", ""))
	if _, err := s.Import(t.Context(), save(t, "r.tar", data), AddOptions{Name: "tricky"}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []Identity{{Dirs: []string{"/workspace"}}, {Dirs: []string{"/srv/data"}}, {Files: []string{"/srv/file"}}} {
		if _, _, err := s.Resolve(t.Context(), "tricky", id); !errors.Is(err, ErrLinked) {
			t.Errorf("%v: %v", id, err)
		}
	}
	for _, id := range []Identity{{Files: []string{"/etc"}}, {Dirs: []string{"/etc/hosts"}}} {
		if _, _, err := s.Resolve(t.Context(), "tricky", id); !errors.Is(err, ErrConflict) {
			t.Errorf("%v: %v", id, err)
		}
	}
	if _, _, err := s.Resolve(t.Context(), "", Identity{Dirs: []string{"/var/run/x"}}); !errors.Is(err, ErrLinked) {
		t.Errorf("through a link of the host's view: %v", err)
	}
	root, pin, err := s.Resolve(t.Context(), "tricky", Identity{Dirs: []string{"/data/in", "/data"}, Files: []string{"/etc/extra"}})
	if err != nil {
		t.Fatal(err)
	}
	pin.Release()
	for path, mode := range map[string]fs.FileMode{"data/in": fs.ModeDir | 0o755, "etc/extra": 0o644} {
		if info, err := os.Lstat(filepath.Join(root.Layers[0], path)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
}

func TestInterruptedImportLeavesNothingInTheWay(t *testing.T) {
	s := open(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	path := save(t, "r.tar", pack(t, tarFile("f", strings.Repeat("x", 5<<20))))
	if _, err := s.Import(ctx, path, AddOptions{Name: "a:b", Report: func(Progress) { cancel() }}); !errors.Is(err, context.Canceled) {
		t.Fatalf("error = %v", err)
	}
	if left := leftovers(t, s, "tmp"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := s.Import(t.Context(), path, AddOptions{Name: "a:b"}); err != nil {
		t.Error(err)
	}
}

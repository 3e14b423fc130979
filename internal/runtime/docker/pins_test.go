package docker

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// swap puts another directory in the place of path.
func swap(t *testing.T, path string) {
	t.Helper()
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o777); err != nil {
		t.Fatal(err)
	}
}

func checkedMount(t *testing.T, path string) sandbox.Mount {
	t.Helper()
	facts, err := hostpath.Identify(path)
	if err != nil {
		t.Fatal(err)
	}
	return sandbox.Mount{Source: path, Target: "/workspace", Device: facts.Device, Inode: facts.Inode}
}

func withMount(m sandbox.Mount) func(*sandbox.Spec) {
	return func(s *sandbox.Spec) { s.Mounts = append(s.Mounts, m) }
}

func TestSourceExchangedSinceTheCheck(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		source := filepath.Join(t.TempDir(), "source")
		if err := os.Mkdir(source, 0o777); err != nil {
			t.Fatal(err)
		}
		m := checkedMount(t, source)
		swap(t, source)
		if _, err := l.Create(t.Context(), l.spec(withMount(m))); !errors.Is(err, errSourceReplaced) || !errors.Is(err, sandbox.ErrDenied) {
			t.Errorf("create: %v", err)
		}
		if left := mustList(t, l); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

func TestSourceBecomesALinkAfterCreation(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		dir := t.TempDir()
		source, secret := filepath.Join(dir, "source"), filepath.Join(dir, "secret")
		for _, d := range []string{source, secret} {
			if err := os.Mkdir(d, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		i, err := l.Create(t.Context(), l.spec(withMount(checkedMount(t, source))))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Remove(source), os.Symlink(secret, source)); err != nil {
			t.Fatal(err)
		}
		if err := i.Start(t.Context()); !errors.Is(err, errSourceReplaced) {
			t.Errorf("start: %v", err)
		}
		if left := mustList(t, l); len(left) != 0 {
			t.Errorf("container is left: %v", left)
		}
	})
}

// Another directory or a hard link in the place of what was checked is noticed
// before the start, although no link leads there.
func TestSourceExchangedBeforeTheStart(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		dir := t.TempDir()
		source, file, secret := filepath.Join(dir, "source"), filepath.Join(dir, "file"), filepath.Join(dir, "secret")
		if err := errors.Join(os.Mkdir(source, 0o777), os.WriteFile(file, nil, 0o666), os.WriteFile(secret, nil, 0o666)); err != nil {
			t.Fatal(err)
		}
		for path, exchange := range map[string]func(){
			source: func() { swap(t, source) },
			file: func() {
				if err := errors.Join(os.Remove(file), os.Link(secret, file)); err != nil {
					t.Fatal(err)
				}
			},
		} {
			i, err := l.Create(t.Context(), l.spec(withMount(checkedMount(t, path))))
			if err != nil {
				t.Fatal(err)
			}
			exchange()
			if err := i.Start(t.Context()); !errors.Is(err, errSourceReplaced) {
				t.Errorf("start with another %s: %v", filepath.Base(path), err)
			}
			if left := mustList(t, l); len(left) != 0 {
				t.Errorf("container is left: %v", left)
			}
		}
	})
}

// A source that is exchanged between our last check and the engine's mount is found
// by the check inside.
func TestSourceExchangedDuringTheStart(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		source := filepath.Join(t.TempDir(), "source")
		if err := os.Mkdir(source, 0o777); err != nil {
			t.Fatal(err)
		}
		i := l.start(t, withMount(checkedMount(t, source)))
		found, err := l.inspect(t.Context(), i.id)
		if err != nil {
			t.Fatal(err)
		}
		pins, err := pinsOf(found)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkMounted(i.firstProcess(), pins); err != nil {
			t.Errorf("nothing was exchanged, yet: %v", err)
		}
		swap(t, source)
		pins, err = pinsOf(found)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkMounted(i.firstProcess(), pins); !errors.Is(err, errSourceReplaced) {
			t.Errorf("after an exchange: %v", err)
		}
	})
}

func TestMissingSourceIsNotMade(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		source := filepath.Join(t.TempDir(), "missing")
		_, err := l.Create(t.Context(), l.spec(withMount(sandbox.Mount{Source: source, Target: "/workspace"})))
		if !errors.Is(err, os.ErrNotExist) || errors.Is(err, sandbox.ErrNotFound) {
			t.Errorf("create: %v", err)
		}
		if _, err := os.Stat(source); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the engine made it: %v", err)
		}
	})
}

// A source below a link works: what is mounted is where it leads at the check.
func TestSourceThroughALink(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		dir := t.TempDir()
		place, link := filepath.Join(dir, "place"), filepath.Join(dir, "link")
		if err := errors.Join(os.Mkdir(place, 0o777), os.Chmod(place, 0o777), os.Symlink(place, link)); err != nil {
			t.Fatal(err)
		}
		i := l.start(t, withMount(checkedMount(t, link)))
		sh(t, i, "echo > /workspace/made")
		if _, err := os.Stat(filepath.Join(place, "made")); err != nil {
			t.Error(err)
		}
	})
}

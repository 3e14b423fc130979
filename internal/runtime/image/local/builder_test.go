package local

import (
	"archive/tar"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/runtime/image/npm"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
)

// packages has one archive of each package that is wanted.
type packages struct{ fetched atomic.Int64 }

func (p *packages) Resolve(_ context.Context, _ string, _ npm.Platform, wanted []string) (tree []npm.Package, err error) {
	for _, spec := range wanted {
		at := strings.LastIndex(spec, "@")
		sum := sha512.Sum512([]byte(spec))
		tree = append(tree, npm.Package{Path: "node_modules/" + spec[:at], Name: spec[:at], Version: spec[at+1:], SHA512: hex.EncodeToString(sum[:])})
	}
	return tree, nil
}

func (p *packages) Fetch(_ context.Context, dir string, tree []npm.Package, _ func(int, int)) (err error) {
	for _, one := range tree {
		p.fetched.Add(1)
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, one.File()), []byte(one.Name), 0o600))
	}
	return err
}

// newBuilder has a sandbox that is run.
func newBuilder(t *testing.T, run func(ctx context.Context, s *Step) error) *Builder {
	t.Helper()
	dir := t.TempDir()
	store, err := rootfs.Open(filepath.Join(dir, "images"), rootfs.Options{Volatile: true})
	if err != nil {
		t.Fatal(err)
	}
	return &Builder{Store: store, Run: run, Dir: filepath.Join(dir, "builds"), Npm: &packages{}}
}

// installed writes what the script of a step would.
func installed(_ context.Context, s *Step) error {
	list, err := os.ReadFile(filepath.Join(s.Inputs, "list"))
	if err != nil {
		return err
	}
	w := tar.NewWriter(s.Stdout)
	err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "./installed", Mode: 0o644, Size: int64(len(list))})
	_, wrote := w.Write(list)
	return errors.Join(err, wrote, w.Close())
}

func (b *Builder) left(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(b.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "lock" {
			names = append(names, e.Name())
		}
	}
	return names
}

var tool = Program{Name: "tool", Package: "tool", Version: "1.0.0", Commands: []string{"tool"}}

// An image is built once; what was fetched for it is removed, and another version is
// another image that takes the name.
func TestBuiltOnce(t *testing.T) {
	b := newBuilder(t, installed)
	first, err := b.Program(t.Context(), tool, "")
	if err != nil || !first.Built || first.Version != "1.0.0" || !first.Image.OnHost {
		t.Fatalf("%+v %v", first, err)
	}
	if got := first.Image.Config.SearchPath(); got != "/opt/atoll/tool/bin:/opt/atoll/node/bin:"+searchPath {
		t.Errorf("PATH %s", got)
	}
	if left := b.left(t); left != nil {
		t.Errorf("left: %v", left)
	}
	before := b.Npm.(*packages).fetched.Load()
	again, err := b.Program(t.Context(), tool, "")
	if err != nil || again.Built || again.Image.ID != first.Image.ID || b.Npm.(*packages).fetched.Load() != before {
		t.Errorf("%+v %v", again, err)
	}
	newer := tool
	newer.Version = "2.0.0"
	second, err := b.Program(t.Context(), newer, "")
	if err != nil || !second.Built {
		t.Fatalf("%+v %v", second, err)
	}
	if now, err := b.Store.Find(t.Context(), "tool"); err != nil || now.ID != second.Image.ID {
		t.Errorf("tool is %+v, %v", now, err)
	}
	if old, err := b.Store.Find(t.Context(), "tool:1.0.0"); err != nil || old.ID != first.Image.ID {
		t.Errorf("tool:1.0.0 is %+v, %v", old, err)
	}
}

// A step that fails, after whatever it wrote, and one that is cancelled leave no image,
// no directory of the step, and what was fetched.
func TestFailedAndCancelled(t *testing.T) {
	failed := errors.New("the script failed")
	b := newBuilder(t, func(ctx context.Context, s *Step) error { return errors.Join(installed(ctx, s), failed) })
	if made, err := b.Program(t.Context(), tool, ""); !errors.Is(err, failed) {
		t.Errorf("%+v %v", made, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	b.Run = func(ctx context.Context, s *Step) error {
		_, _ = io.WriteString(s.Stdout, "half")
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}
	if made, err := b.Program(ctx, tool, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v %v", made, err)
	}
	if left := b.left(t); len(left) != 1 || left[0] != archivesDir {
		t.Errorf("left: %v", left)
	}
	if images, err := b.Store.List(t.Context()); len(images) > 0 || err != nil {
		t.Errorf("images %v %v", images, err)
	}
	b.Run = installed
	if made, err := b.Program(t.Context(), tool, ""); err != nil || !made.Built {
		t.Errorf("the next time: %+v %v", made, err)
	}
}

// A full disk is said with the next command.
func TestFullDisk(t *testing.T) {
	b := newBuilder(t, func(context.Context, *Step) error {
		return errors.New("the build ended with 2: tar: ./x: Cannot write: No space left on device")
	})
	if _, err := b.Program(t.Context(), tool, ""); !strings.Contains(errhint.Of(err), "free space") || !strings.Contains(errhint.Of(err), "what was fetched is kept") {
		t.Errorf("%v: %s", err, errhint.Of(err))
	}
}

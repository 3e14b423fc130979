package follow_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/sandbox/follow"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
	"github.com/atoll-run/atoll/internal/testkit/machinetest"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// guestUser is the user of a guest of machinetest.
const guestUser = 65534

// stage is a base, its overlay as a guest sees it, and a follower.
type stage struct {
	t    *testing.T
	base string
	dir  string // where the overlay is seen
	tree *overlay.Tree

	insideFiles *guestfs.Files
	follower    *follow.Follower
}

// eachKind runs a test with an overlay of the kernel and with a copy.
func eachKind(t *testing.T, test func(*stage)) {
	t.Helper()
	for _, kind := range []overlay.Kind{overlay.Kernel, overlay.Copy} {
		t.Run(string(kind), func(t *testing.T) { test(newStage(t, kind)) })
	}
}

func newStage(t *testing.T, kind overlay.Kind) *stage {
	t.Helper()
	need.Root(t, "it mounts overlays, and edits files as another user")
	top, err := os.MkdirTemp("", "atoll-follow") //nolint:usetesting // another user enters it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	s := &stage{t: t, base: filepath.Join(top, "base"), dir: filepath.Join(top, "seen")}
	for _, dir := range []string{s.base, filepath.Join(s.base, "src"), s.dir} {
		mustDo(t, os.Mkdir(dir, 0o755))
	}
	s.host("one", "1\n")
	s.host("src/two", "2\n")
	state := filepath.Join(top, "state")
	request := overlay.Request{State: state, Dir: filepath.Join(state, "overlay", "slug", "0"), Base: s.base, Target: s.dir, Want: kind}
	if kind == overlay.Kernel {
		request.Kernel = overlay.KernelMount{Marks: overlay.MarksTrusted}
	}
	owned(t, top)
	if s.tree, err = overlay.Prepare(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	for dir := s.tree.Dir; dir != top; dir = filepath.Dir(dir) {
		mustDo(t, os.Chmod(dir, 0o755)) // the guest's user enters them
	}
	mustDo(t, os.Chmod(top, 0o755))
	s.follow(machinetest.Start(t, &machinetest.Options{Prepare: s.mount()}))
	return s
}

// mount is the command that shows the overlay.
func (s *stage) mount() string {
	if s.tree.Kind == overlay.Copy {
		return "mount --bind " + s.tree.Source() + " " + s.dir
	}
	return fmt.Sprintf("mount -t overlay overlay -o redirect_dir=on,volatile,lowerdir=%s,upperdir=%s,workdir=%s %s", s.base, s.tree.Upper(), s.tree.Work(), s.dir)
}

// hideEnv hides every .env.
func hideEnv(_ context.Context, walk func(look func(overlay.Candidate)) error) (map[string]overlay.Cover, error) {
	covers := map[string]overlay.Cover{}
	err := walk(func(c overlay.Candidate) {
		if filepath.Base(c.Path) == ".env" {
			covers[c.Path] = overlay.Cover{Hide: true}
		}
	})
	return covers, err
}

// follow starts the follower, and waits until it has seen an edit.
func (s *stage) follow(g *machinetest.Guest) {
	s.t.Helper()
	files, err := guestfs.New(g.Machine(s.t, nil), []guestfs.Root{{Path: s.dir}})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	f := &follow.Follower{Tree: s.tree, Files: files, Log: slog.New(slog.DiscardHandler), Hide: hideEnv}
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
	})
	s.insideFiles, s.follower = files, f
	s.host("ready", "yes\n")
	s.wants("ready", "yes\n")
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// owned gives everything below a directory to the guest's user.
func owned(t *testing.T, dir string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "chown", "-R", fmt.Sprint(guestUser), dir).CombinedOutput(); err != nil {
		t.Fatalf("chown: %v %s", err, out)
	}
}

// host saves a file as an editor does: under another name, then renamed.
func (s *stage) host(path, content string) {
	s.t.Helper()
	temporary := filepath.Join(s.base, path+".swp")
	mustDo(s.t, os.WriteFile(temporary, []byte(content), 0o644))
	mustDo(s.t, os.Chown(temporary, guestUser, guestUser))
	mustDo(s.t, os.Rename(temporary, filepath.Join(s.base, path)))
}

// inside returns what the guest sees at a path; "" if there is nothing.
func (s *stage) inside(path string) string {
	s.t.Helper()
	content, err := s.insideFiles.Read(s.t.Context(), filepath.Join(s.dir, path), nil)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	mustDo(s.t, err)
	return string(content.Data)
}

// agent writes a file through the guest.
func (s *stage) agent(path, content string) {
	s.t.Helper()
	_, err := s.insideFiles.Write(s.t.Context(), filepath.Join(s.dir, path), []byte(content), &guestfs.WriteOptions{MkdirAll: true})
	mustDo(s.t, err)
}

// wants waits until the guest sees a content.
func (s *stage) wants(path, content string) {
	s.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); s.inside(path) != content; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%s is %q inside, want %q", path, s.inside(path), content)
		}
	}
}

// recorded waits until these files are recorded as hidden, and no others, in the tree
// that changes are read from too.
func (s *stage) recorded(paths ...string) {
	s.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		again, err := overlay.Load(s.tree.Dir)
		mustDo(s.t, err)
		if len(again.Hidden) == len(paths) && !slices.ContainsFunc(paths, func(path string) bool { return !again.IsHidden(path) }) {
			s.tree = again
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("recorded as hidden: %+v", again.Hidden)
		}
	}
}

// changes are the paths that the overlay says the agent has changed.
func (s *stage) changes() string {
	s.t.Helper()
	var list []string
	for change, err := range s.tree.Changes(s.t.Context()) {
		mustDo(s.t, err)
		list = append(list, string(change.Kind)+" "+change.Path)
	}
	return strings.Join(list, ", ")
}

// wantsChanges waits until the overlay has these changes: a temporary file of a save
// may have been handed over and be removed a moment later.
func (s *stage) wantsChanges(list string) {
	s.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); s.changes() != list; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("changes: %s, want %s", s.changes(), list)
		}
	}
}

// A file that the host saves, makes or removes is so inside, and no change of the
// agent's.
func TestEditsReachTheAgent(t *testing.T) {
	eachKind(t, func(s *stage) {
		s.wants("src/two", "2\n") // seen, so that the kernel has it in its caches
		if s.inside("new/deep/file") != "" {
			t.Fatal("there is a file before it is made")
		}
		s.host("one", "saved\n")
		s.host("src/two", "saved too\n")
		s.wants("one", "saved\n")
		s.wants("src/two", "saved too\n")
		s.host("one", "saved again\n")
		s.wants("one", "saved again\n")
		mustDo(t, os.MkdirAll(filepath.Join(s.base, "new", "deep"), 0o755))
		owned(t, s.base)
		s.host("new/deep/file", "new\n")
		s.wants("new/deep/file", "new\n")
		mustDo(t, os.Remove(filepath.Join(s.base, "src", "two")))
		s.wants("src/two", "")
		s.host("src/two", "back\n")
		s.wants("src/two", "back\n")
		s.agent("own", "mine\n")
		s.wantsChanges("added own")
		if begun, err := s.tree.AsBegun("src/two"); !begun || err != nil {
			t.Errorf("a file that was handed over is a conflict: %v", err)
		}
	})
}

// What the agent has changed is not replaced, and is a conflict.
func TestTheAgentsChangesStay(t *testing.T) {
	eachKind(t, func(s *stage) {
		s.agent("one", "agent\n")
		s.agent("made", "agent\n")
		_, err := s.insideFiles.Remove(t.Context(), filepath.Join(s.dir, "src", "two"), nil)
		mustDo(t, err)
		for _, path := range []string{"one", "made", "src/two", "last"} {
			s.host(path, "host\n")
		}
		s.wants("last", "host\n")
		for path, want := range map[string]string{"one": "agent\n", "made": "agent\n", "src/two": ""} {
			if got := s.inside(path); got != want {
				t.Errorf("%s is %q inside, want %q", path, got, want)
			}
			if begun, err := s.tree.AsBegun(path); begun || err != nil {
				t.Errorf("%s is no conflict: %v", path, err)
			}
		}
	})
}

// The files of git are not handed over, nor are secrets: those that the host makes
// while the agent works go from where the kernel shows them, and are no change.
func TestSecretsOfTheHostAreHidden(t *testing.T) {
	eachKind(t, func(s *stage) {
		mustDo(t, os.Mkdir(filepath.Join(s.base, ".git"), 0o755))
		s.host(".git/HEAD", "ref: refs/heads/main\n")
		s.agent("mine/.env", "AGENT=1\n")
		if s.inside("src/.env") != "" { // asked for, so that the kernel has it as missing in its caches
			t.Fatal("there is a secret before it is made")
		}
		mustDo(t, os.Mkdir(filepath.Join(s.base, "mine"), 0o755))
		for _, path := range []string{".env", "src/.env", "mine/.env"} {
			s.host(path, "TOKEN=1\n")
		}
		s.host("last", "host\n")
		s.wants("last", "host\n")
		for _, path := range []string{".env", "src/.env"} {
			s.wants(path, "")
		}
		s.wants("mine/.env", "AGENT=1\n")
		if s.tree.Kind == overlay.Copy && s.inside(".git/HEAD") != "" {
			t.Error("a file of git was handed over")
		}
		if s.tree.Kind == overlay.Kernel {
			s.recorded(".env", "src/.env")
		}
		if got := s.changes(); strings.Contains(got, "deleted") {
			t.Errorf("changes: %s", got)
		}
		s.host(".env", "TOKEN=2\n")
		s.host("last", "again\n")
		s.wants("last", "again\n")
		if got := s.inside(".env"); got != "" {
			t.Errorf("a saved secret is %q inside", got)
		}
	})
}

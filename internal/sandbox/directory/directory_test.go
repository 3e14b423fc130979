package directory_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/sandbox/directory"
)

func mkdir(t *testing.T, parts ...string) string {
	t.Helper()
	dir := filepath.Join(parts...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func locate(t *testing.T, cwd string, homes ...string) *directory.Directory {
	t.Helper()
	d, err := directory.Locate(cwd, homes)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTheTopLevelOfARepository(t *testing.T) {
	home := t.TempDir()
	mkdir(t, home, ".git")
	repository := mkdir(t, home, "shop")
	mkdir(t, repository, ".git")
	below, plain := mkdir(t, repository, "src", "cart"), mkdir(t, home, "notes", "today")
	for cwd, want := range map[string][2]string{repository: {repository, "."}, below: {repository, "src/cart"}, plain: {plain, "."}} {
		if d := locate(t, cwd, home); d.Path != want[0] || d.Sub != want[1] || d.IsRepository() != (want[0] == repository) {
			t.Errorf("%s: %+v, want %v", cwd, d, want)
		}
	}
	for _, bad := range []string{home, "/", filepath.Join(home, "missing")} {
		if d, err := directory.Locate(bad, []string{home}); err == nil {
			t.Errorf("%s was taken: %+v", bad, d)
		}
	}
}

// A worktree has a file for its .git.
func TestAWorktreeIsARepository(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: /elsewhere\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if d := locate(t, mkdir(t, dir, "a")); d.Path != dir || !d.IsRepository() {
		t.Errorf("%+v", d)
	}
}

func TestTheRepositoryOfAnotherUserIsNotTaken(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("an ordinary user cannot make a directory of another one")
		return
	}
	outer := t.TempDir()
	foreign := mkdir(t, outer, ".git")
	inner := mkdir(t, outer, "mine")
	if err := os.Chown(foreign, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if d := locate(t, inner); d.Path != inner {
		t.Errorf("the top level is %s", d.Path)
	}
}

func TestADirectoryKeepsItsIDWhenItIsMoved(t *testing.T) {
	root := t.TempDir()
	records := directory.Records{State: mkdir(t, root, "state")}
	shop := mkdir(t, root, "Shop!")
	if _, err := records.Find(locate(t, shop)); !errors.Is(err, directory.ErrNone) {
		t.Fatalf("found before it was recorded: %v", err)
	}
	first, err := records.Record(t.Context(), locate(t, shop), "host")
	if err != nil || !strings.HasPrefix(first.ID, "shop-") || first.Image != "host" {
		t.Fatalf("%+v, %v", first, err)
	}
	moved := filepath.Join(root, "store")
	if err := os.Rename(shop, moved); err != nil {
		t.Fatal(err)
	}
	if found, err := records.Find(locate(t, moved)); err != nil || found.ID != first.ID || found.Moved != shop {
		t.Errorf("after the move: %+v, %v", found, err)
	}
	if again, err := records.Record(t.Context(), locate(t, moved), ""); err != nil || again.ID != first.ID || again.Image != "host" {
		t.Errorf("recorded again: %+v, %v", again, err)
	}
	if found, err := records.Find(locate(t, moved)); err != nil || found.Moved != "" {
		t.Errorf("the move is not noted: %+v, %v", found, err)
	}
	other, err := records.Record(t.Context(), locate(t, mkdir(t, shop)), "")
	if err != nil || other.ID == first.ID {
		t.Errorf("a new directory at the old path has the old id: %+v, %v", other, err)
	}
}

func TestTwoAtOnceGetOneID(t *testing.T) {
	root := t.TempDir()
	records, dir := directory.Records{State: mkdir(t, root, "state")}, locate(t, mkdir(t, root, "x"))
	ids := make([]string, 8)
	var work sync.WaitGroup
	for i := range ids {
		work.Go(func() {
			if d, err := records.Record(t.Context(), dir, ""); err == nil {
				ids[i] = d.ID
			}
		})
	}
	work.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Fatalf("ids %q", ids)
		}
	}
}

func TestDamagedRecordsAreRefused(t *testing.T) {
	root := t.TempDir()
	for _, text := range []string{"{", "[null]", "[{\"id\": 7}]"} {
		if err := os.WriteFile(filepath.Join(root, directory.FileName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if d, err := (directory.Records{State: root}).Find(locate(t, root)); err == nil || errors.Is(err, directory.ErrNone) {
			t.Errorf("%s: %+v, %v", text, d, err)
		}
	}
}

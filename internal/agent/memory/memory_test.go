package memory_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/agent/memory"
)

type fixture struct {
	*memory.Index
	dir, file string
}

func open(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{dir: t.TempDir(), file: filepath.Join(t.TempDir(), "memory.db")}
	f.reopen(t)
	return f
}

func (f *fixture) reopen(t *testing.T) {
	t.Helper()
	x, err := memory.Open(t.Context(), f.file, f.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	f.Index = x
}

func (f *fixture) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) first(t *testing.T, query string) memory.Hit {
	t.Helper()
	found, err := f.Search(t.Context(), query, 3)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Hits) == 0 {
		return memory.Hit{}
	}
	return found.Hits[0]
}

const notes = `# Deploys
The staging server is called heron. Deploying needs the VPN, and happens on Tuesdays only.

# People
Maria owns the billing service. She prefers short pull requests.

# Preferences
The owner wants tabs, never spaces, and tests before code.
`

// Questions that people ask in other words than the notes have.
func TestRecall(t *testing.T) {
	f := open(t)
	f.write(t, "MEMORY.md", notes)
	f.write(t, "memory/2026-11-01.md", "Migrated the database to version 17.\nThe backup takes forty minutes and blocks writers.\n")
	f.write(t, "memory/sub/trip.md", "The flight to Lisbon leaves at nine. Seat 14C.\n")
	f.write(t, "notes.md", "heron heron heron")
	for query, want := range map[string]string{
		"what is the name of our staging servers?":   "heron",
		"on which day do we deploy?":                 "Tuesdays",
		"who is the owner of the service that bills": "Maria",
		"how long are backups, do they block?":       "forty minutes",
		"when is my flight leaving":                  "nine",
		"indent with tabs or with a space":           "tabs",
		"which databases were migrated":              "version 17",
	} {
		hit := f.first(t, query)
		if !strings.Contains(hit.Snippet, want) || hit.Score <= 0 || hit.Score >= 1 {
			t.Errorf("%q: %+v, want %q", query, hit, want)
		}
		text, err := memory.Get(f.dir, hit.Path, hit.First, hit.Last-hit.First+1)
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%q: lines %d–%d of %s: %q, %v", query, hit.First, hit.Last, hit.Path, text, err)
		}
	}
}

func TestFollowsTheFiles(t *testing.T) {
	f := open(t)
	f.write(t, "MEMORY.md", "the color is green")
	if hit := f.first(t, "color"); !strings.Contains(hit.Snippet, "green") {
		t.Errorf("%+v", hit)
	}
	f.write(t, "MEMORY.md", "the color is blue")
	if hit := f.first(t, "color"); !strings.Contains(hit.Snippet, "blue") {
		t.Errorf("%+v", hit)
	}
	if err := os.Remove(filepath.Join(f.dir, "MEMORY.md")); err != nil {
		t.Fatal(err)
	}
	if hit := f.first(t, "color"); hit.Path != "" {
		t.Errorf("%+v", hit)
	}
}

// Queries are words, whatever else they look like.
func TestStrangeQueries(t *testing.T) {
	f := open(t)
	f.write(t, "MEMORY.md", "plain words")
	for _, query := range []string{"", "the of", `"`, `path:"x`, "NEAR(plain words)", "plain AND (", "*", "'; DROP TABLE files; --", "\x00", strings.Repeat("word ", 10000)} {
		if _, err := f.Search(t.Context(), query, 1<<30); err != nil {
			t.Errorf("%.40q: %v", query, err)
		}
	}
}

func TestOnlyMemories(t *testing.T) {
	f := open(t)
	outside := filepath.Join(t.TempDir(), "secret.md")
	if err := os.WriteFile(outside, []byte("topsecret"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.write(t, "memory/a.md", "fine")
	f.write(t, "secret.md", "topsecret")
	f.write(t, "memory/huge.md", "topsecret"+strings.Repeat(" ", memory.MaxFile))
	for _, link := range []string{"MEMORY.md", "memory/link.md"} {
		if err := os.Symlink(outside, filepath.Join(f.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(f.dir, "memory", "dir")); err != nil {
		t.Fatal(err)
	}
	if hit := f.first(t, "topsecret"); hit.Path != "" {
		t.Errorf("found %+v", hit)
	}
	for _, name := range []string{"secret.md", "../secret.md", "memory/../secret.md", "/etc/passwd", "memory/none.md", "memory/dir/secret.md", "MEMORY.md"} {
		if text, err := memory.Get(f.dir, name, 0, 0); err == nil {
			t.Errorf("%s: %q", name, text)
		}
	}
	if _, err := memory.Get(f.dir, "secret.md", 0, 0); !errors.Is(err, memory.ErrNoMemory) {
		t.Errorf("error %v", err)
	}
}

// A spoilt index is made again.
func TestDamagedIndex(t *testing.T) {
	f := open(t)
	f.write(t, "MEMORY.md", "still here")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.file, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	f.reopen(t)
	if hit := f.first(t, "here"); hit.Path != "MEMORY.md" {
		t.Errorf("%+v", hit)
	}
}

func TestLongFiles(t *testing.T) {
	f := open(t)
	f.write(t, "MEMORY.md", strings.Repeat("nothing to see in this line\n", 500)+"the needle is here\n"+strings.Repeat("nothing to see in this line\n", 500))
	hit := f.first(t, "needle")
	if hit.First > 501 || hit.Last < 501 || hit.Last-hit.First > 100 {
		t.Errorf("%+v", hit)
	}
	if text, err := memory.Get(f.dir, "MEMORY.md", 501, 1); err != nil || text != "the needle is here" {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := memory.Get(f.dir, "MEMORY.md", 99999, 5); err != nil || text != "" {
		t.Errorf("%q, %v", text, err)
	}
}

// What goes with a run is whole memories, in order, as far as they fit.
func TestTexts(t *testing.T) {
	f := open(t)
	f.write(t, "MEMORY.md", "first")
	f.write(t, "memory/a.md", "second")
	f.write(t, "memory/b.md", strings.Repeat("x", 100))
	f.write(t, "memory/c.md", "third")
	f.write(t, "secret.md", "topsecret")
	if err := os.Symlink(filepath.Join(f.dir, "secret.md"), filepath.Join(f.dir, "memory", "link.md")); err != nil {
		t.Fatal(err)
	}
	texts, left, err := memory.Texts(f.dir, 50)
	want := []memory.Text{{"MEMORY.md", "first"}, {"memory/a.md", "second"}, {"memory/c.md", "third"}}
	if err != nil || !slices.Equal(texts, want) || left != 1 {
		t.Errorf("%v, %d left, %v", texts, left, err)
	}
	if _, _, err := memory.Texts(filepath.Join(f.dir, "none"), 50); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no workspace: %v", err)
	}
}

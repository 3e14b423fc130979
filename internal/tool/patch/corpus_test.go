package patch_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/atoll-run/atoll/internal/tool/patch"
)

var update = flag.Bool("update", false, "write what happens into the error and levels files of testdata, to be read before it is kept")

// TestCorpus runs the cases of testdata. A case is an archive:
//
//	-- patch --          the patch
//	-- before/NAME --    a file before it
//	-- after/NAME --     a file after it; if there are none, nothing may change
//	-- error --          the whole error; absent if the patch applies
//	-- levels --         "line of the file: level" for each hunk not found exactly
//
// A name may end in " (crlf)" for a file, or patch, with "\r\n", and in " (no
// newline)" for a file whose last line has no end.
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(files) < 50 {
		t.Fatalf("%d cases, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { runCase(t, file) })
	}
}

func runCase(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := readCase(archive)
	files := newMemory(c.before)
	levels, applyErr := apply(t, c.patch, files)
	if applyErr != nil {
		c.after = c.before
	}
	if diff := cmp.Diff(c.after, files.plain()); diff != "" {
		t.Errorf("files:\n%s", diff)
	}
	if *update {
		rewrite(t, file, archive, map[string]string{"error": line(applyErr), "levels": levels})
		return
	}
	if diff := cmp.Diff(c.expected["error"], line(applyErr)); diff != "" {
		t.Errorf("error:\n%s", diff)
	}
	if diff := cmp.Diff(c.expected["levels"], levels); diff != "" {
		t.Errorf("levels:\n%s", diff)
	}
}

func line(err error) string {
	if err == nil {
		return ""
	}
	return err.Error() + "\n"
}

func apply(t *testing.T, text string, files *memory) (levels string, err error) {
	p, err := patch.Parse(text)
	if err != nil {
		return "", err
	}
	plan, err := p.Apply(t.Context(), files)
	if err != nil {
		return "", err
	}
	for _, op := range plan.Operations {
		for _, p := range op.Placements {
			if p.Level != patch.Exact {
				levels += fmt.Sprintf("%d: %v\n", p.FileLine, p.Level)
			}
		}
	}
	return levels, nil
}

type testCase struct {
	patch         string
	before, after map[string]string
	expected      map[string]string
}

func readCase(archive *txtar.Archive) testCase {
	c := testCase{before: map[string]string{}, after: map[string]string{}, expected: map[string]string{}}
	for _, f := range archive.Files {
		name, data := f.Name, string(f.Data)
		if short, found := strings.CutSuffix(name, " (no newline)"); found {
			name, data = short, strings.TrimSuffix(data, "\n")
		}
		if short, found := strings.CutSuffix(name, " (crlf)"); found {
			name, data = short, strings.ReplaceAll(data, "\n", "\r\n")
		}
		dir, base, inDir := strings.Cut(name, "/")
		switch {
		case inDir && dir == "before":
			c.before[base] = data
		case inDir && dir == "after":
			c.after[base] = data
		case name == "patch":
			c.patch = data
		default:
			c.expected[name] = data
		}
	}
	return c
}

// rewrite replaces the expected texts of an archive.
func rewrite(t *testing.T, file string, archive *txtar.Archive, texts map[string]string) {
	t.Helper()
	out := &txtar.Archive{Comment: archive.Comment}
	for _, f := range archive.Files {
		if _, expected := texts[f.Name]; !expected {
			out.Files = append(out.Files, f)
		}
	}
	for _, name := range []string{"error", "levels"} {
		if texts[name] != "" {
			out.Files = append(out.Files, txtar.File{Name: name, Data: []byte(texts[name])})
		}
	}
	if err := os.WriteFile(file, txtar.Format(out), 0o600); err != nil {
		t.Fatal(err)
	}
}

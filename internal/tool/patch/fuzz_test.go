package patch_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/atoll-run/atoll/internal/tool/patch"
)

// addCorpus gives the patches and files of testdata to a fuzz target.
func addCorpus(f *testing.F, add func(c testCase)) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		add(readCase(archive))
	}
}

// FuzzParse checks on any text that what is accepted can be written and read
// again as the same patch, and that what is refused is refused with a line.
func FuzzParse(f *testing.F) {
	addCorpus(f, func(c testCase) { f.Add(c.patch) })
	f.Fuzz(func(t *testing.T, text string) {
		p, err := patch.Parse(text)
		if err != nil {
			e, ok := errors.AsType[*patch.SyntaxError](err)
			if !ok || e.Line < 1 || e.Line > strings.Count(text, "\n")+2 || p != nil {
				t.Fatalf("got %v, %#v", p, err)
			}
			return
		}
		again, err := patch.Parse(p.String())
		if err != nil {
			t.Fatalf("%v: %s", err, p)
		}
		lines := cmpopts.IgnoreFields(patch.Change{}, "Line")
		if diff := cmp.Diff(p, again, lines, cmpopts.IgnoreFields(patch.Hunk{}, "Line"), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s\nof %q", diff, p)
		}
		for _, path := range p.Paths() {
			if path == "" || strings.ContainsAny(path, "\x00\n\r") || strings.Contains("/"+path+"/", "/../") {
				t.Fatalf("path %q", path)
			}
		}
	})
}

// FuzzApply checks on any patch and files that it is applied as a whole or not
// at all, also if the FS breaks at some call, and that each new content has the
// lines that were to be added and not one byte of other files is touched.
func FuzzApply(f *testing.F) {
	addCorpus(f, func(c testCase) {
		f.Add(c.patch, c.before["f"], c.before["g"], uint8(0), false)
		f.Add(strings.ReplaceAll(c.patch, "f.py", "f"), c.before["f.py"], c.before["g"], uint8(2), true)
	})
	f.Add(everything, "c\n", "", uint8(3), false)
	f.Fuzz(func(t *testing.T, text, first, second string, breakAt uint8, afterward bool) {
		p, err := patch.Parse(text)
		if err != nil {
			return
		}
		m := newMemory(map[string]string{"f": first, "g": second, "keep": "k"})
		m.breakAt, m.breakErr, m.afterward = int(breakAt), errors.New("broken"), afterward
		before := m.contents()
		plan, err := p.Apply(t.Context(), m)
		if err != nil {
			if failed, ok := errors.AsType[*patch.ExecuteError](err); ok && len(failed.NotUndone) > 0 {
				t.Fatalf("not undone: %v", err)
			}
			if diff := cmp.Diff(before, m.contents()); diff != "" {
				t.Fatalf("half applied (%v):\n%s", err, diff)
			}
			return
		}
		checkApplied(t, p, plan, m)
	})
}

// checkApplied compares the files after a patch with what it says about them.
func checkApplied(t *testing.T, p *patch.Patch, plan *patch.Plan, m *memory) {
	t.Helper()
	files := m.plain()
	touched := false
	for i, op := range plan.Operations {
		c := p.Changes[i]
		name := filepath.Clean(max(c.MoveTo, ""))
		if c.MoveTo == "" {
			name = filepath.Clean(c.Path)
		}
		touched = touched || name == "keep" || filepath.Clean(c.Path) == "keep"
		got, exists := files[name]
		if exists == (c.Kind == patch.Delete) || got != string(op.After) {
			t.Fatalf("%s %s: %q, want %q", c.Kind, name, got, op.After)
		}
		inserted, removed := 0, 0
		for _, h := range c.Hunks {
			for _, line := range h.Lines {
				switch line.Op {
				case patch.Insert:
					inserted++
					if !strings.Contains(got, strings.TrimSuffix(line.Text, "\r")) {
						t.Fatalf("%q is not in %q", line.Text, got)
					}
				case patch.Remove:
					removed++
				}
			}
		}
		if c.Kind == patch.Update && countLines(got)-countLines(string(op.Before.Data)) != inserted-removed {
			t.Fatalf("%d lines became %d by %d more and %d less", countLines(string(op.Before.Data)), countLines(got), inserted, removed)
		}
	}
	if !touched && files["keep"] != "k" {
		t.Fatalf("keep is %q", files["keep"])
	}
}

func countLines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

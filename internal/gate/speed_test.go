package gate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// many returns so many files of four kilobytes.
func many(n int, text string) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("d%d/f%d.txt", i%20, i)] = strings.Repeat(text+"\n", 512)
	}
	return files
}

// BenchmarkApply applies 200 changed files and undoes that; BenchmarkCopy is the
// same with a copy and fsync of each file.
func BenchmarkApply(b *testing.B) {
	s := newBenchSite(b)
	g, err := Open(b.Context(), s.opt)
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	for b.Loop() {
		b.StopTimer()
		set, err := g.Collect(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		applied, err := g.Approve(b.Context(), passing(set), Decision{By: "me"})
		if err != nil || len(applied.Files) != 200 {
			b.Fatal(err)
		}
		b.StopTimer()
		if _, err := g.Undo(b.Context(), applied.ID, "me"); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

func BenchmarkCopy(b *testing.B) {
	s := newBenchSite(b)
	for b.Loop() {
		for path := range many(200, "") {
			data, err := os.ReadFile(s.path("tree", path))
			if err == nil {
				err = writeSynced(filepath.Join(s.path("base", path)), data)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkCollect collects and judges 200 changed files.
func BenchmarkCollect(b *testing.B) {
	s := newBenchSite(b)
	g, err := Open(b.Context(), s.opt)
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	for b.Loop() {
		if set, err := g.Collect(b.Context()); err != nil || len(set.Entries) != 200 {
			b.Fatal(err)
		}
	}
}

func newBenchSite(b *testing.B) *site {
	b.Helper()
	s := newSiteWith(b, ways()[0], many(200, "begun"))
	for path, text := range many(200, "changed") {
		s.write("tree", path, text)
	}
	return s
}

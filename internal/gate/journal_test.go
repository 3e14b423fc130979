package gate

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lines returns a journal of one applied batch.
func lines(tb testing.TB) []byte {
	tb.Helper()
	var data []byte
	steps := []step{{Path: "a/b", Before: &content{Type: typeFile, Mode: 0o644, SHA256: sumOf(nil)}, After: &content{Type: typeFile, Mode: 0o755, SHA256: sumOf([]byte("x"))}}}
	for _, r := range []record{
		{Phase: begun, ID: "s-abcdefgh", By: "me", Steps: steps},
		{Phase: ready, ID: "s-abcdefgh", New: map[int]inode{0: {1, 2}}},
		{Phase: placed, ID: "s-abcdefgh"},
		{Phase: ended, ID: "s-abcdefgh", Result: ResultApplied},
	} {
		line, err := encode(&r)
		if err != nil {
			tb.Fatal(err)
		}
		data = append(data, line...)
	}
	return data
}

// A line that was being written when the process ended is cut off; a damaged line
// before others is an error.
func TestJournal(t *testing.T) {
	data := lines(t)
	path := filepath.Join(t.TempDir(), journalName)
	for cut := range len(data) {
		if err := os.WriteFile(path, data[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := openJournal(path)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if want := bytes.Count(data[:cut], []byte("\n")); len(j.records) != want {
			t.Fatalf("cut at %d: %d records, want %d", cut, len(j.records), want)
		}
		if err := errors.Join(j.add(record{Phase: placed, ID: "s-abcdefgh"}), j.close()); err != nil {
			t.Fatal(err)
		}
		if j, err = openJournal(path); err != nil {
			t.Fatalf("after a line more: %v", err)
		}
		_ = j.close()
	}
	data[20] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openJournal(path); !errors.Is(err, ErrJournal) {
		t.Errorf("a damaged line: %v", err)
	}
}

// FuzzJournal: whatever the file has, no record names a file outside, and what was
// read is read again.
func FuzzJournal(f *testing.F) {
	f.Add(lines(f))
	f.Add([]byte("00000000 {}\n"))
	f.Add([]byte(`{"phase":"begun","id":"s-abcdefgh","steps":[{"path":"a/b","before":{"type":"file"},"from":"s-abcdefgh/1"}]}`))
	f.Add([]byte(`ffffffff {"phase":"begun","id":"s-abcdefgh","steps":[{"path":"../x"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		summed := fmt.Appendf(nil, "%08x %s\n", crc32.ChecksumIEEE(data), data)
		if _, ok := parseLine(bytes.TrimSuffix(summed, []byte("\n"))); ok && !bytes.Contains(data, []byte("\n")) {
			data = summed
		}
		records, good, err := parseJournal(data)
		if err != nil {
			return
		}
		for i := range records {
			for _, s := range records[i].Steps {
				if !filepath.IsLocal(s.Path) || strings.Contains(s.From, "..") || s.Before == nil && s.After == nil {
					t.Fatalf("%+v", s)
				}
			}
			if !validID(records[i].ID) {
				t.Fatalf("%+v", records[i])
			}
		}
		for _, b := range (&journal{records: records}).batches() {
			for n := range b.steps {
				_ = b.tempPath(n)
			}
		}
		again, end, err := parseJournal(data[:good])
		if err != nil || end != good || len(again) != len(records) {
			t.Fatalf("%d records of %d bytes, then %d of %d, %v", len(records), good, len(again), end, err)
		}
	})
}

// Old batches go, with what was kept for them.
func TestOldBatchesArePruned(t *testing.T) {
	s := newSite(t, map[string]string{"a.txt": "0\n"})
	s.opt.Limits.Kept = 3
	var first string
	for i := range 5 {
		s.write("tree", "a.txt", strings.Repeat("x", i+1))
		g, err := Open(t.Context(), s.opt)
		s.must(err)
		applied, err := g.Approve(t.Context(), passing(s.collect(g)), Decision{By: "me"})
		s.must(err)
		if first == "" {
			first = applied.ID
		}
		s.must(g.Close())
	}
	g := s.open()
	entries, err := os.ReadDir(g.undoDir(""))
	if err != nil || len(entries) != 3 {
		t.Errorf("%d are kept, %v", len(entries), err)
	}
	past := g.History()
	if len(past) != 5 || past[4].ID != first || past[4].Undoable || !past[0].Undoable {
		t.Errorf("%+v", past)
	}
	s.must(g.journal.rewrite(g.journal.records[8:]))
	if past := g.History(); len(past) != 3 {
		t.Errorf("after a rewrite: %+v", past)
	}
}

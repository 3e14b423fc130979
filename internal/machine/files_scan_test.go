package machine_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/google/go-cmp/cmp"
)

// weirdNames are names that a file system allows, and a careless program does not.
var weirdNames = []string{
	"new\nline", "tab\there", "\xff\xfe not UTF-8", "-rf", " ", "  leading", "quote\"'", "back\\slash", "*?[x]",
	"\x1b[31mred", strings.Repeat("n", 255), strings.Repeat("é", 127), "...", ".hidden", "%s%n", "$(reboot)", "a\u202Eb",
}

func TestFilesWeirdNames(t *testing.T) {
	w := newWorkplace(t, "")
	ctx := patience(t)
	for i, name := range weirdNames {
		_, err := w.files.Write(ctx, w.at(name), []byte(fmt.Sprint(i)), &guestfs.WriteOptions{Exclusive: true})
		check(t, err)
	}
	listing, err := w.files.List(ctx, w.dir, nil)
	check(t, err)
	var got []string
	for _, e := range listing.Entries {
		got = append(got, e.Path)
	}
	want := slices.Sorted(slices.Values(weirdNames))
	if !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	for i, name := range weirdNames {
		content, err := w.files.Read(ctx, w.at(name), nil)
		check(t, err)
		if string(content.Data) != fmt.Sprint(i) || content.Info.Path != w.at(name) {
			t.Errorf("%q: %q", name, content.Data)
		}
	}
	_, err = w.files.Copy(ctx, w.dir, w.at("copy"), &guestfs.CopyOptions{Recursive: true})
	wantErr(t, err, machine.ErrInvalid) // into itself
	check(t, w.files.Mkdir(ctx, w.at("sub"), nil))
	for _, name := range weirdNames {
		check(t, w.files.Rename(ctx, w.at(name), w.at("sub/"+name), nil))
	}
	totals, err := w.files.Remove(ctx, w.at("sub"), &guestfs.RemoveOptions{Recursive: true})
	check(t, err)
	if totals.Files != len(weirdNames) {
		t.Errorf("%+v", totals)
	}
}

func TestFilesManyEntries(t *testing.T) {
	w := newWorkplace(t, "")
	const n = 10_500
	check(t, os.Mkdir(w.at("many"), 0o755))
	w.own("many")
	for i := range n {
		f, err := os.Create(w.at(fmt.Sprintf("many/file-%05d", i)))
		check(t, err)
		check(t, f.Close())
	}
	listing, err := w.files.List(patience(t), w.at("many"), nil)
	check(t, err)
	if len(listing.Entries) != 10_000 || !listing.More || listing.Entries[9_999].Path != "file-09999" {
		t.Errorf("%d entries, more %v", len(listing.Entries), listing.More)
	}
	listing, err = w.files.List(patience(t), w.at("many"), &guestfs.ListOptions{After: "file-09999"})
	check(t, err)
	if len(listing.Entries) != 500 || listing.More || listing.Entries[0].Path != "file-10000" {
		t.Errorf("%d entries, more %v", len(listing.Entries), listing.More)
	}
	listing, err = w.files.List(patience(t), w.at("many"), &guestfs.ListOptions{Max: 3})
	check(t, err)
	if len(listing.Entries) != 3 || !listing.More || listing.Entries[2].Path != "file-00002" {
		t.Errorf("%+v", listing)
	}
	totals, err := w.files.Remove(patience(t), w.at("many"), &guestfs.RemoveOptions{Recursive: true})
	check(t, err)
	if totals.Files != n || totals.Dirs != 1 {
		t.Errorf("%+v", totals)
	}
}

func TestFilesListKinds(t *testing.T) {
	w := newWorkplace(t, "mkdir $ROOT/mnt; mount -t tmpfs tmpfs $ROOT/mnt; mkfifo $ROOT/fifo; ln -s x $ROOT/link; mkdir $ROOT/dir; printf 12345 > $ROOT/file; mknod $ROOT/dev c 1 3")
	listing, err := w.files.List(patience(t), w.dir, nil)
	check(t, err)
	got := map[string]guestfs.FileKind{}
	for _, e := range listing.Entries {
		got[e.Path] = e.Kind
		if e.Mount != (e.Path == "mnt") {
			t.Errorf("%s: mount %v", e.Path, e.Mount)
		}
		if e.Path == "file" && (e.Size != 5 || time.Since(e.ModTime) > time.Minute) {
			t.Errorf("%+v", e)
		}
	}
	want := map[string]guestfs.FileKind{
		"mnt": guestfs.KindDir, "fifo": guestfs.KindFIFO, "link": guestfs.KindSymlink, "dir": guestfs.KindDir,
		"file": guestfs.KindFile, "dev": guestfs.KindDevice,
	}
	if !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	info, err := w.files.Stat(patience(t), w.at("link"))
	check(t, err)
	if info.Kind != guestfs.KindSymlink || info.Target != "x" || info.Version != "" {
		t.Errorf("%+v", info)
	}
	for path, want := range map[string]error{"file": machine.ErrNotDir, "link": machine.ErrSymlink, "mnt": machine.ErrMount, "none": fs.ErrNotExist} {
		_, err := w.files.List(patience(t), w.at(path), nil)
		wantErr(t, err, want)
	}
	// The mount can be a root of its own.
	_, err = w.roots(guestfs.Root{Path: w.dir}, guestfs.Root{Path: w.at("mnt")}).List(patience(t), w.at("mnt"), nil)
	check(t, err)
}

// walked walks and returns the paths.
func (w *workplace) walked(path string, options *guestfs.WalkOptions) ([]string, *guestfs.WalkResult) {
	w.Helper()
	var paths []string
	result, err := w.files.Walk(patience(w.T), path, options, func(e *guestfs.FileEntry) error {
		paths = append(paths, e.Path)
		return nil
	})
	check(w.T, err)
	return paths, result
}

func TestFilesWalk(t *testing.T) {
	w := newWorkplace(t, "mkdir $ROOT/mnt; mount -t tmpfs tmpfs $ROOT/mnt; touch $ROOT/mnt/hidden")
	for _, name := range []string{"b/two", "b/one", "a.txt", "b/deep/er/x", "node_modules/m/index.js", "c"} {
		w.put(name, "x")
	}
	got, result := w.walked(w.dir, nil)
	want := []string{"a.txt", "b", "b/deep", "b/deep/er", "b/deep/er/x", "b/one", "b/two", "c", "mnt", "node_modules", "node_modules/m", "node_modules/m/index.js"}
	if !cmp.Equal(got, want) || result.Cut != nil || result.Totals.Files != 6 || result.Totals.Dirs != 6 {
		t.Errorf("%s\n%+v", cmp.Diff(want, got), result)
	}
	got, _ = w.walked(w.dir, &guestfs.WalkOptions{Exclude: []string{"node_modules", "b/deep/**", "*.txt"}})
	want = []string{"b", "b/one", "b/two", "c", "mnt"}
	if got = slices.DeleteFunc(got, func(s string) bool { return s == "b/deep" }); !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	for name, options := range map[string]*guestfs.WalkOptions{
		"entries": {Max: 3},
		"depth":   {Limits: guestfs.ScanLimits{Depth: 1}},
	} {
		if _, result := w.walked(w.dir, options); !errors.Is(result.Cut, machine.ErrTooLarge) {
			t.Errorf("%s: %+v", name, result)
		}
	}
	count := 0
	_, err := w.files.Walk(patience(t), w.dir, nil, func(*guestfs.FileEntry) error { count++; return fs.SkipAll })
	if err != nil || count != 1 {
		t.Errorf("%d %v", count, err)
	}
	mine := errors.New("mine")
	_, err = w.files.Walk(patience(t), w.dir, nil, func(*guestfs.FileEntry) error { return mine })
	wantErr(t, err, mine)
	check(t, w.machine.Ping(patience(t)))
}

// TestFilesDeepTree has directories below each other, deeper than any path.
func TestFilesDeepTree(t *testing.T) {
	w := newWorkplace(t, "")
	deep := func(n int) string {
		return fmt.Sprintf(`python3 -c '
import os
os.chdir("%s")
for i in range(%d):
    os.mkdir("d" * 100); os.chdir("d" * 100)
open("bottom", "w").write("needle")'`, w.dir, n)
	}
	if got := sh(t, w.machine, deep(1000)); got.ExitCode != 0 {
		t.Fatal(got.err)
	}
	got, result := w.walked(w.dir, nil)
	if !errors.Is(result.Cut, machine.ErrTooLarge) && result.Totals.Refused == 0 {
		t.Errorf("%d paths, %+v", len(got), result)
	}
	found, err := w.files.Search(patience(t), w.dir, &guestfs.SearchOptions{Pattern: "needle"})
	check(t, err)
	if found.Cut == nil && found.Totals.Refused == 0 {
		t.Errorf("%+v", found)
	}
	_, err = w.files.Remove(patience(t), w.dir+"/"+strings.Repeat("d", 100), &guestfs.RemoveOptions{Recursive: true})
	wantErr(t, err, machine.ErrTooLarge)
	check(t, os.RemoveAll(w.dir+"/"+strings.Repeat("d", 100)))
	if got := sh(t, w.machine, deep(30)); got.ExitCode != 0 {
		t.Fatal(got.err)
	}
	_, err = w.files.Remove(patience(t), w.dir+"/"+strings.Repeat("d", 100), &guestfs.RemoveOptions{Recursive: true})
	check(t, err)
}

func TestFilesScanTime(t *testing.T) {
	w := newWorkplace(t, "")
	for i := range 200 {
		w.put(fmt.Sprintf("d%d/f", i), strings.Repeat("some text that does not match\n", 10_000))
	}
	begin := time.Now()
	result, err := w.files.Search(patience(t), w.dir, &guestfs.SearchOptions{
		Pattern: `(a|b|c|d|e)*x(y|z)*[0-9]+$`, Limits: guestfs.ScanLimits{Time: 50 * time.Millisecond},
	})
	check(t, err)
	if !errors.Is(result.Cut, machine.ErrTimeout) || time.Since(begin) > 5*time.Second {
		t.Errorf("%v after %v", result.Cut, time.Since(begin))
	}
}

// directPool shows matches as grep does.
func directPool(result *guestfs.SearchResult) []string {
	var all []string
	for _, m := range result.Matches {
		for i, text := range m.Before {
			all = append(all, fmt.Sprintf("%s-%d-%s", m.Path, m.Line-len(m.Before)+i, text))
		}
		all = append(all, fmt.Sprintf("%s:%d:%d:%s", m.Path, m.Line, m.Column, m.Text))
		for i, text := range m.After {
			all = append(all, fmt.Sprintf("%s-%d-%s", m.Path, m.Line+1+i, text))
		}
	}
	return all
}

func TestFilesSearch(t *testing.T) {
	w := newWorkplace(t, "")
	w.put("a.go", "package a\n\nfunc Alpha() {}\nfunc beta() {}\n")
	w.put("b.txt", "one\r\ntwo Alpha\r\nthree")
	w.put("sub/c.go", "// alpha\nfunc Gamma() { Alpha() }\n")
	w.put("sub/deep/d.go", "nothing\n")
	w.put("bin", "Alpha\x00Alpha\n")
	w.put("empty", "")
	w.put("latin1", "caf\xe9 Alpha\n")
	check(t, os.Symlink("a.go", w.at("link.go")))
	tests := []struct {
		name    string
		options guestfs.SearchOptions
		want    []string
	}{
		{"plain", guestfs.SearchOptions{Pattern: "Alpha"}, []string{"a.go:3:6:func Alpha() {}", "b.txt:2:5:two Alpha", "latin1:1:6:caf\xe9 Alpha", "sub/c.go:2:16:func Gamma() { Alpha() }"}},
		{"ignoring case", guestfs.SearchOptions{Pattern: "ALPHA", IgnoreCase: true, Include: []string{"*.go"}}, []string{"a.go:3:6:func Alpha() {}", "sub/c.go:1:4:// alpha", "sub/c.go:2:16:func Gamma() { Alpha() }"}},
		{"expression", guestfs.SearchOptions{Pattern: `^func \w+\(`}, []string{"a.go:3:1:func Alpha() {}", "a.go:4:1:func beta() {}", "sub/c.go:2:1:func Gamma() { Alpha() }"}},
		{"literal", guestfs.SearchOptions{Pattern: "Alpha()", Literal: true}, []string{"a.go:3:6:func Alpha() {}", "sub/c.go:2:16:func Gamma() { Alpha() }"}},
		{"end of line", guestfs.SearchOptions{Pattern: `\{\}$`}, []string{"a.go:3:14:func Alpha() {}", "a.go:4:13:func beta() {}"}},
		{"not across lines", guestfs.SearchOptions{Pattern: `a\s+func`}, nil},
		{"text anchors are line anchors", guestfs.SearchOptions{Pattern: `\Afunc b`}, []string{"a.go:4:1:func beta() {}"}},
		{"last line without end", guestfs.SearchOptions{Pattern: "three"}, []string{"b.txt:3:1:three"}},
		{"empty lines", guestfs.SearchOptions{Pattern: "^$", Include: []string{"a.go"}}, []string{"a.go:2:1:"}},
		{"included path", guestfs.SearchOptions{Pattern: "Alpha", Include: []string{"sub/**"}}, []string{"sub/c.go:2:16:func Gamma() { Alpha() }"}},
		{"excluded", guestfs.SearchOptions{Pattern: "Alpha", Exclude: []string{"sub", "*.{txt,md}", "latin?"}}, []string{"a.go:3:6:func Alpha() {}"}},
		{"context", guestfs.SearchOptions{Pattern: "Alpha", Include: []string{"a.go", "b.txt"}, Context: 1}, []string{
			"a.go-2-", "a.go:3:6:func Alpha() {}", "a.go-4-func beta() {}", "b.txt-1-one", "b.txt:2:5:two Alpha", "b.txt-3-three"}},
		{"per file", guestfs.SearchOptions{Pattern: "func", MaxPerFile: 1}, []string{"a.go:3:1:func Alpha() {}", "sub/c.go:2:1:func Gamma() { Alpha() }"}},
		{"nothing", guestfs.SearchOptions{Pattern: "no such thing"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			result, err := w.files.Search(patience(t), w.dir, &tt.options)
			check(t, err)
			if got := directPool(result); !cmp.Equal(got, tt.want) || result.Cut != nil {
				t.Errorf("%s\ncut %v", cmp.Diff(tt.want, got), result.Cut)
			}
		})
	}
	result, err := w.files.Search(patience(t), w.dir, &guestfs.SearchOptions{Pattern: "Alpha"})
	check(t, err)
	if result.Binary != 1 || result.Totals.Refused != 1 || result.Totals.Files != 6 {
		t.Errorf("%+v", result)
	}
	result, err = w.files.Search(patience(t), w.dir, &guestfs.SearchOptions{Pattern: "Alpha", MaxMatches: 2})
	check(t, err)
	if len(result.Matches) != 2 || !errors.Is(result.Cut, machine.ErrTooLarge) {
		t.Errorf("%+v", result)
	}
	result, err = w.files.Search(patience(t), w.at("a.go"), &guestfs.SearchOptions{Pattern: "beta"})
	check(t, err)
	if got := directPool(result); !cmp.Equal(got, []string{".:4:6:func beta() {}"}) {
		t.Errorf("%q", got)
	}
	_, err = w.files.Search(patience(t), w.at("link.go"), &guestfs.SearchOptions{Pattern: "beta"})
	wantErr(t, err, machine.ErrSymlink)
	for _, options := range []*guestfs.SearchOptions{nil, {}, {Pattern: "("}, {Pattern: "x", Context: -1}, {Pattern: "x", Context: 21}, {Pattern: "x", Include: []string{"[x"}}, {Pattern: strings.Repeat("x", 5000)}} {
		_, err = w.files.Search(patience(t), w.dir, options)
		wantErr(t, err, machine.ErrInvalid)
	}
}

func TestFilesSearchLongLines(t *testing.T) {
	w := newWorkplace(t, "")
	long := strings.Repeat("x", 600_000)
	w.put("long", "before\n"+long+"needle"+long+"\nafter\n")
	result, err := w.files.Search(patience(t), w.dir, &guestfs.SearchOptions{Pattern: "needle", Context: 2, MaxLine: 100})
	check(t, err)
	if len(result.Matches) != 1 || len(result.Matches[0].Text) != 100 || !result.Matches[0].Cut {
		t.Errorf("%+v", result)
	}
	w.put("controls", strings.Repeat("\x01", 4000)+"needle\n"+strings.Repeat(strings.Repeat("\x02", 4000)+"\n", 40))
	result, err = w.files.Search(patience(t), w.at("controls"), &guestfs.SearchOptions{Pattern: "needle", Context: 20, MaxLine: 4096})
	check(t, err)
	if len(result.Matches) != 1 || !result.Matches[0].Cut {
		t.Errorf("%d matches", len(result.Matches))
	}
	w.put("big", strings.Repeat("line\n", 2_000_000))
	result, err = w.files.Search(patience(t), w.at("big"), &guestfs.SearchOptions{Pattern: "line"})
	check(t, err)
	if result.Large != 1 || len(result.Matches) != 0 {
		t.Errorf("%+v", result)
	}
	w.put("numbers", numbers(200_000))
	result, err = w.files.Search(patience(t), w.at("numbers"), &guestfs.SearchOptions{Pattern: "^1[0-9]{4}7$", MaxMatches: 10_000, Context: 1})
	check(t, err)
	for i, m := range result.Matches {
		want := fmt.Sprint(100_007 + 10*i)
		if m.Text != want || m.Line != 100_008+10*i || m.Before[0] != fmt.Sprint(100_006+10*i) || m.After[0] != fmt.Sprint(100_008+10*i) {
			t.Fatalf("match %d: %+v, want %s", i, m, want)
		}
	}
	if len(result.Matches) != 10_000 {
		t.Errorf("%d matches", len(result.Matches))
	}
}

func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

func TestFilesWatch(t *testing.T) {
	w := newWorkplace(t, "")
	w.put("sub/old", "x")
	watcher, err := w.files.Watch(patience(t), w.dir, &guestfs.WatchOptions{Recursive: true})
	check(t, err)
	defer watcher.Close()
	seen := map[string]bool{}
	await := func(wants ...string) {
		t.Helper()
		for _, want := range wants {
			for !seen[want] {
				events, err := watcher.Next()
				check(t, err)
				for _, e := range events {
					seen[string(e.What)+" "+e.Path] = true
				}
			}
		}
		clear(seen)
	}
	w.put("new", "x")
	await("created new", "written new", "attributes new")
	check(t, os.WriteFile(w.at("sub/old"), []byte("y"), 0o644))
	await("written sub/old")
	w.put("made/deep/f", "x")
	await("created made", "created made/deep", "created made/deep/f")
	check(t, os.WriteFile(w.at("made/deep/f"), []byte("more"), 0o644))
	await("written made/deep/f")
	check(t, os.Rename(w.at("made"), w.at("moved")))
	await("removed made", "created moved", "created moved/deep/f")
	check(t, os.Remove(w.at("moved/deep/f")))
	await("removed moved/deep/f")
	check(t, os.RemoveAll(w.at("sub")))
	await("removed sub/old", "removed sub")
	check(t, watcher.Close())
	_, err = watcher.Next()
	if err == nil {
		t.Error("a closed watch goes on")
	}
	_, err = w.files.Watch(patience(t), w.at("new"), nil)
	wantErr(t, err, machine.ErrNotDir)
}

func TestFilesWatchFlood(t *testing.T) {
	w := newWorkplace(t, "")
	watcher, err := w.files.Watch(patience(t), w.dir, nil)
	check(t, err)
	defer watcher.Close()
	if got := sh(t, w.machine, "cd "+w.dir+"; for i in $(seq 30000); do : > f$i; done; : > last"); got.ExitCode != 0 {
		t.Fatal(got.err)
	}
	for lost, last := false, false; !lost && !last; {
		events, err := watcher.Next()
		check(t, err)
		for _, e := range events {
			lost = lost || e.What == guestfs.FileLost
			last = last || e.Path == "last"
		}
	}
	check(t, watcher.Close())
	check(t, w.machine.Ping(patience(t)))
	for range 40 {
		watcher, err := w.files.Watch(patience(t), w.dir, nil)
		if errors.Is(err, machine.ErrBusy) {
			return
		}
		check(t, err)
		t.Cleanup(func() { _ = watcher.Close() })
	}
	t.Error("no end of watches")
}

func TestFilesRootsAreSeenWhole(t *testing.T) {
	w := newWorkplace(t, "")
	if got := w.files.Roots(); len(got) != 1 || got[0].Path != filepath.Clean(w.dir) {
		t.Errorf("%+v", got)
	}
}

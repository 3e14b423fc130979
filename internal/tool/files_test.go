package tool_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/testkit/machinetest"
	"github.com/atoll-run/atoll/internal/tool"
)

func TestRead(t *testing.T) {
	k := newKit(t)
	k.put("a.txt", "one\ntwo\r\nthree")
	k.put("empty", "")
	result := k.ok("read", args{"path": "a.txt"})
	if want := "     1\tone\n     2\ttwo\n     3\tthree\n"; result.Text != want {
		t.Errorf("got %q", result.Text)
	}
	k.ok("read", args{"path": k.dir + "/./a.txt"}, "     1\tone\n")
	k.ok("read", args{"path": "a.txt", "offset": 2, "limit": 1}, "     2\ttwo\n[lines 2 to 2 of 3; go on with offset 3]")
	k.ok("read", args{"path": "a.txt", "offset": 3}, "     3\tthree\n[lines 3 to 3, the last of the file]")
	k.fails("read", args{"path": "a.txt", "offset": 4}, "a.txt: line 4 was asked for, but there are only 3")
	k.ok("read", args{"path": "empty"}, "[the file is empty]")
	k.fails("read", args{"path": "missing/a"}, "missing/a: no such file or directory\nhint: look with ls")
	k.fails("read", args{"path": "."}, ".: is a directory\nhint: list it with ls")
	k.fails("read", args{"path": ""}, "the path is empty")
}

func TestReadLarge(t *testing.T) {
	k := newKit(t)
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, "line %d of a long file, padded so that it takes some room\n", i+1)
	}
	k.put("long", b.String())
	result := k.ok("read", args{"path": "long"}, "     1\tline 1 of", "of 20000; go on with offset ")
	if len(result.Text) > 80<<10 {
		t.Errorf("%d bytes", len(result.Text))
	}
	k.ok("read", args{"path": "long", "offset": 19_999}, " 19999\tline 19999 of", " 20000\tline 20000 of")
	k.put("wide", strings.Repeat("ä", 5000)+"\nshort\n")
	wide := k.ok("read", args{"path": "wide"}, "… [line of 9.8 KiB]\n     2\tshort\n[1 long lines cut after 2000 bytes")
	if !utf8.ValidString(wide.Text) || strings.Contains(wide.Text, "\uFFFD") {
		t.Errorf("cut in the middle of a letter: %q", wide.Text)
	}
	k.put("one-line", strings.Repeat("x", 8<<20))
	k.ok("read", args{"path": "one-line"}, "… [line of 8.0 MiB]")
	k.put("latin", "caf\xe9\x07\n")
	k.ok("read", args{"path": "latin"}, "caf\uFFFD␇\n[bytes that are not UTF-8 are shown as \uFFFD]")
}

// TestReadBeyond is a file in which the wanted line is too far away.
func TestReadBeyond(t *testing.T) {
	k := newKit(t)
	path := k.put("huge", "first\n")
	if err := os.Truncate(path, 6); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := []byte(strings.Repeat(strings.Repeat("y", 1023)+"\n", 1024))
	for range 66 {
		if _, err := f.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	k.ok("read", args{"path": "huge", "limit": 1}, "     1\tfirst\n[lines 1 to 1 of more than 65", "go on with offset 2]")
	k.fails("read", args{"path": "huge", "offset": 67_000}, "further than the first 64.0 MiB", "sed -n '67000,")
}

func TestReadBinary(t *testing.T) {
	k := newKit(t)
	k.put("data", "\x7fELF\x00\x01\x02")
	k.ok("read", args{"path": "data"}, "data is not text: application/octet-stream, 7 bytes, SHA-256 ", "hint: use exec")
	k.put("p.png", onePixel())
	k.ok("read", args{"path": "p.png"}, "p.png is not text: image/png", "hint: use view_image")
}

// onePixel is a whole PNG file.
func onePixel() string {
	return "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89" +
		"\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"
}

// TestRefusedPaths are ways out of the workspace. Each is refused by the name
// of the reason, and nothing is read or written.
func TestRefusedPaths(t *testing.T) {
	k := newKit(t)
	secret := filepath.Join(filepath.Dir(k.dir), "secret")
	if err := os.WriteFile(secret, []byte("sesame"), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"link": secret, "up": "..", "abs": "/etc"} {
		if err := os.Symlink(target, filepath.Join(k.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(secret, filepath.Join(k.dir, "hard")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(k.dir, "fifo"), 0o666); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{
		"../secret":                "Path escapes sandbox root",
		"/etc/passwd":              "Path escapes sandbox root",
		k.dir + "/../secret":       "Path escapes sandbox root",
		"/proc/self/root/etc":      "Path escapes sandbox root",
		"/tmp/masked/x":            "Sandbox path is container-only",
		"x\x00y":                   "NUL byte",
		"link":                     "symbolic link",
		"up/secret":                "symbolic link",
		"abs/passwd":               "symbolic link",
		"hard":                     "several names",
		"fifo":                     "named pipe",
		strings.Repeat("a/", 9000): "",
	}
	for path, want := range cases {
		for name, more := range map[string]args{"read": {}, "write": {"content": "x"}, "edit": {"oldText": "sesame", "newText": "x"}, "view_image": {}} {
			more["path"] = path
			result := k.fails(name, more)
			if name == "write" && (path == "hard" || path == "fifo" || path == "link") {
				continue // what is replaced need not be opened; the reason may be another
			}
			if !strings.Contains(result.Text, want) || strings.Contains(result.Text, "sesame") {
				t.Errorf("%s %.40q: %.200s", name, path, result.Text)
			}
		}
	}
	if content, _ := os.ReadFile(secret); string(content) != "sesame" {
		t.Errorf("the secret is now %q", content)
	}
	k.fails("ls", args{"path": "abs"}, "symbolic link")
	k.fails("grep", args{"pattern": "root", "path": "abs"}, "symbolic link")
	k.fails("apply_patch", args{"patch": "*** Begin Patch\n*** Add File: /etc/x\n+x\n*** End Patch"}, "Path escapes sandbox root")
	k.fails("apply_patch", args{"patch": "*** Begin Patch\n*** Add File: up/new\n+x\n*** End Patch"}, "symbolic link")
}

func TestWrite(t *testing.T) {
	k := newKit(t)
	k.ok("write", args{"path": "new/deep/a.txt", "content": "one\ntwo"}, "created new/deep/a.txt (7 bytes, 2 lines)")
	k.ok("write", args{"path": "new/deep/a.txt", "content": "three\n"}, "replaced new/deep/a.txt (6 bytes, 1 lines)")
	if got := k.get("new/deep/a.txt"); got != "three\n" {
		t.Errorf("got %q", got)
	}
	k.ok("write", args{"path": "empty", "content": ""}, "created empty (0 bytes, 0 lines)")
	k.fails("write", args{"path": "new", "content": "x"}, "new: is a directory")
	big := strings.Repeat("0123456789", 500_000)
	k.ok("write", args{"path": "big", "content": big}, "4.8 MiB")
	if k.get("big") != big {
		t.Error("a large file is not what was written")
	}
}

func TestReadOnly(t *testing.T) {
	var dir string
	k := newKit(t, func(o *tool.Options) {
		dir = o.Workdir
		o.Paths = policy.NewPathMap([]policy.Mount{{Source: dir, Target: dir, ReadOnly: true}}, policy.PathOptions{Workdir: dir})
	})
	k.put("a", "x")
	k.ok("read", args{"path": "a"}, "x")
	k.fails("write", args{"path": "b", "content": "x"}, "b: is read-only in this session")
	k.fails("edit", args{"path": "a", "oldText": "x", "newText": "y"}, "a: is read-only")
	k.fails("apply_patch", args{"patch": "*** Begin Patch\n*** Delete File: a\n*** End Patch"}, "is read-only")
	if k.get("a") != "x" {
		t.Error("a has changed")
	}
}

func TestEdit(t *testing.T) {
	k := newKit(t)
	k.put("f.go", "package a\n\nfunc A() {}\nfunc B() {}\n")
	result := k.ok("edit", args{"path": "f.go", "oldText": "func A() {}", "newText": "func A() { B() }"},
		"edited f.go: 1 replaced, first at line 3\n--- f.go\n+++ f.go\n", "-func A() {}\n+func A() { B() }\n")
	if got := k.get("f.go"); got != "package a\n\nfunc A() { B() }\nfunc B() {}\n" {
		t.Errorf("got %q, %s", got, result.Text)
	}
	k.fails("edit", args{"path": "f.go", "oldText": "func C() {}", "newText": ""}, "text to replace not found", "func B() {}", "hint: read the file again")
	k.fails("edit", args{"path": "f.go", "oldText": "func", "newText": ""}, "found 2 times (lines 3, 4)", "hint: give more of the lines")
	k.ok("edit", args{"path": "f.go", "oldText": "func", "newText": "FUNC", "replaceAll": true}, "2 replaced")
	k.ok("edit", args{"path": "f.go", "edits": []args{{"oldText": "FUNC A", "newText": "func A"}, {"oldText": "FUNC B", "newText": "func B"}}}, "2 replaced")
	k.fails("edit", args{"path": "f.go", "edits": []args{{"oldText": "func A", "newText": "X"}, {"oldText": "nothing", "newText": ""}}}, "edit 2 of 2")
	if got := k.get("f.go"); !strings.Contains(got, "func A() { B() }\nfunc B() {}\n") {
		t.Errorf("half an edit was made: %q", got)
	}
	k.fails("edit", args{"path": "missing", "oldText": "a", "newText": "b"}, "missing: no such file")
	k.put("bin", "a\x00b")
	k.fails("edit", args{"path": "bin", "oldText": "a", "newText": "b"}, "bin: is not a text file")
	k.put("huge", strings.Repeat("x", 9<<20))
	k.fails("edit", args{"path": "huge", "oldText": "x", "newText": "y"}, "huge: is too large")
}

func TestEditKeepsTheMode(t *testing.T) {
	k := newKit(t)
	path := k.put("run.sh", "#!/bin/sh\necho a\n")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	k.ok("edit", args{"path": "run.sh", "oldText": "echo a", "newText": "echo b"})
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// TestChangedSinceRead is a file that somebody else writes between two calls.
func TestChangedSinceRead(t *testing.T) {
	k := newKit(t)
	patchOf := func(name string) string {
		return "*** Begin Patch\n*** Update File: " + name + "\n@@\n-mine\n+ours\n*** End Patch"
	}
	changes := map[string]args{
		"edit":        {"path": "f", "oldText": "mine", "newText": "ours"},
		"write":       {"path": "f", "content": "ours"},
		"apply_patch": {"patch": patchOf("f")},
	}
	for name, change := range changes {
		k.put("f", "mine\n")
		k.ok("read", args{"path": "f"})
		k.ok("exec", args{"command": "printf 'mine\ntheirs\n' > f"})
		k.fails(name, change, "has changed since this session read it", " again")
		if got := k.get("f"); got != "mine\ntheirs\n" {
			t.Errorf("%s wrote %q", name, got)
		}
		k.ok("read", args{"path": "f"})
		k.ok(name, change)
		if got := k.get("f"); !strings.HasPrefix(got, "ours") {
			t.Errorf("%s wrote %q", name, got)
		}
	}
	// What the session itself wrote it knows.
	k.ok("write", args{"path": "f", "content": "mine\n"})
	k.ok("edit", args{"path": "f", "oldText": "mine", "newText": "mine "})
	k.ok("write", args{"path": "f", "content": "mine\n"})
	k.ok("apply_patch", args{"patch": patchOf("f")})
	// Time alone changes nothing, though versions of young files say more.
	k.ok("write", args{"path": "f", "content": "mine\n"})
	time.Sleep(150 * time.Millisecond)
	k.ok("edit", args{"path": "f", "oldText": "mine", "newText": "ours"})
	time.Sleep(150 * time.Millisecond)
	k.ok("apply_patch", args{"patch": "*** Begin Patch\n*** Update File: f\n@@\n-ours\n+mine\n*** End Patch"})
	// What it never read it may change, and what is gone it may make again.
	k.put("g", "mine\n")
	k.ok("edit", args{"path": "g", "oldText": "mine", "newText": "ours"})
	k.ok("exec", args{"command": "rm g"})
	k.fails("write", args{"path": "g", "content": "again"}, "has changed since")
	k.fails("read", args{"path": "g"}, "no such file")
	k.ok("write", args{"path": "g", "content": "again"}, "created g")
}

func TestMemoryIsBounded(t *testing.T) {
	m := tool.NewMemory()
	for i := range tool.MaxSeen + 10 {
		if err := m.Remember(t.Context(), fmt.Sprint(i), guestfs.Version(fmt.Sprint("v", i))); err != nil {
			t.Fatal(err)
		}
	}
	for key, want := range map[string]guestfs.Version{"0": "", "9": "", "10": "v10", fmt.Sprint(tool.MaxSeen + 9): guestfs.Version(fmt.Sprint("v", tool.MaxSeen+9))} {
		if got, _ := m.Recall(t.Context(), key); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}

func TestApplyPatch(t *testing.T) {
	k := newKit(t)
	k.put("a.txt", "one\ntwo\nthree\n")
	k.put("old.txt", "x\n")
	k.put("bin", "\x00\x01")
	k.ok("apply_patch", args{"patch": `*** Begin Patch
*** Update File: a.txt
@@
 one
-two
+2
*** Add File: new/b.txt
+hello
*** Update File: old.txt
*** Move to: moved/c.txt
@@
-x
+y
*** Delete File: bin
*** End Patch`}, "updated a.txt\nadded new/b.txt\nupdated old.txt, now moved/c.txt\ndeleted bin\n")
	got := map[string]string{"a.txt": k.get("a.txt"), "new/b.txt": k.get("new/b.txt"), "moved/c.txt": k.get("moved/c.txt")}
	if diff := cmp.Diff(map[string]string{"a.txt": "one\n2\nthree\n", "new/b.txt": "hello\n", "moved/c.txt": "y\n"}, got); diff != "" {
		t.Error(diff)
	}
	for _, gone := range []string{"old.txt", "bin"} {
		if _, err := os.Stat(filepath.Join(k.dir, gone)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", gone, err)
		}
	}
	k.fails("apply_patch", args{"patch": "*** Begin Patch\n*** Update File: a.txt\n@@\n-nine\n+9\n*** Add File: never\n+x\n*** End Patch"},
		`"a.txt", patch line 3: lines are not in the file`, "hint: nothing was changed")
	if _, err := os.Stat(filepath.Join(k.dir, "never")); !errors.Is(err, os.ErrNotExist) {
		t.Error("half a patch was applied")
	}
	k.fails("apply_patch", args{"patch": "*** Begin Patch\n*** Add File: a.txt\n+x\n*** End Patch"}, "file already exists")
	k.fails("apply_patch", args{"patch": "nonsense"}, "patch line 1")
}

func TestLs(t *testing.T) {
	k := newKit(t)
	k.ok("ls", args{}, "[. is empty]")
	k.put("b/inner", "x")
	k.put("a.txt", strings.Repeat("x", 20_000))
	if err := os.Symlink("/etc", filepath.Join(k.dir, "c")); err != nil {
		t.Fatal(err)
	}
	k.put("odd\nname\x1b", "x")
	result := k.ok("ls", args{})
	if want := "a.txt  19.5 KiB\nb/\nc  (symlink)\nodd␊name␛  1 byte\n"; result.Text != want {
		t.Errorf("got %q", result.Text)
	}
	k.ok("ls", args{"path": "b"}, "inner  1 byte\n")
	k.ok("ls", args{"limit": 2}, "a.txt  19.5 KiB\nb/\n[there is more: go on with after \"b\"]")
	k.ok("ls", args{"after": "b", "limit": 1}, "c  (symlink)\n")
	k.fails("ls", args{"path": "a.txt"}, "a.txt: is not a directory")
	k.fails("ls", args{"path": "nowhere"}, "nowhere: no such file or directory")
}

func TestGrep(t *testing.T) {
	k := newKit(t)
	k.put("src/a.go", "package a\n\nfunc Hello() {}\n// hello\n")
	k.put("src/b.txt", "hello\n")
	k.put(".git/config", "hello\n")
	k.put("bin", "hello\x00")
	result := k.ok("grep", args{"pattern": "hello"}, "src/a.go:4:// hello\nsrc/b.txt:1:hello\n[2 matches in ", "1 binary or very large files skipped")
	if strings.Contains(result.Text, ".git") {
		t.Errorf("got %s", result.Text)
	}
	k.ok("grep", args{"pattern": "HELLO", "ignoreCase": true, "include": []string{"*.go"}}, "src/a.go:3:func Hello() {}\nsrc/a.go:4:// hello\n[2 matches")
	k.ok("grep", args{"pattern": "Hello()", "literal": true, "path": "src/a.go", "context": 1}, "src/a.go-2-\nsrc/a.go:3:func Hello() {}\nsrc/a.go-4-// hello\n--\n")
	k.ok("grep", args{"pattern": "nowhere to be found"}, "[0 matches in ")
	k.ok("grep", args{"pattern": "hello", "limit": 1}, "[1 matches in ", "there may be more")
	k.fails("grep", args{"pattern": "("}, "hint: the pattern is a regular expression")
	k.put("many", strings.Repeat(strings.Repeat("match ", 100)+"\n", 5000))
	if many := k.ok("grep", args{"pattern": "match", "limit": 1000}, "there may be more"); len(many.Text) > 64<<10 {
		t.Errorf("%d bytes", len(many.Text))
	}
}

func TestViewImage(t *testing.T) {
	k := newKit(t)
	k.put("p.png", onePixel())
	for _, name := range []string{"view_image", "image"} {
		result := k.ok(name, args{"path": "p.png"}, "p.png: image/png, 1×1, ")
		if len(result.Images) != 1 || string(result.Images[0].Data) != onePixel() || result.Images[0].MediaType != "image/png" {
			t.Errorf("got %+v", result.Images)
		}
	}
	text, err := json.Marshal(k.ok("image", args{"path": "p.png"}))
	if want := base64.StdEncoding.EncodeToString([]byte(onePixel())); err != nil || !strings.Contains(string(text), `"data":"`+want+`"`) {
		t.Errorf("got %s, %v", text, err)
	}
	k.put("w.webp", "RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	k.ok("view_image", args{"path": "w.webp"}, "image/webp, 3×1")
	k.put("fake.png", "#!/bin/sh\n")
	k.fails("view_image", args{"path": "fake.png"}, "fake.png: is not a picture", "hint: ")
	k.put("wide.png", strings.Replace(onePixel(), "IHDR\x00\x00\x00\x01", "IHDR\x00\x00\xff\x01", 1))
	k.fails("view_image", args{"path": "wide.png"}, "is not a picture")
	k.put("wide.gif", "GIF89a\xff\xff\x01\x00\x00\x00\x00\x3b")
	k.fails("view_image", args{"path": "wide.gif"}, "65535×1, and neither side may be over 8000")
	k.put("large.png", onePixel()+strings.Repeat("\x00", 11<<20))
	k.fails("view_image", args{"path": "large.png"}, "over the limit of 10.0 MiB")
}

// TestFileNamesFromInside are names that an agent chose to confuse whoever
// prints them.
func TestFileNamesFromInside(t *testing.T) {
	k := newKit(t)
	k.put("bad\xffname", "needle\n")
	for name, a := range map[string]args{"ls": {}, "grep": {"pattern": "needle"}} {
		if result := k.ok(name, a, "bad\uFFFDname"); !utf8.ValidString(result.Text) {
			t.Errorf("%s: not UTF-8: %q", name, result.Text)
		}
	}
}

// TestLostSandbox tells the caller, not the model.
func TestLostSandbox(t *testing.T) {
	g := machinetest.Start(t, nil)
	if err := g.Machine(t, nil).Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := g.Machine(t, &machine.Options{DialTimeout: 100 * time.Millisecond})
	k := newKit(t, func(o *tool.Options) {
		files, err := guestfs.New(m, []guestfs.Root{{Path: o.Workdir}})
		if err != nil {
			t.Fatal(err)
		}
		o.Isolated = &tool.Location{Name: "gone", Machine: m, Files: files}
	})
	k.ok("exec", args{"command": "true"})
	_ = g.Process.Kill()
	_, _ = g.Process.Wait()
	for name, a := range map[string]args{"exec": {"command": "true"}, "ls": {}, "process": {"action": "list"}} {
		if result, err := k.try(name, a); err == nil {
			t.Errorf("%s: %+v", name, result)
		}
	}
}

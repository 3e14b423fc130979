package quarantine_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/confined"
	"github.com/atoll-run/atoll/internal/relay/git"
	"github.com/atoll-run/atoll/internal/relay/quarantine"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// stage is a host with a mirror, and an agent with a repository of its own in
// which it does what it likes.
type stage struct {
	t      *testing.T
	mirror *git.Repo
	agent  string
	base   string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	mirror, err := git.Init(t.Context(), filepath.Join(t.TempDir(), "mirror.git"), confined.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, mirror: mirror, agent: t.TempDir()}
	s.run("", "init", "-q", "-b", "main")
	s.write("README.md", "hello\n")
	s.run("", "add", ".")
	s.run("", "commit", "-qm", "first")
	s.base = s.run("", "rev-parse", "HEAD")
	whole := s.bundle("HEAD")
	if _, err := s.mirror.Output(t.Context(), bytes.NewReader(pack(whole)), "index-pack", "--stdin"); err != nil {
		t.Fatal(err)
	}
	return s
}

// run is the agent's git.
func (s *stage) run(stdin string, args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "git", args...)
	cmd.Dir, cmd.Stdin = s.agent, strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_CONFIG_GLOBAL=/dev/null")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("git %v: %v %s", args, err, &complaint)
	}
	return strings.TrimSpace(string(out))
}

func (s *stage) write(path, data string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.agent, path), []byte(data), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// object stores anything, as an agent can.
func (s *stage) object(kind, data string) string {
	s.t.Helper()
	return s.run(data, "hash-object", "-t", kind, "-w", "--stdin", "--literally")
}

// tree is a tree with one entry.
func (s *stage) tree(mode, name, id string) string {
	s.t.Helper()
	raw, err := hex.DecodeString(id)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.object("tree", mode+" "+name+"\x00"+string(raw))
}

const who = "a <a@example.com> 1700000000 +0000"

// on makes main a commit with this tree, after the base.
func (s *stage) on(tree string) {
	s.t.Helper()
	s.run("", "update-ref", "refs/heads/main", s.object("commit", fmt.Sprintf("tree %s\nparent %s\nauthor %s\ncommitter %s\n\nwork\n", tree, s.base, who, who)))
}

func (s *stage) bundle(rev ...string) []byte {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "b")
	s.run("", append([]string{"bundle", "create", "--quiet", file}, rev...)...)
	data, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	return data
}

func pack(bundle []byte) []byte {
	_, rest, _ := bytes.Cut(bundle, []byte("\n\n"))
	return rest
}

func (s *stage) take(bundle []byte, limit int64) (*git.Repo, string, error) {
	s.t.Helper()
	repo, err := git.Init(s.t.Context(), filepath.Join(s.t.TempDir(), "q.git"), confined.Limits{}, s.mirror)
	if err != nil {
		s.t.Fatal(err)
	}
	head, err := quarantine.Import(s.t.Context(), repo, s.base, bytes.NewReader(bundle), limit)
	return repo, head, err
}

func TestImport(t *testing.T) {
	s := newStage(t)
	s.write("new", "x\n")
	s.run("", "add", ".")
	s.run("", "commit", "-qm", "second")
	want := s.run("", "rev-parse", "HEAD")
	repo, head, err := s.take(s.bundle(s.base+"..main"), quarantine.MaxBytes)
	if err != nil || head != want {
		t.Fatalf("%q, %v", head, err)
	}
	changes, err := repo.Changes(t.Context(), s.base, head)
	if err != nil || len(changes) != 1 || changes[0].Path != "new" {
		t.Errorf("%v, %v", changes, err)
	}
}

// Objects that a plain fetch takes and a strict server refuses.
func TestHostileObjects(t *testing.T) {
	for _, test := range []struct {
		name  string
		plant func(*stage)
		want  string
	}{
		{"tree with .git", func(s *stage) {
			s.on(s.tree("40000", ".git", s.tree("100644", "config", s.object("blob", "[core]\n"))))
		}, "hasDotgit"},
		{"tree with .GIT", func(s *stage) { s.on(s.tree("100644", ".GIT", s.object("blob", "x"))) }, "hasDotgit"},
		{"tree with git~1", func(s *stage) { s.on(s.tree("100644", "git~1", s.object("blob", "x"))) }, "hasDotgit"},
		{"tree with .git and a space", func(s *stage) { s.on(s.tree("100644", ".git ", s.object("blob", "x"))) }, "hasDotgit"},
		{"tree with .git and a dot", func(s *stage) { s.on(s.tree("100644", ".git.", s.object("blob", "x"))) }, "hasDotgit"},
		{"tree with .git as a stream", func(s *stage) {
			s.on(s.tree("40000", ".git::$INDEX_ALLOCATION", s.tree("100644", "config", s.object("blob", "x"))))
		}, "hasDotgit"},
		{"tree with .git and an ignored character", func(s *stage) { s.on(s.tree("100644", ".g\u200cit", s.object("blob", "x"))) }, "hasDotgit"},
		{"link and directory of one name", func(s *stage) {
			link, below := s.object("blob", "/etc"), s.tree("100644", "passwd", s.object("blob", "x"))
			rawLink, _ := hex.DecodeString(link)
			rawBelow, _ := hex.DecodeString(below)
			s.on(s.object("tree", "120000 d\x00"+string(rawLink)+"40000 d\x00"+string(rawBelow)))
		}, "duplicateEntries"},
		{"tree with ..", func(s *stage) { s.on(s.tree("40000", "..", s.tree("100644", "x", s.object("blob", "x")))) }, "hasDotdot"},
		{"tree with a slash", func(s *stage) { s.on(s.tree("100644", "a/../../x", s.object("blob", "x"))) }, "fullPathname"},
		{"module that runs a program", func(s *stage) {
			s.on(s.tree("100644", ".gitmodules", s.object("blob", "[submodule \"s\"]\n\tpath = s\n\turl = https://example.com/s\n\tupdate = !touch /tmp/x\n")))
		}, "gitmodulesUpdate"},
		{"module with an option as address", func(s *stage) {
			s.on(s.tree("100644", ".gitmodules", s.object("blob", "[submodule \"s\"]\n\tpath = s\n\turl = -u./payload\n")))
		}, "gitmodulesUrl"},
		{".gitmodules as a link", func(s *stage) { s.on(s.tree("120000", ".gitmodules", s.object("blob", "x"))) }, "gitmodulesSymlink"},
		{"file that its group may write", func(s *stage) { s.on(s.tree("100664", "x", s.object("blob", "x"))) }, "badFilemode"},
		{"program with another user's rights", func(s *stage) { s.on(s.tree("104755", "x", s.object("blob", "x"))) }, "badFilemode"},
		{"bad date", func(s *stage) {
			tree := s.run("", "rev-parse", "HEAD^{tree}")
			s.run("", "update-ref", "refs/heads/main", s.object("commit", fmt.Sprintf("tree %s\nparent %s\nauthor %s\ncommitter a <a@example.com> 99999999999999999999 +0000\n\nx\n", tree, s.base, who)))
		}, "badDateOverflow"},
		{"no history in common", func(s *stage) {
			tree := s.run("", "rev-parse", "HEAD^{tree}")
			s.run("", "update-ref", "refs/heads/main", s.object("commit", fmt.Sprintf("tree %s\nauthor %s\ncommitter %s\n\nx\n", tree, who, who)))
		}, "does not descend"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			test.plant(s)
			_, head, err := s.take(s.bundle(s.base+"..main"), quarantine.MaxBytes)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, %v; want an error with %q", head, err, test.want)
			}
		})
	}
}

func TestHostileBundles(t *testing.T) {
	s := newStage(t)
	s.write("new", strings.Repeat("0123456789abcdef", 4096))
	s.run("", "add", ".")
	s.run("", "commit", "-qm", "second")
	good := s.bundle(s.base + "..main")
	head := s.run("", "rev-parse", "HEAD")
	other := strings.Repeat("2", 40)
	header := "# v2 git bundle\n-" + s.base + " x\n" + head + " refs/heads/main\n\n"
	for _, test := range []struct {
		name string
		data string
		want string
	}{
		{"nothing", "", "unexpected EOF"},
		{"text", "hello\nworld\n\n", "not a bundle"},
		{"another version", "# v3 git bundle\n\n", "not a bundle"},
		{"no head", "# v2 git bundle\n\n", "no head"},
		{"header without end", "# v2 git bundle\n" + strings.Repeat("-"+s.base+" x\n", 5000), "prerequisites"},
		{"line without end", "# v2 git bundle\n" + strings.Repeat("x", 1<<20), "header larger"},
		{"odd line", "# v2 git bundle\n--upload-pack=x\n\n", "prerequisites"},
		{"odd head", "# v2 git bundle\nHEAD refs/heads/main\n\n", "bad line"},
		{"two heads", "# v2 git bundle\n" + head + " a\n" + other + " b\n\n", "more than one head"},
		{"needs what is not here", "# v2 git bundle\n-" + other + " x\n" + head + " a\n\n" + string(pack(good)), "is not here"},
		{"no pack", header, "index-pack"},
		{"half a pack", header + string(pack(good)[:len(pack(good))/2]), "index-pack"},
		{"damaged pack", header + strings.Replace(string(pack(good)), "PACK", "PACX", 1), "index-pack"},
		{"a head that the pack does not bring", "# v2 git bundle\n" + other + " a\n\n" + string(pack(good)), "is no commit"},
		{"a head that is a tree", "# v2 git bundle\n" + s.run("", "rev-parse", "HEAD^{tree}") + " a\n\n" + string(pack(good)), "is no commit"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, got, err := s.take([]byte(test.data), quarantine.MaxBytes)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, %v; want an error with %q", got, err, test.want)
			}
		})
	}
	t.Run("larger than allowed", func(t *testing.T) {
		_, _, err := s.take(good, int64(len(good)-1))
		if !errors.Is(err, quarantine.ErrTooLarge) {
			t.Errorf("got %v", err)
		}
		if _, _, err := s.take(good, int64(len(good))); err != nil {
			t.Errorf("exactly as large: %v", err)
		}
	})
	t.Run("a pack without what it needs", func(t *testing.T) {
		blob := s.run("", "rev-parse", "HEAD:new")
		lonely := s.run("", "rev-parse", "HEAD") + "\n" + s.run("", "rev-parse", "HEAD^{tree}") + "\n"
		cmd := exec.CommandContext(t.Context(), "git", "pack-objects", "--stdout", "-q")
		cmd.Dir, cmd.Stdin = s.agent, strings.NewReader(lonely)
		data, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.take(append([]byte(header), data...), quarantine.MaxBytes); err == nil {
			t.Errorf("taken without %s", blob)
		}
	})
}

// A small pack that becomes large: it is streamed, so that the memory that git
// may have is enough; what it may write is bounded too.
func TestBomb(t *testing.T) {
	need.Time(t, "it packs 300 MiB")
	s := newStage(t)
	s.write("zeros", "")
	if err := os.Truncate(filepath.Join(s.agent, "zeros"), 300<<20); err != nil {
		t.Fatal(err)
	}
	s.run("", "-c", "core.bigFileThreshold=1m", "add", ".") // as a pack, which the bundle takes as it is
	s.run("", "commit", "-qm", "bomb")
	bundle := s.bundle(s.base + "..main")
	if len(bundle) > 1<<20 {
		t.Fatalf("the bundle has %d bytes", len(bundle))
	}
	repo, err := git.Init(t.Context(), filepath.Join(t.TempDir(), "q.git"), confined.Limits{Memory: 200 << 20}, s.mirror)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := quarantine.Import(t.Context(), repo, s.base, bytes.NewReader(bundle), quarantine.MaxBytes); err != nil {
		t.Errorf("a large file needs a large memory: %v", err)
	}
}

func FuzzImportHeader(f *testing.F) {
	f.Add([]byte("# v2 git bundle\n-" + strings.Repeat("1", 40) + " x\n" + strings.Repeat("2", 40) + " refs/heads/main\n\nPACK"))
	f.Add([]byte("# v2 git bundle\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 0 && bytes.Contains(data, []byte("\n\n")) {
			data = data[:bytes.Index(data, []byte("\n\n"))+1] // the header is ours, the rest is git's
		}
		if _, err := quarantine.ReadHeader(data); err == nil {
			t.Errorf("a header without an end was taken: %q", data)
		}
	})
}

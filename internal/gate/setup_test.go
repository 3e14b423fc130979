package gate

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

// way is one way of keeping changes apart that this user has.
type way struct {
	name   string
	kernel overlay.KernelMount
	mount  string // options; "" for a copy
	enter  []string
	engine func(testing.TB) string // returns the host of the engine that mounts it; nil if none does
}

func ways() []way {
	all := []way{
		{name: "copy", enter: []string{"sh", "-c"}},
		{name: "user", kernel: overlay.KernelMount{Marks: overlay.MarksUser}, mount: "userxattr", enter: []string{"unshare", "--user", "--map-root-user", "--mount", "sh", "-c"}},
	}
	if os.Geteuid() == 0 {
		all = append(all, way{name: "root", kernel: overlay.KernelMount{Marks: overlay.MarksTrusted}, mount: "redirect_dir=on", enter: []string{"unshare", "--mount", "sh", "-c"}})
	}
	return all
}

// site is a base, the overlay above it and a gate between them.
type site struct {
	t      testing.TB
	dir    string
	way    way
	source *overlay.Tree
	opt    Options
	mu     sync.Mutex
	events []audit.FileEvent
}

// newSite makes a base with files and a copy above it, which tests change in place.
func newSite(t *testing.T, files map[string]string) *site {
	t.Helper()
	return newSiteWith(t, ways()[0], files)
}

// eachWay runs a test with every way that this user has.
func eachWay(t *testing.T, files map[string]string, test func(*testing.T, *site)) {
	t.Helper()
	for _, w := range append(ways(), engineWays(t)...) {
		t.Run(w.name, func(t *testing.T) { test(t, newSiteWith(t, w, files)) })
	}
}

// engineWays returns overlays that engines mount, for attacks and invariants: they do
// it as root.
func engineWays(t *testing.T) (all []way) {
	t.Helper()
	if os.Geteuid() != 0 || !strings.HasPrefix(t.Name(), "TestAttack") && !strings.HasPrefix(t.Name(), "TestInvariant") {
		return nil
	}
	for name, engine := range enginetest.Overlays() {
		all = append(all, way{name: name, kernel: overlay.KernelMount{Marks: overlay.MarksTrusted}, mount: "redirect_dir=on", engine: engine})
	}
	return all
}

func newSiteWith(t testing.TB, w way, files map[string]string) *site {
	t.Helper()
	s := &site{t: t, way: w, dir: t.TempDir()}
	s.must(os.Mkdir(filepath.Join(s.dir, "base"), 0o755))
	for path, text := range files {
		s.write("base", path, text)
	}
	want := overlay.Copy
	if w.mount != "" {
		want = overlay.Kernel
	}
	tree, err := overlay.Prepare(t.Context(), overlay.Request{
		State: s.path("state", ""), Dir: s.path("state", "overlay/slug/0"), Base: s.path("base", ""), Target: "/workspace", Owner: "main", Want: want, Kernel: w.kernel,
	})
	s.must(err)
	s.load(tree)
	t.Cleanup(func() { // the kernel makes it without any permission
		if dir := filepath.Join(tree.Work(), "work"); os.Chmod(dir, 0o700) != nil && w.mount != "" {
			t.Logf("%s was not mounted", dir)
		}
	})
	return s
}

// load sets the options of the gate.
func (s *site) load(tree *overlay.Tree) {
	s.source = tree
	s.opt = Options{Dir: s.path("state", "sync"), Base: tree.Base, Source: tree, Record: func(e audit.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, *e.(*audit.FileEvent))
	}}
}

// path returns a path of the base, of the copy, or beside them.
func (s *site) path(side, rel string) string {
	if side == "tree" {
		return filepath.Join(s.source.Source(), rel)
	}
	return filepath.Join(s.dir, side, rel)
}

// inside runs a script where the sandbox would.
func (s *site) inside(script string) {
	s.t.Helper()
	if s.way.engine != nil {
		mounted := enginetest.Overlay{Base: s.source.Base, Upper: s.source.Upper(), Work: s.source.Work(), Beside: s.dir}
		if out, err := mounted.Run(s.t, s.way.engine(s.t), "set -e\numask 022\n"+script); err != nil {
			s.t.Fatalf("inside: %v\n%s", err, out)
		}
		return
	}
	cmd := exec.CommandContext(s.t.Context(), s.way.enter[0], append(s.way.enter[1:], "set -e\numask 022\n"+script)...)
	cmd.Dir = s.path("tree", "")
	if s.way.mount != "" {
		merged := s.t.TempDir()
		options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,%s", s.source.Base, s.source.Upper(), s.source.Work(), s.way.mount)
		cmd.Args[len(cmd.Args)-1] = fmt.Sprintf("set -e\numask 022\nmount -t overlay -o %s overlay %s\ncd %s\n%s", options, merged, merged, script)
		cmd.Dir = "/"
	}
	cmd.Env = append(os.Environ(), "HELPER="+os.Args[0])
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("inside: %v\n%s", err, out)
	}
}

// put writes files inside; a text "-> target" is a link.
func (s *site) put(files map[string]string) {
	s.t.Helper()
	var script strings.Builder
	for path, text := range files {
		name := "./'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
		fmt.Fprintf(&script, "mkdir -p \"$(dirname %s)\"\nrm -f %s\n", name, name)
		if target, is := strings.CutPrefix(text, "-> "); is {
			fmt.Fprintf(&script, "ln -s '%s' %s\n", target, name)
		} else {
			fmt.Fprintf(&script, "echo %s | base64 -d > %s\n", base64.StdEncoding.EncodeToString([]byte(text)), name)
		}
	}
	s.inside(script.String())
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// write writes a file; "-> target" makes a link, and "+x " an executable.
func (s *site) write(side, rel, text string) {
	s.t.Helper()
	path := s.path(side, rel)
	s.must(os.MkdirAll(filepath.Dir(path), 0o755))
	if target, is := strings.CutPrefix(text, "-> "); is {
		s.must(os.Symlink(target, path))
		return
	}
	mode := fs.FileMode(0o644)
	if rest, is := strings.CutPrefix(text, "+x "); is {
		text, mode = rest, 0o755
	}
	s.must(os.WriteFile(path, []byte(text), mode))
	s.must(os.Chmod(path, mode))
}

func (s *site) remove(side, rel string) {
	s.t.Helper()
	s.must(os.RemoveAll(s.path(side, rel)))
}

// open opens the gate until the test ends.
func (s *site) open() *Gate {
	s.t.Helper()
	g, err := Open(s.t.Context(), s.opt)
	s.must(err)
	s.t.Cleanup(func() { s.must(g.Close()) })
	return g
}

func (s *site) collect(g *Gate) *Set {
	s.t.Helper()
	set, err := g.Collect(s.t.Context())
	s.must(err)
	return set
}

// passing returns choices of everything that passes.
func passing(set *Set) (choices []Choice) {
	for _, e := range set.Entries {
		if e.Verdict == Pass {
			choices = append(choices, Choice{e.Path, e.SHA256})
		}
	}
	return choices
}

// tree describes the files below a side: types, modes, contents, links.
func (s *site) tree(side string) string {
	s.t.Helper()
	var b strings.Builder
	s.must(filepath.WalkDir(s.path(side, ""), func(path string, _ fs.DirEntry, err error) error {
		info, statErr := os.Lstat(path)
		if err != nil || statErr != nil {
			return errors.Join(err, statErr)
		}
		rel, _ := filepath.Rel(s.path(side, ""), path)
		b.WriteString(rel + " " + info.Mode().String())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			b.WriteString(" " + string(data))
		} else if link, err := os.Readlink(path); err == nil {
			b.WriteString(" -> " + link)
		}
		b.WriteString("\n")
		return nil
	}))
	return b.String()
}

// verdicts returns the entries as lines.
func verdicts(set *Set) string {
	var lines []string
	for _, e := range set.Entries {
		line := string(e.Kind) + " " + e.Path + " " + string(e.Verdict)
		for _, f := range e.Reasons {
			line += " " + f.Rule
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

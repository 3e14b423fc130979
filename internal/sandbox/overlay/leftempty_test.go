package overlay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A copy begins without what is in directories of another system's programs. What is made
// in them stays inside, and what the host has in them is neither read nor listed.
func TestDirectoriesThatAreLeftEmpty(t *testing.T) {
	s := newStage(t, ways()[0], map[string]string{
		"node_modules/a/x.node": "mac\n", "web/node_modules/b": "mac\n", ".venv/bin/python": "-> /mac", "Cargo.toml": "", "target/debug/app": "mac\n",
		"src/target/source.go": "package target\n", "node_modules.txt": "text\n",
	}, nil, func(r *Request) {
		r.Empty = []string{"node_modules", ".venv", "target"}
		r.CopyLimit = Limit{Bytes: 1 << 20, Files: 3} // what is left empty does not count
	})
	s.inside(t, `
for d in node_modules web/node_modules .venv target; do test -d $d; test -z "$(ls -A $d)"; done
test "$(cat src/target/source.go node_modules.txt)" = "package target
text"
echo linux >node_modules/a; rmdir web/node_modules; mkdir -p target/debug new/node_modules; echo linux >target/debug/app; echo linux >new/node_modules/b
rm -r .venv; echo more >>src/target/source.go`)
	s.expect(t, "added new/", "modified src/target/source.go")
	fill(t, s.Base, map[string]string{"node_modules/later": "mac\n", "web/index.html": "new\n"})
	if edits, err := s.HostChanged(t.Context(), 10); err != nil || len(edits) != 1 || edits[0] != "web/index.html" {
		t.Errorf("%q %v", edits, err)
	}
	if _, err := s.Refresh(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s.inside(t, `test "$(ls node_modules)" = a; test "$(cat web/index.html)" = new`)
	again, err := Load(s.Dir)
	if err != nil || !again.LeavesEmpty(filepath.Join(s.Base, "target")) || again.LeavesEmpty(filepath.Join(s.Base, "src/target")) {
		t.Errorf("%+v %v", again, err)
	}
	if choice, err := Choose(t.Context(), s.request); err != nil || !strings.Contains(strings.Join(choice.Costs, "\n"), "node_modules, .venv, target: such directories are empty") {
		t.Errorf("%+v %v", choice, err)
	}
}

// An overlay of the kernel shows all of the base.
func TestKernelOverlayLeavesNothingEmpty(t *testing.T) {
	s := newStage(t, ways()[1], map[string]string{"node_modules/a": "mac\n"}, nil, func(r *Request) { r.Empty = []string{"node_modules"} })
	s.inside(t, `test "$(cat node_modules/a)" = mac; rm node_modules/a`)
	s.expect(t, "deleted node_modules/a")
	if s.LeavesEmpty(filepath.Join(s.Base, "node_modules")) {
		t.Error("it leaves a directory empty")
	}
	if _, err := os.Stat(filepath.Join(s.Base, "node_modules/a")); err != nil {
		t.Error(err)
	}
}

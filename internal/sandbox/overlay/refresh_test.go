package overlay

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestRefresh(t *testing.T) {
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			s := newStage(t, w, project(), hideEach(hideSecrets))
			s.inside(t, `echo agent >> README.md; rm dir/one; echo n > new; echo x > src/util.go`)
			s.apply(t, map[string]string{"new": "n\n"}, "dir/one")
			at := func(name string) string { return filepath.Join(s.Base, name) }
			fill(t, s.Base, map[string]string{"README.md": "host\n", "src/cart.go": "newer\n", "dir/one": "again\n", "new": "newer\n", "more/deep/x": "x\n", "more/.env": "KEY=1\n", "hl": "-> same"})
			if err := errors.Join(os.Remove(at("same")), os.RemoveAll(at("old")), os.Remove(at("swap")), os.Mkdir(at("swap"), 0o755), os.Chmod(at("run.sh"), 0o755)); err != nil {
				t.Fatal(err)
			}
			fill(t, s.Base, map[string]string{"swap/in": "in\n"})
			n, err := s.Refresh(t.Context(), hideEach(hideSecrets))
			if err != nil || n == 0 {
				t.Fatal(n, err)
			}
			s.expect(t, "modified README.md", "modified src/util.go")
			s.begun(t, map[string]bool{"README.md": false, "src/util.go": true, "src/cart.go": true, "dir/one": true, "new": true, "more/deep/x": true,
				"same": true, "old/legacy.go": true, "swap/in": true, "run.sh": true, "hl": true})
			s.inside(t, `
test "$(cat src/cart.go dir/one new more/deep/x swap/in)" = "newer
again
newer
x
in"
! test -e same; ! test -e old; ! test -e more/.env; test -x run.sh; test "$(readlink hl)" = same
test "$(cat README.md)" = "hello
agent"`)
			s.expect(t, "modified README.md", "modified src/util.go")
			if left, err := s.HostChanged(t.Context(), 10); err != nil || len(left) != 1 {
				t.Errorf("host changes left: %q, %v", left, err)
			}
			again, err := Load(s.Dir)
			if err != nil {
				t.Fatal(err)
			}
			(&stage{Tree: again}).expect(t, "modified README.md", "modified src/util.go")
			s.inside(t, `echo a >> src/cart.go`)
			s.expect(t, "modified README.md", "modified src/util.go", "modified src/cart.go")
		})
	}
}

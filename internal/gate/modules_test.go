package gate

import (
	"fmt"
	"testing"
)

// Commits in submodules are told: they leave by no other way.
func TestCommitsInSubmodules(t *testing.T) {
	eachWay(t, map[string]string{
		".git/modules/lib/HEAD": "ref: refs/heads/main\n", ".git/modules/lib/refs/heads/main": "1\n", ".git/modules/a/b/HEAD": "1\n", ".git/modules/staged/HEAD": "1\n", ".git/modules/moved/HEAD": "1\n",
	}, func(t *testing.T, s *site) {
		g := s.open()
		if set := s.collect(g); len(set.Modules) > 0 {
			t.Errorf("before: %q", set.Modules)
		}
		s.inside(`cd .git/modules
for m in lib a/b staged; do mkdir -p $m/objects/ab; echo x > $m/objects/ab/c; done
echo 2 > lib/refs/heads/main; echo 2 > a/b/HEAD; echo 2 > moved/HEAD`)
		if got := fmt.Sprint(s.collect(g).Modules); got != "[a/b lib]" {
			t.Errorf("submodules with commits: %s", got)
		}
	})
}

package git_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/confined"
	"github.com/atoll-run/atoll/internal/relay/git"
)

// twoCommits is a repository with a large change on main.
func twoCommits(t *testing.T) *git.Repo {
	t.Helper()
	repo, err := git.Init(t.Context(), filepath.Join(t.TempDir(), "r.git"), confined.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("a line\n", 10_000)
	stream := "commit refs/heads/main\ncommitter A <a@example.com> 1600000000 +0000\ndata 3\none\nM 644 inline a\ndata 1\n1\n\n" +
		"commit refs/heads/main\ncommitter A <a@example.com> 1600000001 +0000\ndata 3\ntwo\nM 644 inline .gitattributes\ndata 13\n* diff=python\n" +
		fmt.Sprintf("M 644 inline b\ndata %d\n%s\n\n", len(text), text)
	if _, err := repo.Output(t.Context(), strings.NewReader(stream), "fast-import", "--quiet"); err != nil {
		t.Fatal(err)
	}
	return repo
}

func TestPatch(t *testing.T) {
	repo := twoCommits(t)
	whole, cut, err := repo.Patch(t.Context(), "refs/heads/main~1", "refs/heads/main", 1<<20)
	if err != nil || cut || len(whole) < 80_000 || !strings.HasPrefix(string(whole), "From ") || !strings.Contains(string(whole), "Subject: [PATCH 1/1] two") {
		t.Errorf("%d bytes, %v, %v: %.400s", len(whole), cut, err, whole)
	}
	part, cut, err := repo.Patch(t.Context(), "refs/heads/main~1", "refs/heads/main", 20_000)
	if err != nil || !cut || len(part) > 20_000 || len(part) < 19_000 || !strings.HasPrefix(string(whole), string(part)) || !strings.HasSuffix(string(part), "\n") {
		t.Errorf("%d bytes, %v, %v", len(part), cut, err)
	}
	if _, _, err := repo.Patch(t.Context(), "refs/heads/none", "refs/heads/main", 1<<20); err == nil {
		t.Error("there is a patch from nowhere")
	}
}

func TestEnds(t *testing.T) {
	repo := twoCommits(t)
	head, err := repo.Resolve(t.Context(), "refs/heads/main")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		depth int
		want  string
	}{{0, ""}, {1, head}, {2, ""}, {3, ""}} {
		if got, err := repo.ShallowCommits(t.Context(), head, test.depth); err != nil || strings.Join(got, " ") != test.want {
			t.Errorf("depth %d: %v, %v", test.depth, got, err)
		}
	}
}

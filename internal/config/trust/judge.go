package trust

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
)

// judge decides about files of projects.
type judge struct {
	env       config.Environment
	store     store
	forbidden []string // directories that belong to sandboxes
}

// verdict is what a judge says of a file.
type verdict struct {
	*file
	trusted bool
	why     string
	config  *config.Config  // nil if the file is not a good configuration
	project *config.Project // the same
	problem error           // what is wrong with it, or with what it names
	repo    repository
	named   []named
	earlier *Record // what was trusted under this path
}

// newJudge makes the judge of an installation. own is the person's
// configuration: it says where sandboxes have their directories.
func newJudge(env config.Environment, own *config.Config) (*judge, error) {
	paths, err := env.Paths()
	if err != nil {
		return nil, err
	}
	j := &judge{env: env, store: storeIn(paths.AtollState), forbidden: []string{paths.AtollState}}
	for _, id := range own.Agents() {
		agent, err := own.Resolve(id)
		if err != nil {
			return nil, err
		}
		if root := agent.Sandbox.WorkspaceRoot; !slices.Contains(j.forbidden, root) {
			j.forbidden = append(j.forbidden, root)
		}
	}
	return j, nil
}

// judge looks at the project's file in dir; nil if there is none.
func (j *judge) judge(dir string) (*verdict, error) {
	f, err := read(dir, j.forbidden)
	if err != nil || f == nil {
		return nil, err
	}
	v := &verdict{file: f, repo: repositoryOf(filepath.Dir(f.path))}
	if v.project, v.problem = config.ParseProject(f.path, f.content, j.env); v.problem != nil {
		line, _, _ := strings.Cut(v.problem.Error(), "\n")
		v.why = "it is not a good configuration: " + line
		return v, nil
	}
	if v.config, v.problem = config.Parse(f.path, f.content, j.env); v.problem != nil {
		return v, nil
	}
	records, err := j.store.all()
	if err != nil {
		return nil, err
	}
	v.compare(records)
	return v, nil
}

// compare settles whether the file is one of the trusted ones.
func (v *verdict) compare(records []Record) {
	v.why = "it was never trusted"
	for i := range records {
		r := &records[i]
		if r.Path == v.path {
			v.earlier, v.why = r, "it changed since it was trusted"
		}
	}
	same := func(r Record) bool { return r.Hash == v.hash && r.of(v) }
	if !slices.ContainsFunc(records, same) {
		return
	}
	if v.named, v.problem = namedBy(v.config, v.repo, filepath.Dir(v.path)); v.problem != nil {
		v.why = v.problem.Error()
		return
	}
	for _, r := range records {
		if same(r) && slices.Equal(r.Named, v.named) {
			v.trusted, v.why = true, "trusted on "+r.Trusted.Format("2006-01-02")
			return
		}
	}
	v.why = "a program or path that it names changed since it was trusted"
}

// of reports whether the record is of this file, in this worktree or another
// one of the same repository.
func (r *Record) of(v *verdict) bool {
	rel, _ := within(v.repo.root, v.path)
	return r.Path == v.path || r.Repository != "" && r.Repository == v.repo.common && r.Relative == rel
}

// check looks again at a file that was trusted.
func (j *judge) check(v *verdict) error {
	now, err := j.judge(filepath.Dir(v.path))
	if err == nil && now != nil && now.trusted && now.hash == v.hash {
		return nil
	}
	return errhint.With(fmt.Errorf("%s, or what it names, changed since it was trusted", v.path), "look at it with atoll config trust")
}

package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath"
)

// Review is a project's file as it is shown to a person before it is trusted.
type Review struct {
	Path     string           `json:"path"`
	Trusted  bool             `json:"trusted"`
	Why      string           `json:"why"`
	Requests []config.Request `json:"requests"` // those with the most power first
	Named    []named          `json:"named"`    // programs and paths of the host
	// Earlier is the content that was trusted before, Content what it is now.
	Earlier []byte         `json:"-"`
	Content []byte         `json:"-"`
	Config  *config.Config `json:"-"`

	store  store
	record Record
}

// Examine reads the file that a person is asked about: a directory's
// atoll.json5, or that file itself.
func Examine(env config.Environment, name string) (*Review, error) {
	dir, err := projectOf(env, name)
	if err != nil {
		return nil, err
	}
	j, err := judgeOf(env)
	if err != nil {
		return nil, err
	}
	v, err := j.judge(dir)
	switch {
	case err != nil:
		return nil, errhint.With(fmt.Errorf("%s: %w", filepath.Join(dir, FileName), err), "name a file of your own with --config instead")
	case v == nil:
		return nil, errhint.With(fmt.Errorf("%s does not exist", filepath.Join(dir, FileName)), "name a directory that has one")
	case v.config == nil:
		return nil, v.problem
	}
	return j.review(v)
}

func (j *judge) review(v *verdict) (*Review, error) {
	now, err := namedBy(v.config, v.repo, filepath.Dir(v.path))
	if err != nil {
		return nil, errhint.With(fmt.Errorf("%s cannot be trusted: %w", v.path, err), "keep what the host executes outside of the project")
	}
	rel, _ := within(v.repo.root, v.path)
	r := &Review{
		Path: v.path, Trusted: v.trusted, Why: v.why, Requests: v.project.Ignored, Named: now, Content: v.content, Config: v.config, store: j.store,
		record: Record{Path: v.path, Hash: v.hash, Content: string(v.content), Repository: v.repo.common, Relative: rel, Named: now},
	}
	if v.earlier != nil {
		r.Earlier = []byte(v.earlier.Content)
	}
	return r, nil
}

// Trust remembers the content that was reviewed, and nothing that came later.
func (r *Review) Trust() error {
	r.record.Trusted = time.Now().UTC().Truncate(time.Second)
	if err := r.store.put(&r.record); err != nil {
		return fmt.Errorf("remembering that %s is trusted: %w", r.Path, err)
	}
	return nil
}

// Forget ends the trust in a file, which need not exist any more. It reports
// whether the file was trusted.
func Forget(env config.Environment, name string) (path string, known bool, err error) {
	paths, err := env.Paths()
	if err != nil {
		return "", false, err
	}
	dir, err := projectOf(env, name)
	if err != nil {
		return "", false, err
	}
	at, err := hostpath.Identify(dir)
	if err != nil {
		return "", false, err
	}
	path = filepath.Join(at.Canonical, FileName)
	known, err = storeIn(paths.AtollState).remove(path)
	return path, known, err
}

// Listed is a file that was trusted, and whether it still is.
type Listed struct {
	Path    string    `json:"path"`
	Hash    string    `json:"sha256"`
	Since   time.Time `json:"since"`
	Trusted bool      `json:"trusted"`
	Why     string    `json:"why"`
}

// List returns every file that was trusted, by path.
func List(env config.Environment) ([]Listed, error) {
	j, err := judgeOf(env)
	if err != nil {
		return nil, err
	}
	records, err := j.store.all()
	list := []Listed{}
	for _, r := range records {
		entry := Listed{Path: r.Path, Hash: r.Hash, Since: r.Trusted, Why: "the file is gone"}
		switch v, err := j.judge(filepath.Dir(r.Path)); {
		case err != nil:
			entry.Why = err.Error()
		case v != nil:
			entry.Trusted, entry.Why = v.trusted, v.why
		}
		list = append(list, entry)
	}
	return list, err
}

// judgeOf makes the judge with the person's own configuration.
func judgeOf(env config.Environment) (*judge, error) {
	own, err := config.Find(env)
	if err != nil {
		return nil, err
	}
	cfg, err := config.Open(env, own)
	if err != nil {
		return nil, err
	}
	return newJudge(env, cfg)
}

// projectOf returns the absolute directory of the file that a person names.
func projectOf(env config.Environment, name string) (string, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(env.Cwd, name)
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir() && filepath.Base(name) != FileName:
		return name, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", err
	case filepath.Base(name) == FileName:
		return filepath.Dir(name), nil
	case err != nil:
		return "", errhint.With(err, "name a project, or its "+FileName)
	}
	return "", errhint.With(fmt.Errorf("%s: only a file that is called %s is looked for in projects", name, FileName), "name a file of another name with --config; it needs no trust")
}

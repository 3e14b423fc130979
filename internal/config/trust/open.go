package trust

import (
	"errors"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/config"
)

// Source is the source of the location of a trusted file.
const Source = "./" + FileName

// Opened is the configuration in force.
type Opened struct {
	Config   *config.Config
	Location config.Location
	Found    *Found // the project's file; nil if there is none, or none is looked for
}

// Found is a project's file, and what was decided about it.
type Found struct {
	Path    string `json:"path"`
	Trusted bool   `json:"trusted"`
	// Why is the reason for the decision, in one line.
	Why string `json:"why"`
	// Project is what an untrusted file takes away; nil if it counts for nothing.
	Project *config.Project `json:"-"`
	// Check returns an error if the file, or what it names, is no longer as it
	// was trusted. It is nil for a file that is not trusted.
	Check func() error `json:"-"`
}

// Open finds and reads the configuration: the person's own, and the project's
// file of the working directory. A trusted project's file is the configuration;
// another one narrows the person's. A file that was named on the command line
// or by $ATOLL_CONFIG stands alone.
func Open(env config.Environment) (*Opened, error) {
	own, err := config.Find(env)
	if err != nil {
		return nil, err
	}
	cfg, err := config.Open(env, own)
	if err != nil {
		return nil, err
	}
	if env.Cwd == "" || env.OwnOnly || own.Named() || own.Path == filepath.Join(env.Cwd, FileName) {
		return &Opened{Config: cfg, Location: own}, nil
	}
	return openProject(env, &Opened{Config: cfg, Location: own})
}

// openProject adds the project's file to the person's configuration.
func openProject(env config.Environment, own *Opened) (*Opened, error) {
	j, err := newJudge(env, own.Config)
	if err != nil {
		return nil, err
	}
	v, err := j.judge(env.Cwd)
	switch {
	case errors.Is(err, ErrRefused):
		own.Found = &Found{Path: filepath.Join(env.Cwd, FileName), Why: err.Error()}
		return own, nil
	case err != nil || v == nil:
		return own, err
	case v.trusted:
		found := &Found{Path: v.path, Trusted: true, Why: v.why, Check: func() error { return j.check(v) }}
		return &Opened{v.config, config.Location{Path: v.path, Source: Source}, found}, nil
	}
	own.Found = &Found{Path: v.path, Why: v.why, Project: v.project}
	if v.project != nil {
		own.Config = own.Config.Narrow(v.project)
	}
	return own, nil
}

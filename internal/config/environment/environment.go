// Package environment finds the configuration file, and the directories that
// settings refer to, from the variables and directories of the process.
package environment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/config/wording"
	"github.com/atoll-run/atoll/internal/errhint"
)

// Environment is what configuration needs to know of the process around it.
type Environment struct {
	Getenv   func(string) string // nil: no variables
	Home     string              // home directory of the user
	Cwd      string              // working directory
	Explicit string              // the file named on the command line, or ""
	// OwnOnly looks neither in the working directory, which may be an agent's,
	// nor at OpenClaw's file, whose settings are for OpenClaw.
	OwnOnly bool
}

// Names of files and variables.
const (
	fileName         = "atoll.json5"
	OpenClawFileName = "openclaw.json"

	sourceFlag = "--config"

	envConfig         = "ATOLL_CONFIG"
	envState          = "ATOLL_STATE_DIR"
	VarOpenClawConfig = "OPENCLAW_CONFIG_PATH"
	envOpenClawState  = "OPENCLAW_STATE_DIR"
)

// Get returns a variable without white space around it, "" if it is not set.
func (e Environment) Get(name string) string {
	if e.Getenv == nil {
		return ""
	}
	return strings.TrimSpace(e.Getenv(name))
}

// Paths are the directories that settings refer to.
type Paths struct {
	Home          string
	AtollState    string // $ATOLL_STATE_DIR, else ~/.atoll
	OpenClawState string // $OPENCLAW_STATE_DIR, else ~/.openclaw
}

// Paths returns the directories of this environment.
func (e Environment) Paths() (Paths, error) {
	atoll, err := e.directory(envState, "~/.atoll")
	if err != nil {
		return Paths{}, err
	}
	openClaw, err := e.directory(envOpenClawState, "~/.openclaw")
	if err != nil {
		return Paths{}, err
	}
	return Paths{Home: e.Home, AtollState: atoll, OpenClawState: openClaw}, nil
}

func (e Environment) directory(variable, fallback string) (string, error) {
	if dir := e.Get(variable); dir != "" {
		return e.Absolute(dir, e.Cwd)
	}
	return e.Absolute(fallback, e.Cwd)
}

// Absolute expands ~ and makes a relative path start at base.
func (e Environment) Absolute(name, base string) (string, error) {
	if rest, ok := strings.CutPrefix(name, "~"); ok && (rest == "" || rest[0] == '/') {
		if e.Home == "" {
			return "", errhint.With(fmt.Errorf("path %s: the home directory is not known", wording.Quote(name)), "set HOME")
		}
		name = e.Home + rest
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(base, name)
	}
	if !filepath.IsAbs(name) {
		return "", fmt.Errorf("path %s: the directory it starts at is not known", wording.Quote(name))
	}
	return filepath.Clean(name), nil
}

// Location says which file was found, and why that one.
type Location struct {
	Path   string `json:"path,omitempty"`   // "" if there is no file
	Source string `json:"source,omitempty"` // what named it: --config, $ATOLL_CONFIG, …
}

// Named reports whether a person named exactly this file, on the command line
// or in $ATOLL_CONFIG.
func (l Location) Named() bool { return l.Source == sourceFlag || l.Source == "$"+envConfig }

// candidate is one place to look at.
type candidate struct {
	name, source string
	mustExist    bool // a flag or variable named exactly this file
}

func (e Environment) candidates() []candidate {
	state := e.Get(envState)
	if state == "" {
		state = "~/.atoll"
	}
	if e.OwnOnly {
		return []candidate{
			{e.Get(envConfig), "$" + envConfig, true},
			{state + "/" + fileName, "$" + envState + "/" + fileName, false},
		}
	}
	return []candidate{
		{e.Explicit, sourceFlag, true},
		{e.Get(envConfig), "$" + envConfig, true},
		{state + "/" + fileName, "$" + envState + "/" + fileName, false},
		{e.Get(VarOpenClawConfig), "$" + VarOpenClawConfig, false},
		{"~/.openclaw/" + OpenClawFileName, "~/.openclaw/" + OpenClawFileName, false},
	}
}

// Find returns the first of a person's own files that exists: --config,
// $ATOLL_CONFIG, $ATOLL_STATE_DIR/atoll.json5, $OPENCLAW_CONFIG_PATH,
// ~/.openclaw/openclaw.json. One of the first two that does not exist is an
// error; none at all is not. Files of projects are package trust's.
func Find(env Environment) (Location, error) {
	for _, c := range env.candidates() {
		if c.name == "" {
			continue
		}
		found, err := env.lookAt(c)
		if err != nil || found.Path != "" {
			return found, err
		}
	}
	return Location{}, nil
}

// lookAt returns the candidate's location if its file exists. A file that is
// there but cannot be looked at is an error: another one must not take its place.
func (e Environment) lookAt(c candidate) (Location, error) {
	name, err := e.Absolute(c.name, e.Cwd)
	if err != nil {
		if c.mustExist {
			return Location{}, err
		}
		return Location{}, nil // without a home directory there is no file in it
	}
	_, err = os.Stat(name)
	switch {
	case err == nil:
		return Location{Path: name, Source: c.source}, nil
	case !c.mustExist && (errors.Is(err, fs.ErrNotExist)):
		return Location{}, nil
	case errors.Is(err, fs.ErrNotExist):
		return Location{}, errhint.With(fmt.Errorf("config file %s (from %s) does not exist", name, c.source),
			"create it, or remove "+c.source)
	}
	return Location{}, errhint.With(fmt.Errorf("config file (from %s): %w", c.source, err),
		"make it readable, or name another file with --config")
}

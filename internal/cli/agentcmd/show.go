package agentcmd

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
)

// maxShown bounds how many further paths a sandbox shows.
const maxShown = 100

// showPaths makes the paths of --show absolute and free of links. Those that lie in the
// directory, or around it, are refused: its own files are seen through the overlay only.
func (s *start) showPaths() error {
	if len(s.show) > maxShown {
		return console.WithCode(console.ExitUsage, fmt.Errorf("--show: %d paths are more than %d", len(s.show), maxShown))
	}
	for i, name := range s.show {
		file, err := filepath.Abs(name)
		if err == nil {
			file, err = filepath.EvalSymlinks(file)
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = errhint.With(errors.New("it does not exist"), "name a file or a directory of this machine")
		}
		if err == nil {
			err = s.checkShown(file)
		}
		if err != nil {
			return console.WithCode(console.ExitUsage, fmt.Errorf("--show %s: %w", name, err))
		}
		s.show[i] = file
	}
	return nil
}

func (s *start) checkShown(file string) error {
	switch {
	case within(s.dir.Path, file):
		return errhint.With(errors.New("it is in the directory already"), "what a sandbox does not show of its directory holds credentials: put what is needed elsewhere")
	case within(file, s.dir.Path):
		return errhint.With(errors.New("the directory lies in it, whose credentials it would show"), "name what is needed of it")
	case strings.Contains(file, ":"):
		return errors.New("paths with a colon cannot be shown")
	}
	return nil
}

// within reports whether path is dir or lies below it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// adjust adds the paths of --show to what the sandbox sees, read-only. Policy judges them
// as it judges binds; binds of the configuration keep to their roots.
func (s *start) adjust(agent *config.Agent) {
	docker := &agent.Sandbox.Docker
	if len(s.show) == 0 {
		return
	}
	docker.AllowExternalSources = docker.AllowExternalSources || len(docker.Binds) == 0
	for _, file := range s.show {
		docker.Binds = append(slices.Clip(docker.Binds), file+":"+file+":ro")
	}
	agent.Origins["sandbox.docker.binds"] = config.Origin{Source: "agent", Path: "--show"}
}

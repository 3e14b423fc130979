package agentcmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/cli/dirsandbox"
	"github.com/atoll-run/atoll/internal/cli/setupcmd"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/runtime/image/local"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// program is where the program of a preset comes from.
type program struct {
	image string   // of the sandbox; "" is the recorded one
	path  string   // inside; "" is looked for there
	shown []string // of the host
	dirs  []string // inside, before the usual search path
}

// searchPath is the PATH inside: the program's own directories, then the usual ones.
func (p *program) searchPath(usual string) string {
	return strings.Join(append(slices.Clone(p.dirs), usual), ":")
}

// findProgram finds the program in the image that was asked for or built, or on the
// host. The programs of all presets are shown together, so that several agents can
// use one sandbox. Where there is none, a person is offered to build its image.
func (s *start) findProgram(ctx context.Context) (program, error) {
	image := s.image
	if s.preset.NPM == nil {
		image = cmp.Or(image, s.preset.Image)
	}
	switch built := s.builtImage(ctx); {
	case image != "" && image != provide.HostImage:
		return program{image: image}, nil
	case s.preset.Commands && s.image == "" && !dirsandbox.IsHostImage(s.app, s.dir):
		return program{}, nil
	case image == "" && built != "":
		return program{image: built}, nil
	}
	own, ok := dirsandbox.HostSearch(s.Env, s.dir).Find(s.preset)
	if !ok && s.preset.NPM != nil {
		return program{image: s.ownImage()}, s.offerImage(ctx)
	}
	shown, err := dirsandbox.HostPrograms(s.Env, s.app, s.dir)
	return program{image: provide.HostImage, path: own.Path, shown: shown, dirs: own.Dirs}, err
}

// ownImage is the name of the image that is built of a preset.
func (s *start) ownImage() string { return s.preset.ID + ":latest" }

// builtImage is the first image with the program that there is; "" if there is none.
func (s *start) builtImage(ctx context.Context) string {
	if s.preset.NPM == nil {
		return ""
	}
	for _, name := range []string{s.ownImage(), s.preset.Image} {
		if name != "" && s.app.ImportedImage(ctx, name) != nil {
			return name
		}
	}
	return ""
}

// offerImage builds the image of the preset if a person wants it.
func (s *start) offerImage(ctx context.Context) error {
	missing := errhint.With(fmt.Errorf("%s is not installed: there is no program %q", s.preset.Title, s.preset.Program),
		"build its image: atoll images build "+s.preset.ID+"; or install it here: npm install -g "+s.preset.NPM.Package)
	if !s.hasTerminal() {
		return missing
	}
	fmt.Fprintf(s.Err, "%s is not installed. Build a sandbox image with %s of npm now? [Y/n] ", s.preset.Title, strings.TrimSuffix(s.preset.NPM.Package+"@"+s.preset.NPM.Version, "@"))
	if yes, err := s.agrees(ctx); err != nil || !yes {
		return console.FirstOf(err, missing)
	}
	return setupcmd.BuildAgent(ctx, s.Env, s.app, local.Program{Name: s.preset.ID, Package: s.preset.NPM.Package, Version: s.preset.NPM.Version, Commands: []string{s.preset.Program}})
}

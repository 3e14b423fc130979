package agentcmd

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/agent/preset"
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
	image := cmp.Or(s.image, s.preset.Image)
	switch {
	case image != "" && image != provide.HostImage:
		return program{image: image}, nil
	case s.preset.Commands && s.image == "" && !s.isHostImage():
		return program{}, nil
	case image == "" && s.preset.NPM != nil && s.hasImage(ctx):
		return program{image: s.ownImage()}, nil
	}
	all, err := preset.All(s.app.Paths.AtollState)
	if err != nil {
		return program{}, err
	}
	found := program{image: provide.HostImage}
	for _, p := range all {
		if on, ok := s.onHost(p); ok {
			found.add(on, p.ID == s.preset.ID)
		}
	}
	if found.path == "" && s.preset.NPM != nil {
		return program{image: s.ownImage()}, s.offerImage(ctx)
	}
	return found, nil
}

// ownImage is the name of the image that is built of a preset.
func (s *start) ownImage() string { return s.preset.ID + ":latest" }

func (s *start) hasImage(ctx context.Context) bool {
	return s.app.ImportedImage(ctx, s.ownImage()) != nil
}

// offerImage builds the image of the preset if a person wants it.
func (s *start) offerImage(ctx context.Context) error {
	missing := errhint.With(fmt.Errorf("%s is not installed: there is no program %q", s.preset.Title, s.preset.Program),
		"build its image: atoll images build "+s.preset.ID+"; or install it here: npm install -g "+s.preset.NPM.Package)
	if !s.hasTerminal() {
		return missing
	}
	fmt.Fprintf(s.Err, "%s is not installed. Build a sandbox image with %s of npm now? [Y/n] ", s.preset.Title, strings.TrimSuffix(s.preset.NPM.Package+"@"+s.preset.NPM.Version, "@"))
	if !s.agrees() {
		return missing
	}
	return setupcmd.BuildAgent(ctx, s.Env, s.app, local.Program{Name: s.preset.ID, Package: s.preset.NPM.Package, Version: s.preset.NPM.Version, Commands: []string{s.preset.Program}})
}

// agrees reads a person's answer to a question; an empty line is yes.
func (s *start) agrees() bool {
	line, err := bufio.NewReader(io.LimitReader(s.In, maxFirstLine)).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return err == nil && (answer == "" || answer == "y" || answer == "yes")
}

// isHostImage reports whether the directory's sandbox shows the host's programs.
func (s *start) isHostImage() bool {
	recorded, err := s.app.Directories().Find(s.dir)
	return err != nil || recorded.Image == "" || recorded.Image == provide.HostImage
}

func (p *program) add(other hostProgram, own bool) {
	for _, path := range other.shown {
		if !slices.Contains(p.shown, path) {
			p.shown = append(p.shown, path)
		}
	}
	slices.Sort(p.shown)
	if own {
		p.path, p.dirs = other.path, other.dirs
	}
}

// hostProgram is a program of the host, and what it needs besides the host's /usr.
type hostProgram struct {
	path        string
	shown, dirs []string
}

// onHost finds the program of a preset on the host's search path. Programs of the
// directory itself do not count.
func (s *start) onHost(p *preset.Preset) (hostProgram, bool) {
	file, ok := s.lookUp(p.Program)
	if !ok || p.NPM == nil {
		return hostProgram{}, false
	}
	found := hostProgram{path: file}
	found.show(file)
	if interpreter := interpreterOf(file); interpreter != "" {
		node, ok := s.lookUp(interpreter)
		if !ok {
			return hostProgram{}, false
		}
		found.show(node)
		found.dirs = append(found.dirs, filepath.Dir(node))
	}
	return found, true
}

// show adds what a program needs: the directory of packages that it lies in, or
// itself. What lies below /usr is there already.
func (h *hostProgram) show(file string) {
	const packages = "/node_modules/"
	if strings.HasPrefix(file, "/usr/") {
		return
	}
	if at := strings.Index(file, packages); at >= 0 {
		file = file[:at+len(packages)-1]
	}
	if !slices.Contains(h.shown, file) {
		h.shown = append(h.shown, file)
	}
}

// lookUp finds a program on the search path of the host, as it is without links.
func (s *start) lookUp(name string) (string, bool) {
	for _, dir := range filepath.SplitList(s.Getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file, err := filepath.EvalSymlinks(filepath.Join(dir, name))
		if err != nil || isWithin(s.dir.Path, file) {
			continue
		}
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, true
		}
	}
	return "", false
}

// isWithin reports whether path lies below dir.
func isWithin(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// maxFirstLine bounds the first line of a script.
const maxFirstLine = 256

// interpreterOf is the program that a script asks env for; "" if the file is no such
// script.
func interpreterOf(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // it was only read
	line, err := bufio.NewReaderSize(f, maxFirstLine).ReadSlice('\n')
	words := strings.Fields(string(line))
	if err != nil || len(words) < 2 || !strings.HasPrefix(words[0], "#!") || filepath.Base(words[0]) != "env" {
		return ""
	}
	words = slices.DeleteFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "-") })
	if len(words) == 0 || strings.Contains(words[0], "/") {
		return ""
	}
	return words[0]
}

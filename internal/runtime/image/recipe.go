package image

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/images"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/lazyregexp"
)

// A Recipe is an image that can be built. Its parameters are the ARG lines of
// its Dockerfile, which also hold their defaults.
type Recipe struct {
	Name   string
	About  string // one line for a list
	Target string // reference of the result, unless another is asked for
}

// Recipes returns every recipe.
func Recipes() []Recipe {
	return []Recipe{
		{"sandbox", "shell, git, curl, jq, python3, ripgrep: what sandboxes use by default", "openclaw-sandbox:bookworm-slim"},
		{"common", "sandbox with Node.js, Go, Rust, compilers, pnpm, bun and Homebrew", "openclaw-sandbox-common:bookworm-slim"},
		{"extend", "any image, with layers added", ""},
		{"openclaw", "sandbox with OpenClaw itself and pnpm: what runs of OpenClaw use", "cogni-sandbox-openclaw:latest"},
		{recipeBrowser, "Chromium with and without a window, a VNC server and fonts: what browser sandboxes use", "openclaw-sandbox-browser:bookworm-slim"},
		{"code-interpreter", "a Jupyter kernel with numpy, pandas and matplotlib, served on port 49999", "code-interpreter:latest"},
		{recipeStore, "the packages of a pnpm lockfile, for `atoll volumes seed`", ""},
	}
}

// Layers returns the names of what can be added to an image.
func Layers() []string {
	entries, _ := fs.Glob(images.Files, layerPath("*")) // the pattern is valid
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(path.Base(entry), dockerfileSuffix))
	}
	return names
}

// Find returns the recipe with a name.
func Find(name string) (Recipe, error) {
	recipes := Recipes()
	i := slices.IndexFunc(recipes, func(r Recipe) bool { return r.Name == name })
	if i < 0 {
		return Recipe{}, errhint.With(fmt.Errorf("image recipe %q: not known", name), "use one of "+join(names(recipes)))
	}
	return recipes[i], nil
}

func names(recipes []Recipe) []string {
	list := make([]string, 0, len(recipes))
	for _, r := range recipes {
		list = append(list, r.Name)
	}
	return list
}

const (
	dockerfileName   = "Dockerfile"
	dockerfileSuffix = ".Dockerfile"
)

func layerPath(name string) string { return "layers/" + name + dockerfileSuffix }

// dockerfile returns the recipe's Dockerfile with layers put on top.
func (r Recipe) dockerfile(layers []string) (string, error) {
	text, err := fs.ReadFile(images.Files, path.Join(r.Name, dockerfileName))
	if err != nil {
		return "", fmt.Errorf("image recipe %s: %w", r.Name, err)
	}
	for _, layer := range layers {
		if !slices.Contains(Layers(), layer) {
			return "", errhint.With(fmt.Errorf("image layer %q: not known", layer), "use one of "+join(Layers()))
		}
		part, err := fs.ReadFile(images.Files, layerPath(layer))
		if err != nil {
			return "", fmt.Errorf("image layer %s: %w", layer, err)
		}
		text = append(append(text, '\n'), part...)
	}
	return string(text), nil
}

// Files returns the files that a recipe puts into the root, by their paths there.
func (r Recipe) Files() (map[string]string, error) {
	files, top := map[string]string{}, path.Join(r.Name, filesDir)
	err := fs.WalkDir(images.Files, top, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(images.Files, name)
		files[strings.TrimPrefix(name, top+"/")] = string(text)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return files, err
}

// filesDir is the directory of a recipe with what it puts into the root.
const filesDir = "files"

// FileMode returns the mode of a file of a recipe: scripts can be run.
func FileMode(text string) int64 {
	if strings.HasPrefix(text, "#!") {
		return 0o755
	}
	return 0o644
}

var argLine = lazyregexp.New(`(?m)^ARG ([A-Z0-9_]+)(?:=(.*))?$`)

// Defaults returns the recipe's parameters with their defaults.
func (r Recipe) Defaults() (map[string]string, error) {
	text, err := r.dockerfile(nil)
	if err != nil {
		return nil, err
	}
	defaults := map[string]string{}
	for _, match := range argLine.FindAllStringSubmatch(text, -1) {
		defaults[match[1]] = strings.Trim(match[2], `"`)
	}
	return defaults, nil
}

func join(words []string) string { return strings.Join(words, ", ") }

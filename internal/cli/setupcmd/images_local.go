package setupcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/atoll-run/atoll/internal/agent/preset"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/runtime/image"
	"github.com/atoll-run/atoll/internal/runtime/image/local"
	"github.com/atoll-run/atoll/internal/terminal"
)

// agents returns the presets whose programs are packages of npm, and whose images no
// recipe makes.
func agents(list []*preset.Preset) []*preset.Preset {
	return slices.DeleteFunc(slices.Clone(list), func(p *preset.Preset) bool {
		_, err := image.Find(p.ID)
		return p.NPM == nil || err == nil
	})
}

// agentOf returns the program that a word such as claude or claude@2.1.0 names, in the
// version that its preset was tried with unless the word has another.
func agentOf(list []*preset.Preset, word string) (local.Program, bool) {
	name, version, _ := strings.Cut(word, "@")
	for _, p := range agents(list) {
		if p.Is(name) {
			return local.Program{Name: p.ID, Package: p.NPM.Package, Version: cmp.Or(version, p.NPM.Version), Commands: []string{p.Program}}, true
		}
	}
	return local.Program{}, false
}

func agentNames() (names []string) {
	for _, p := range agents(preset.Builtin()) {
		names = append(names, p.ID)
	}
	return names
}

// BuildAgent builds the image of a program of npm without an engine, and says what was
// built.
func BuildAgent(ctx context.Context, c *console.Env, a *app.App, p local.Program) error {
	return (&env{c}).buildInStore(a, false, func(b *local.Builder) (*local.Result, error) { return b.Program(ctx, p, "") })
}

// buildAgent builds the image of an agent without an engine.
func buildAgent(ctx context.Context, e *env, a *app.App, o buildOptions, p local.Program) error {
	if err := o.checkAgent(e, p.Name); err != nil {
		return console.WithCode(console.ExitUsage, err)
	}
	return e.buildInStore(a, o.asJSON, func(b *local.Builder) (*local.Result, error) { return b.Program(ctx, p, o.baseImage()) })
}

// buildInStore builds an image without an engine and prints what was built.
func (e *env) buildInStore(a *app.App, asJSON bool, build func(*local.Builder) (*local.Result, error)) error {
	report, done := e.buildProgress()
	builder, err := a.ImageBuilder(report)
	if err != nil {
		done()
		return err
	}
	result, err := build(builder)
	done()
	if err != nil {
		return err
	}
	return e.printBuilt(result, asJSON)
}

// checkAgent refuses flags that images of agents have no use for.
func (o *buildOptions) checkAgent(e *env, name string) error {
	for _, p := range o.params {
		if *p.value != "" && p.variable != image.ArgBaseImage {
			return fmt.Errorf("image %s: it has no use for --%s", name, p.flag)
		}
	}
	switch {
	case o.backend != "" && o.backend != "linux":
		return errhint.With(fmt.Errorf("image %s: it is built for sandboxes that need no engine", name), "leave --backend out")
	case o.lockfile != "", len(o.with) > 0, o.network != "", o.target != e.Getenv("TARGET_IMAGE"):
		return errors.New("image " + name + ": --lockfile, --network, --target-image and --with are of no use for it")
	}
	return nil
}

func (o *buildOptions) baseImage() string {
	for _, p := range o.params {
		if p.variable == image.ArgBaseImage {
			return *p.value
		}
	}
	return ""
}

// buildProgress returns what shows the steps of a build: a line that changes on a
// terminal, a line each elsewhere.
func (e *env) buildProgress() (report func(line string), done func()) {
	var last atomic.Pointer[string]
	done = e.ProgressOf(func() string {
		if line := last.Load(); line != nil {
			return console.Printable(*line)
		}
		return "building"
	})
	return func(line string) {
		last.Store(&line)
		if !terminal.IsTerminal(e.Err) {
			fmt.Fprintf(e.Err, "==> %s\n", console.Printable(line))
		}
	}, done
}

func (e *env) printBuilt(r *local.Result, asJSON bool) error {
	if asJSON {
		return e.PrintJSON(map[string]any{"image": namesText(r.Image), "recipe": r.Recipe, "version": r.Version, "built": r.Built, "id": r.Image.ID})
	}
	verb := "built"
	if !r.Built {
		verb = "is up to date"
	}
	_, err := fmt.Fprintf(e.Out, "Sandbox image %s: %s (%s, %s in %d files, %d layers)\n", verb, namesText(r.Image), shortID(r.Image.ID), console.SizeText(r.Image.Size), r.Image.Files, len(r.Image.Layers))
	return err
}

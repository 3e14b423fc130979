package preset

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/lazyregexp"
)

var (
	idForm     = lazyregexp.New(`^[a-z][a-z0-9-]{0,31}$`)
	secretForm = lazyregexp.New(`^[A-Z][A-Z0-9_]{0,63}$`)
	npmForm    = lazyregexp.New(`^(@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._-]*$`)
	verForm    = lazyregexp.New(`^[0-9A-Za-z][0-9A-Za-z.+-]{0,63}$`)
)

const maxTitle = 100

// check finds everything that is wrong with a preset.
func (p *Preset) check() (problems []string) {
	add := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	add(!idForm.MatchString(p.ID), "id %q: not of small letters, digits and -", p.ID)
	add(p.Program == "" || strings.ContainsAny(p.Program, "/\x00") || strings.HasPrefix(p.Program, "-"), "program %q: not a name to look for", p.Program)
	add(p.Title == "" || len(p.Title) > maxTitle, "title: between 1 and %d characters are needed", maxTitle)
	if p.NPM != nil {
		add(!npmForm.MatchString(p.NPM.Package), "npm.package %q: not the name of a package", p.NPM.Package)
		add(p.NPM.Version != "" && !verForm.MatchString(p.NPM.Version), "npm.version %q: not a version", p.NPM.Version)
	}
	for _, f := range p.Files {
		add(!isPlain(f.Path), "files: %q is no plain path below the home", f.Path)
		add(f.Text != "" && len(f.JSON) > 0, "files: %s has both text and json", f.Path)
	}
	for _, c := range p.Own {
		add(!isPlain(c.From) || !isPlain(c.To), "own: %q to %q: not plain paths below a home", c.From, c.To)
	}
	for _, l := range p.Login {
		add(!secretForm.MatchString(l.Secret), "login: %q is no name of a variable", l.Secret)
		add(l.Provider == "", "login %s: provider is missing", l.Secret)
	}
	add(p.MCP != nil && (!isPlain(p.MCP.File) || p.MCP.Format != "json" && p.MCP.Format != "toml"), "mcp: a plain path and the format json or toml are needed")
	add(p.MCP != nil && p.MCP.To != "" && !isPlain(p.MCP.To), "mcp.to: not a plain path below the home")
	add(p.ForeignLogin != nil && !isPlain(p.ForeignLogin.File), "foreignLogin: its file is no plain path")
	return append(problems, p.checkOutput()...)
}

func (p *Preset) checkOutput() (problems []string) {
	if o := p.Output; p.Args.Task != nil && !slices.Contains([]string{"text", "json", "envelope", "codex", "opencode", "gemini"}, o.Read) {
		problems = append(problems, fmt.Sprintf("output.read %q: none of text, json, envelope, codex, opencode and gemini", o.Read))
	}
	if p.Output.Read == "json" && p.Output.Answer == "" {
		problems = append(problems, "output.answer is missing")
	}
	return problems
}

// isPlain reports whether a path stays below the directory that it is relative to.
func isPlain(name string) bool {
	return name != "" && name != "." && path.Clean(name) == name && !path.IsAbs(name) && !strings.HasPrefix(name, "..") && !strings.ContainsRune(name, 0)
}

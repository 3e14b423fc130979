// Package preset holds what is known of agents that people use: which program, with
// which arguments, environment and settings, how its output is read and how it pays
// for models. A preset is data, one JSON5 file each: those in data are part of the
// program, others lie in the state directory.
package preset

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Preset is one agent program. In arguments, environment and files {task}, {model},
// {run}, {home}, {workspace}, {base-url} and {no-key} are replaced.
type Preset struct {
	ID          string   `json:"id"`
	Aliases     []string `json:"aliases"` // other names in a configuration
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Program     string   `json:"program"`
	NPM         *NPM     `json:"npm"`   // the package that has the program; nil if none has
	Image       string   `json:"image"` // with the program; where there is a package, besides the one that is built of it
	Args        Args     `json:"args"`
	// Commands means that words after -- are a command of their own.
	Commands bool              `json:"commands"`
	Env      map[string]string `json:"env"`
	ModelEnv map[string]string `json:"modelEnv"` // only where a model is named
	Files    []File            `json:"files"`
	Own      []Copy            `json:"own"`
	MCP      *MCP              `json:"mcp"`
	// NeedsModel means that the program has no model of its own choice.
	NeedsModel   bool          `json:"needsModel"`
	Login        []Login       `json:"login"` // the first for which there is a secret; none means no models
	ForeignLogin *ForeignLogin `json:"foreignLogin"`
	Refused      string        `json:"refused"` // why it cannot be run; "" if it can
	Output       Output        `json:"output"`
}

// NPM is a package of npm's registry.
type NPM struct {
	Package string `json:"package"`
	Version string `json:"version"`
}

// Args are the program's arguments: those of its use, then of the model, then what
// the caller adds, then of the task.
type Args struct {
	Interactive []string `json:"interactive"` // at a terminal
	Task        []string `json:"task"`        // one task, without a person; nil if the program cannot do that
	Model       []string `json:"model"`       // where a model is named
	Prompt      []string `json:"prompt"`      // where a task is given
	Stay        []string `json:"stay"`        // instead of Prompt, at a terminal
}

// File is a settings file below the home inside.
type File struct {
	Path string         `json:"path"`
	Keep bool           `json:"keep"` // one that is there stays: the program changes it
	Text string         `json:"text"`
	JSON jsontext.Value `json:"json"` // instead of Text
}

// Copy is a file or directory of the person's home that is copied to the home
// inside.
type Copy struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// MCP is the file of the person's home that names MCP servers. Those that can work inside
// are written to a file of the home inside; a person is told which are missing.
type MCP struct {
	File   string   `json:"file"`
	Format string   `json:"format"` // "json", with mcpServers, or "toml", with mcp_servers
	To     string   `json:"to"`     // "" lets none in; a path of Files is added to
	Args   []string `json:"args"`   // first arguments of the program, where there are servers
}

// Login is a way to pay for models. The secret stays on the host: the model proxy
// adds it to requests.
type Login struct {
	Secret   string `json:"secret"`   // the environment variable, and the name of the stored file
	Provider string `json:"provider"` // of llm.providers, or one that a key in the environment is enough for
	Prefix   string `json:"prefix"`   // how such secrets begin
	Bearer   bool   `json:"bearer"`   // sent as a bearer token where the provider takes keys otherwise
	Beta     string `json:"beta"`     // added to the header anthropic-beta
	Title    string `json:"title"`
	How      string `json:"how"` // where a person gets one
}

// ForeignLogin is a login file of the program's own that is never used.
type ForeignLogin struct {
	File string `json:"file"` // below the person's home
	Text string `json:"text"` // what to do instead
}

// Output says how a task's output is read.
type Output struct {
	Stream  string `json:"stream"` // which reader turns its lines into events; "" is none
	Read    string `json:"read"`   // "text", "json", "envelope" (OpenClaw's), or a stream's name
	Answer  string `json:"answer"`
	Failure string `json:"failure"`
}

// NoKey stands where programs want a key: the proxy adds the real one, which never
// enters a sandbox.
const NoKey = "proxy-handles-auth"

// Values replace the names in braces.
type Values struct {
	Task, Model, Run, Home, Workspace, BaseURL string
	// Servers means that the file of MCP servers was written.
	Servers bool
}

// Replace returns text with the values in it.
func (v Values) Replace(text string) string {
	return strings.NewReplacer("{task}", v.Task, "{model}", v.Model, "{run}", v.Run, "{home}", v.Home, "{workspace}", v.Workspace, "{base-url}", v.BaseURL, "{no-key}", NoKey).Replace(text)
}

// Argv returns the command of a use: of a task without a person if alone. Added are
// the caller's own arguments.
func (p *Preset) Argv(v Values, alone bool, added []string) []string {
	if p.Commands && len(added) > 0 {
		return added
	}
	argv := []string{p.Program}
	if v.Servers {
		argv = append(argv, p.MCP.Args...)
	}
	if alone {
		argv = append(argv, p.Args.Task...)
	} else {
		argv = append(argv, p.Args.Interactive...)
	}
	if v.Model != "" {
		argv = append(argv, p.Args.Model...)
	}
	fixed := len(argv)
	argv = append(argv, added...)
	switch {
	case v.Task == "":
	case !alone && p.Args.Stay != nil:
		argv = append(argv, p.Args.Stay...)
	default:
		argv = append(argv, p.Args.Prompt...)
	}
	for i := range argv {
		if i < fixed || i >= fixed+len(added) {
			argv[i] = v.Replace(argv[i])
		}
	}
	return argv
}

// Environment returns the variables of the program.
func (p *Preset) Environment(v Values) map[string]string {
	env := maps.Clone(p.Env)
	if env == nil {
		env = map[string]string{}
	}
	if v.Model != "" {
		maps.Copy(env, p.ModelEnv)
	}
	for name, value := range env {
		env[name] = v.Replace(value)
	}
	return env
}

// Content returns what a settings file holds.
func (f *File) Content(v Values) []byte {
	if len(f.JSON) == 0 {
		return []byte(v.Replace(f.Text))
	}
	return []byte(v.jsonReplace(string(f.JSON)))
}

// jsonReplace replaces inside strings of a JSON text.
func (v Values) jsonReplace(text string) string {
	quote := func(s string) string {
		quoted, _ := jsontext.AppendQuote(nil, strings.ToValidUTF8(s, "\uFFFD"))
		return string(quoted[1 : len(quoted)-1])
	}
	return Values{Task: quote(v.Task), Model: quote(v.Model), Run: quote(v.Run), Home: quote(v.Home), Workspace: quote(v.Workspace), BaseURL: quote(v.BaseURL)}.Replace(text)
}

// Is reports whether the preset has this name.
func (p *Preset) Is(name string) bool { return p.ID == name || slices.Contains(p.Aliases, name) }

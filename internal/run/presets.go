package run

import "github.com/atoll-run/atoll/internal/agent/preset"

// Preset returns a built-in preset as an agent that carries out one task; false if
// there is none of this name, or it carries out none.
func Preset(name string) (Custom, bool) {
	p, err := preset.Find(preset.Builtin(), name)
	if err != nil || p.Args.Task == nil || p.Refused != "" {
		return Custom{}, false
	}
	return FromPreset(p), true
}

// FromPreset returns a preset as an agent that carries out one task.
func FromPreset(p *preset.Preset) Custom {
	values := preset.Values{Task: "{task}", Model: "{model}", Run: "{run}", Home: "{home}", Workspace: "{workspace}", BaseURL: "{base-url}"}
	files := map[string]string{}
	for i := range p.Files {
		files[p.Files[i].Path] = string(p.Files[i].Content(values))
	}
	return Custom{
		Name: p.Title, Description: p.Description + " in a sandbox of its own, for one task",
		Argv: p.Argv(values, true, nil), Env: p.Environment(values), Files: files,
		Read: p.Output.Read, Answer: p.Output.Answer, Failure: p.Output.Failure, Stream: p.Output.Stream,
	}
}

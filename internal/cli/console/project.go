package console

import (
	"fmt"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/trust"
)

// sayProject prints, once, that settings of the project's file are ignored.
func (e *Env) sayProject(found *trust.Found) {
	if found == nil || found.Trusted || e.projectSaid {
		return
	}
	e.projectSaid = true
	switch {
	case found.Project == nil:
		e.Notice(fmt.Sprintf("%s is ignored: %s; see atoll config trust", found.Path, found.Why))
	case len(found.Project.Ignored) > 0:
		e.Notice(fmt.Sprintf("%s: %s, so %s ignored; see atoll config trust", found.Path, found.Why, ignoredText(found)))
	}
}

// ignoredText counts the ignored settings and names the first.
func ignoredText(found *trust.Found) string {
	first := found.Project.Ignored[0].Path
	if n := len(found.Project.Ignored); n > 1 {
		return fmt.Sprintf("%d of its settings (%s, …) are", n, first)
	}
	return first + " is"
}

// FoundProject is the project's file in JSON.
type FoundProject struct {
	*trust.Found
	Ignored []config.Request `json:"ignored"` // what counts only when it is trusted
}

// ProjectJSON returns the project's file for JSON output; nil if there is none.
func ProjectJSON(found *trust.Found) *FoundProject {
	if found == nil {
		return nil
	}
	p := &FoundProject{found, []config.Request{}}
	if found.Project != nil {
		p.Ignored = OrEmpty(found.Project.Ignored)
	}
	return p
}

// WithProject adds the project's file, if there is one.
func WithProject(found *trust.Found, members map[string]any) map[string]any {
	if found != nil {
		members["project"] = ProjectJSON(found)
	}
	return members
}

// ProjectText says in one line what became of the project's file.
func ProjectText(found *trust.Found) string {
	switch {
	case found.Trusted:
		return found.Path + ": " + found.Why
	case found.Project == nil:
		return found.Path + " is ignored: " + found.Why
	}
	return fmt.Sprintf("%s is not trusted and only narrows, %d of its settings are ignored: %s", found.Path, len(found.Project.Ignored), found.Why)
}

// PrintProject prints what became of the project's file.
func (e *Env) PrintProject(found *trust.Found) {
	if found != nil {
		fmt.Fprintf(e.Out, "project's file: %s\n", Printable(ProjectText(found)))
	}
}

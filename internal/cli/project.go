package cli

import (
	"fmt"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/trust"
)

// sayProject prints, once, that settings of the project's file are ignored.
func (e *env) sayProject(found *trust.Found) {
	if found == nil || found.Trusted || e.projectSaid {
		return
	}
	e.projectSaid = true
	switch {
	case found.Project == nil:
		e.notice(fmt.Sprintf("%s is ignored: %s; see atoll config trust", found.Path, found.Why))
	case len(found.Project.Ignored) > 0:
		e.notice(fmt.Sprintf("%s: %s, so %s ignored; see atoll config trust", found.Path, found.Why, ignoredText(found)))
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

// foundProject is the project's file in JSON.
type foundProject struct {
	*trust.Found
	Ignored []config.Request `json:"ignored"` // what counts only when it is trusted
}

func projectJSON(found *trust.Found) *foundProject {
	if found == nil {
		return nil
	}
	p := &foundProject{found, []config.Request{}}
	if found.Project != nil {
		p.Ignored = orEmpty(found.Project.Ignored)
	}
	return p
}

// withProject adds the project's file, if there is one.
func withProject(found *trust.Found, members map[string]any) map[string]any {
	if found != nil {
		members["project"] = projectJSON(found)
	}
	return members
}

// projectText says in one line what became of the project's file.
func projectText(found *trust.Found) string {
	switch {
	case found.Trusted:
		return found.Path + ": " + found.Why
	case found.Project == nil:
		return found.Path + " is ignored: " + found.Why
	}
	return fmt.Sprintf("%s is not trusted and only narrows, %d of its settings are ignored: %s", found.Path, len(found.Project.Ignored), found.Why)
}

func (e *env) printProject(found *trust.Found) {
	if found != nil {
		fmt.Fprintf(e.Out, "project's file: %s\n", printable(projectText(found)))
	}
}
